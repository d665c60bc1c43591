"""Published encoder-decoders as trained models of ours, and back: weights, tokenizer, and how outputs are searched for.

config.json              -> settings of the model, the token before the first
generation_config.json   -> `decode`: beams, lengths, what may not repeat
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import processors

from regard.data.tokenizer_files import open_tokenizer
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError, listed
from regard.hub.bart import BART
from regard.hub.folder import Folder, read_json, write_folder
from regard.hub.layout import Layout
from regard.hub.marian import MARIAN
from regard.hub.t5 import T5, T5_GATED
from regard.hub.tokenizer import write_tokenizer
from regard.models import parse_model
from regard.tasks import settings_of
from regard.tasks.marks import Marks
from regard.tasks.saved import Saved

ARCHITECTURES = {
    "bart": "BartForConditionalGeneration",
    "t5": "T5ForConditionalGeneration",
    "marian": "MarianMTModel",
}
_DECODE = {
    "beam": "num_beams",
    "length_penalty": "length_penalty",
    "no_repeat_ngram": "no_repeat_ngram_size",
    "min_length": "min_length",
    "max_length": "max_length",
    "early_stopping": "early_stopping",
}


def open_seq2seq(folder: Folder) -> Saved:
    layout = {
        "bart": BART,
        "marian": MARIAN,
        "t5": T5_GATED if folder.config.get("feed_forward_proj") == "gated-gelu" else T5,
    }[folder.model_type]
    model = parse_model(layout.settings(folder.config, folder.weights))
    weights, unused, missing = layout.to_ours(folder.weights, model.model_dump())
    if missing:
        raise UserError(f"{folder.path}: weights are missing: {listed(missing)}")
    text = open_tokenizer(folder.path)
    marks = Marks.of(text, model.model_dump()["decoder_start"])
    values: dict[str, Any] = {"task": "translate", "model": model.model_dump(), "decode": _decode(folder, marks)}
    if (most := model.longest_input) is not None:
        values["data"] = {"max_length": most - 2}
    config, _ = settings_of([("config.json", values)])
    return Saved(folder.path, config, weights, text, {"any_text": True}, unused=unused)


def export_seq2seq(saved: Saved, out: Path) -> None:
    config, tokenizer = saved.config, saved.tokenizer
    ours = config.model.model_dump()
    layout = _layout(ours)
    marks = Marks.of(tokenizer, ours["decoder_start"])
    table = next(
        weight for name, weight in saved.weights.items() if name in ("words.weight", "target_embedding.weight")
    )
    ours |= {"vocabulary": len(table), "pad": marks.pad, "decoder_start": marks.start}
    tokens = {
        "pad_token_id": marks.pad,
        "eos_token_id": marks.end,
        "bos_token_id": tokenizer.special.begin,
        "decoder_start_token_id": marks.start,
        "forced_bos_token_id": marks.opening[0] if marks.opening else None,
        "forced_eos_token_id": marks.end if config.decode.force_end else None,
    }
    theirs = {"architectures": [ARCHITECTURES[layout.model_type]], "dtype": "float32", **layout.config(ours), **tokens}
    write_folder(out, theirs, layout.to_theirs(saved.weights, ours))
    decode = config.decode
    search: dict[str, Any] = {name: getattr(decode, setting) for setting, name in _DECODE.items()}
    search |= {"num_beams": decode.beam if decode.method == "beam" else 1, "do_sample": decode.method == "sample"}
    first = 1 + len(marks.opening)
    longest = (decode.max_length or 511) + first
    search |= {
        "min_length": decode.min_length and decode.min_length + first,
        "max_length": min(longest, config.model.longest_input or longest),
    }
    search["bad_words_ids"] = [[token] for token in marks.never] or None
    _write_json(out / "generation_config.json", {**tokens, **search})
    write_tokenizer(out, tokenizer, _ending(tokenizer, marks))


def _layout(ours: Mapping[str, Any]) -> Layout:
    if ours["kind"] == "t5":
        return T5_GATED if ours["gated"] else T5
    return BART if ours["kind"] == "bart" else MARIAN


def _decode(folder: Folder, marks: Marks) -> dict[str, Any]:
    """Older folders say in config.json what newer ones say in a file of its own. Their lengths count the marks before
    the text."""
    path = folder.path / "generation_config.json"
    said = {**folder.config, **(read_json(path) if path.is_file() else {})}
    for side in ("min", "max"):  # lengths that do not count the mark before the first token say the same
        if said.get(f"{side}_new_tokens") is not None:
            said[f"{side}_length"] = said[f"{side}_new_tokens"] + 1
    found = {setting: said[name] for setting, name in _DECODE.items() if said.get(name) is not None}
    for name, least in (("min_length", 0), ("max_length", 1)):
        if found.get(name):
            found[name] = max(least, found[name] - 1 - len(marks.opening))
    found |= {"early_stopping": found.get("early_stopping") is True, "force_end": _forced_end(said, marks)}
    return {**found, "method": "beam" if found.get("beam", 1) > 1 else "greedy"}


def _forced_end(said: Mapping[str, Any], marks: Marks) -> bool:
    forced = said.get("forced_eos_token_id")
    return marks.end in (forced if isinstance(forced, list) else [forced])


def _ending(tokenizer: Tokenizer, marks: Marks) -> tokenizers.Tokenizer:
    """One that puts the end mark behind a text by itself."""
    inner = tokenizers.Tokenizer.from_str(tokenizer.inner.to_str())
    if inner.post_processor is None:
        end = inner.id_to_token(marks.end)
        inner.post_processor = processors.TemplateProcessing(
            single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, marks.end)]
        )
    return inner


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf8")
