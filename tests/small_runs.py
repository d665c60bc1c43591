"""A small file of pairs and a small model, for trainings of a few seconds."""

WORDS = {"one": "un", "two": "deux", "three": "trois", "red": "rouge", "cat": "chat", "dog": "chien", "sees": "voit"}

SMALL = {
    "tokenizer.kind": "word",
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.width": 16,
    "model.inner": 16,
    "model.heads": 2,
    "train.batch_tokens": 64,
    "train.steps": 120,
    "train.validate_every": 30,
    "train.checkpoint_every": 10,
    "train.validate_sentences": 5,
    "train.warmup": 10,
    "train.device": "cpu",
    "train.precision": "float32",
    "decode.beam": 2,
}


def pair(number: int) -> tuple[str, str]:
    names = list(WORDS)
    chosen = [names[(number // 7**place) % 7] for place in range(1 + number % 4)]
    return " ".join(chosen), " ".join(WORDS[name] for name in reversed(chosen))


def flags(settings: dict[str, object]) -> list[str]:
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
