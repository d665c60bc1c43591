"""Continuations: streamed = whole, no piece breaks a character, stops and choices are kept, long texts slide on."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
import torch

from regard.config import DataConfig, SearchConfig
from regard.data.badlines import BadLines
from regard.data.language import Stream
from regard.data.subwords import Subwords
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.inference import pack
from regard.models import build, parse_model
from regard.models.decoder import Decoder
from regard.tasks.generator import Generator
from regard.tasks.writer import Writer

TEXT = "Der Löwe und die Maus – 獅子と鼠 🦁🐭. The lion and the mouse, the lion and the lion."


@pytest.fixture(scope="module", params=["char", "byte-bpe"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    if request.param == "char":
        return Tokenizer.train(["The lion and the mouse"], kind="char", vocabulary=400)  # 獅 and ö are bytes
    return Subwords.learn([TEXT] * 3, kind="byte-bpe", vocabulary=300)


@pytest.fixture(params=[False, True])
def generator(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> Generator:
    torch.manual_seed(0)
    settings = {"kind": "gpt", "layers": 2, "width": 16, "heads": 2, "max_length": 24, "dropout": 0.0}
    model = build(parse_model(settings), len(tokenizer)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(6)
    assert isinstance(model, Decoder)
    return Generator(pack(model) if request.param else model, tokenizer, 24, [], tokenizer.encode("\n")[-1:])


def test_pieces_join_to_the_text_and_break_no_character(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TEXT)
    for first in (1, 5, 20):
        writer = Writer(tokenizer, ids[:first])
        pieces = [writer.add(token) for token in ids[first:]] + [writer.rest()]
        assert "".join(pieces) == tokenizer.decode(ids)[len(tokenizer.decode(ids[:first])) :]
        assert all("\ufffd" not in piece for piece in pieces)


def test_a_stop_string_is_never_shown_not_even_its_beginning(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TEXT)
    writer, shown = Writer(tokenizer, ids[:1], ["Maus"]), ""
    for token in ids[1:]:
        shown += writer.add(token)
        assert "M" not in shown
        if writer.stopped:
            break
    assert writer.stopped
    assert "Der Löwe und die ".endswith(shown)
    assert len(shown) > 12


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("tokens", [5, 60])
def test_streamed_is_the_same_text(generator: Generator, method: str, tokens: int) -> None:
    """60 tokens outgrow the context of 24 several times."""
    options = SearchConfig(method=method, max_length=tokens, beam=3, seed=3)
    (whole,) = generator.generate(["The lion"], options)
    assert len(whole.ids) == tokens or whole.ended
    assert "".join(generator.stream("The lion", options)) == whole.text


def test_the_pieces_of_a_stream_may_be_asked_for_by_several_threads(generator: Generator) -> None:
    """As a server does, which gives every piece to whatever thread is free."""
    options = SearchConfig(method="greedy", max_length=12)
    packed = generator.using(pack(generator.model))
    pieces = packed.stream("The lion", options)
    found = [""]

    def piece() -> None:
        found.append(next(pieces, ""))

    for _ in range(14):
        thread = threading.Thread(target=piece)
        thread.start()
        thread.join()
    assert "".join(found) == packed.generate(["The lion"], options)[0].text


def test_several_samples_differ_and_the_seed_repeats_them(generator: Generator) -> None:
    options = SearchConfig(method="sample", n_best=4, max_length=12, seed=7)
    (first,), (again,) = generator.generate(["The"], options), generator.generate(["The"], options)
    texts = [one.text for one in (first, *first.others)]
    assert len(texts) == 4
    assert len(set(texts)) > 1
    assert texts == [one.text for one in (again, *again.others)]


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_choices_are_all_that_comes_out(generator: Generator, method: str) -> None:
    options = SearchConfig(method=method, beam=3)
    choices = ["lion", "mouse", "the mouse and", "lion and"]
    found = [generator.generate([prompt], options, choices=choices)[0] for prompt in ("The", "A", "Die")]
    assert all(one.text in choices and one.ended for one in found)


def test_a_choice_may_repeat_itself_and_follows_its_prompt(generator: Generator) -> None:
    options = SearchConfig(method="greedy", no_repeat_ngram=1)
    (found,) = generator.generate(["The"], options, choices=" the the the")
    assert found.text == " the the the", "one string is one choice"
    assert found.ids == generator.encode("The the the the")[len(generator.encode("The")) :]


def test_choices_that_are_one_to_the_model_are_refused() -> None:
    words = Tokenizer.train(["the lion and the mouse"] * 3, kind="word", vocabulary=300)
    model = build(parse_model({"kind": "gpt", "layers": 1, "width": 8, "heads": 1, "max_length": 8}), len(words))
    assert isinstance(model, Decoder)
    generator = Generator(model.eval(), words, 8, [], words.encode("the"))
    with pytest.raises(UserError, match="'zebra' has a part that the model does not know"):
        generator.generate(["the"], SearchConfig(method="greedy"), choices=["lion", "zebra"])


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_choices_need_no_end_mark(generator: Generator, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generator, "end", -1)
    choices = ["the lion", "mouse"]
    (found,) = generator.generate(["The "], SearchConfig(method=method, min_length=3, n_best=1), choices=choices)
    assert found.text in choices


def test_an_empty_stop_string_is_refused(generator: Generator) -> None:
    with pytest.raises(UserError, match="stop = ''"):
        generator.stream("The", SearchConfig(method="greedy"), [""])


def test_one_stop_string_is_not_its_letters(generator: Generator) -> None:
    options = SearchConfig(method="greedy", max_length=20)
    free = generator.generate(["The lion"], options)[0].text
    assert generator.generate(["The lion"], options, "\0" + free)[0].text == free


def test_no_pair_of_tokens_is_written_twice_not_even_one_of_the_prompt(generator: Generator) -> None:
    """Also where the text outgrows the context of 24."""
    options = SearchConfig(method="sample", no_repeat_ngram=2, max_length=60, seed=5)
    (found,) = generator.generate(["the lion the mouse"], options)
    ids = [*found.prompt_ids, *found.ids]
    pairs = list(pairwise(ids))
    fresh = pairs[len(found.prompt_ids) - 1 :]
    assert len(set(fresh)) == len(fresh)
    assert not set(fresh) & set(pairs[: len(found.prompt_ids) - 1])


def test_a_token_may_end_one_character_and_begin_the_next() -> None:
    """Four bytes each, and tokens of two that lie across: no token but the last ends with a character."""
    text = "🦁🐭🐁🐀🐱🐶"
    tokenizer = Subwords.learn(["abc"], kind="byte-bpe", vocabulary=300)
    letters = tokenizer.encode(text)  # a byte each
    writer = Writer(_Paired(tokenizer), [tokenizer.encode("a")[0]])
    pairs = [letters[0] + 1000, *(1000 * (a + 1) + b for a, b in zip(letters[1::2], letters[2::2], strict=False))]
    pieces = [writer.add(token) for token in [*pairs, letters[-1]]] + [writer.rest()]
    assert "".join(pieces) == text
    assert all("\ufffd" not in piece for piece in pieces)


class _Paired(Tokenizer):
    """Tokens of two letters: 1000 (a + 1) + b; one letter is itself, or 1000 more."""

    def __init__(self, inner: Tokenizer) -> None:
        self.letters = inner

    def decode(self, ids: Iterable[int]) -> str:
        apart = [[one] if one < 1000 else [one - 1000] if one < 2000 else [one // 1000 - 1, one % 1000] for one in ids]
        return self.letters.decode([letter for several in apart for letter in several])


def test_what_is_no_text_is_said(generator: Generator) -> None:
    with pytest.raises(UserError, match="is not UTF-8 text"):
        generator.generate(["caf\udce9"], SearchConfig(method="greedy"))


def test_marks_in_a_prompt_are_text_unless_they_are_asked_for(generator: Generator) -> None:
    tokenizer = generator.tokenizer
    if not isinstance(tokenizer, Subwords):
        with pytest.raises(UserError, match="special: is for published models"):
            generator.encode("a</s>b", special=True)
        return
    assert tokenizer.special.end not in generator.encode("a</s>b")
    assert generator.encode("a</s>b", special=True).count(tokenizer.special.end or -1) == 1


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_text_ends_before_a_stop_string(generator: Generator, method: str) -> None:
    options = SearchConfig(method=method, max_length=20, seed=1, beam=2)
    free = generator.generate(["The lion"], options)[0].text
    stop = next(letter for letter in free[3:] if letter != "\ufffd")
    (cut,) = generator.generate(["The lion"], options, [stop])
    assert stop not in cut.text
    if method != "beam":
        assert cut.text == free[: free.index(stop)]
        assert "".join(generator.stream("The lion", options, [stop])) == cut.text


def test_a_prompt_longer_than_the_context_is_read_from_its_end(generator: Generator) -> None:
    options = SearchConfig(method="greedy", max_length=1)
    long = "the mouse and " * 20 + "the lion"
    (found,) = generator.generate([long], options)
    assert found.truncated
    assert found.prompt_ids == generator.encode(long)[-23:]


def test_an_empty_prompt_begins_with_what_the_run_knows(generator: Generator) -> None:
    (found,) = generator.generate([""], SearchConfig(method="greedy", max_length=3))
    assert found.prompt_ids == generator.blank
    bare = Generator(generator.model, generator.tokenizer, 24, [], [])
    with pytest.raises(UserError, match="prompt = ''"):
        bare.generate([""], SearchConfig(method="greedy"))
    with pytest.raises(UserError, match="stop = ''"):
        generator.generate(["a"], SearchConfig(method="greedy"), [""])


def test_attention_is_over_the_finished_text(generator: Generator) -> None:
    (found,) = generator.generate(["The lion"], SearchConfig(method="greedy", max_length=4))
    record = found.attention
    assert list(record.sites) == ["decoder.0.self", "decoder.1.self"]
    length = len(found.prompt_ids) + len(found.ids)
    assert record.matrix().shape == (length, length)
    np.testing.assert_allclose(record.matrix().sum(axis=1), 1, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("stride", [1, 7, 24])
def test_perplexity_counts_every_token_once(generator: Generator, stride: int) -> None:
    """Against the plain definition: each token from the window that the stride gives it."""
    ids = generator.tokenizer.encode(TEXT * 2)[:61]
    nats = 0.0
    for place in range(1, len(ids)):
        window = 0 if place <= 24 else math.ceil((place - 24) / stride) * stride
        logits = generator.model.output(generator.model(torch.tensor([ids[window:place]]))[0, -1])
        nats -= torch.log_softmax(logits, dim=-1)[ids[place]].item()
    found = generator.evaluate([Stream(np.array(ids), 100)], stride)
    assert found.scores["loss"] == pytest.approx(nats / 60, rel=1e-4)
    assert found.scores["perplexity"] == pytest.approx(math.exp(nats / 60), rel=1e-3)
    assert found.scores["bits_per_byte"] == pytest.approx(nats / math.log(2) / 100, rel=1e-4)


def test_a_document_is_not_predicted_from_the_one_before(generator: Generator) -> None:
    first, second, border = [3, 5, 6, 7, 8], [3, 9, 10, 5], 3

    def surprise(ids: list[int], border: int | None) -> float:
        scored = Generator(generator.model, generator.tokenizer, 24, [], [], border)
        return float(scored.evaluate([Stream(np.array(ids), len(ids))]).rows[0]["nats"])

    apart = surprise([*first, border], border) + surprise(second, border)
    assert surprise([*first, *second], border) == pytest.approx(apart, rel=1e-5)
    assert surprise([*first, *second], None) != pytest.approx(apart, rel=1e-3)


def test_an_empty_text_counts_for_nothing(generator: Generator) -> None:
    nothing, some = Stream(np.array([], np.uint32), 0), Stream(np.arange(30, dtype=np.uint32) % 7, 30)
    found = generator.evaluate([nothing, some])
    assert found.scores == generator.evaluate([some]).scores
    assert [row["tokens"] for row in found.rows] == [0, 29]
    with pytest.raises(UserError, match="no text to score"):
        generator.evaluate([nothing])


def test_bad_stride(generator: Generator) -> None:
    with pytest.raises(UserError, match="stride = 25: must be from 1 to the context, 24"):
        generator.evaluate([Stream(np.arange(30) % 7, 30)], 25)


def test_files_are_read_as_streams(generator: Generator, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_text(TEXT, encoding="utf8")
    (stream,) = generator.read([str(path)], DataConfig(), BadLines())
    assert stream.bytes == len(TEXT.encode()) + 1
    assert generator.tokenizer.decode(stream.ids.tolist()) == TEXT + "\n"
