"""Published decoders as language models of ours, and back: folders of GPT-1, GPT-2 and Llama."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import processors

from regard.config import Config, SearchConfig, validated
from regard.data.tokenizer_files import open_tokenizer
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError, listed
from regard.hub.folder import Folder, read_json, write_folder
from regard.hub.gpt2 import GPT1, GPT2
from regard.hub.layout import Layout
from regard.hub.llama import LLAMA
from regard.hub.tokenizer import write_tokenizer
from regard.models import parse_model
from regard.tasks.language import LanguageOptions
from regard.tasks.saved import Saved

LAYOUTS: dict[str, Layout] = {layout.model_type: layout for layout in (GPT1, GPT2, LLAMA)}
ARCHITECTURES = {"openai-gpt": "OpenAIGPTLMHeadModel", "gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM"}


def read_decoder(folder: Folder) -> Saved:
    layout = LAYOUTS[folder.model_type]
    model = parse_model(layout.settings(folder.config))
    weights, unused, missing = layout.to_ours(folder.weights, model.model_dump())
    if missing:
        raise UserError(f"{folder.path}: weights are missing: {listed(missing)}")
    text, context = open_tokenizer(folder.path), model.longest_input or 0
    config = Config(
        task="language",
        options=LanguageOptions(block=context),
        model=model,
        decode=validated(SearchConfig, {"method": "sample", **_sampling(folder)}),
    )
    before = list(text.before)
    blank = [] if text.special.end is None else [text.special.end]
    facts = {"context": context, "before": before, "blank": blank, "ends": _ends(folder, text)}
    for name in weights:
        weights[name] = weights[name].float()  # one after the other: what it was made from is let go
    return Saved(folder.path, config, weights, text, facts, unused=unused)


def write_decoder(saved: Saved, out: Path) -> None:
    """The inverse of `read_decoder`, into a folder that exists; places that were never trained are left out."""
    settings = saved.config.model.model_dump()
    context = saved.facts.get("context", settings["max_length"])
    layout = next(one for one in LAYOUTS.values() if _fits(one, settings))
    inner, usual = settings["inner"], 4 * settings["width"]
    if "inner" not in layout.fields and inner not in (None, usual):
        raise UserError(f"model.inner = {inner}: cannot be written as {layout.model_type}, which has {usual}")
    ours = {**settings, "vocabulary": len(saved.weights["words.weight"]), "max_length": context}
    weights = {name: weight[:context] if name == "places.weight" else weight for name, weight in saved.weights.items()}
    special = saved.tokenizer.special
    ends = [token for token in (special.end, *saved.facts.get("ends", [])) if token is not None]
    marks = {
        "bos_token_id": special.begin,
        "eos_token_id": ends if len(ends) > 1 else special.end,
        "pad_token_id": special.pad,
    }
    theirs = {
        "architectures": [ARCHITECTURES[layout.model_type]],
        "dtype": "float32",
        **layout.config(ours),
        **{name: value for name, value in marks.items() if value is not None},
    }
    write_folder(out, theirs, layout.to_theirs(weights, ours))
    write_tokenizer(out, saved.tokenizer, _beginning(saved.tokenizer, saved.facts.get("before", [])))


def _beginning(tokenizer: Tokenizer, before: Sequence[int]) -> tokenizers.Tokenizer:
    """One that puts before a text what ours was trained with there, and nothing behind it."""
    inner = tokenizers.Tokenizer.from_str(tokenizer.inner.to_str())
    names = [inner.id_to_token(number) for number in before]
    inner.post_processor = processors.TemplateProcessing(
        single=[*names, "$A"], pair=[*names, "$A", "$B"], special_tokens=list(zip(names, before, strict=True))
    )
    return inner


def _said(folder: Folder) -> dict[str, Any]:
    """What the folder says of generation; the file of its own before the model's."""
    path = folder.path / "generation_config.json"
    return {**folder.config, **(read_json(path) if path.is_file() else {})}


def _sampling(folder: Folder) -> dict[str, Any]:
    """How its texts are meant to be drawn, as far as that is said and it is something to us."""
    said = _said(folder)
    drawing = ("temperature", "top_k", "top_p", "min_p", "typical_p") if said.get("do_sample") else ()
    return {name: said[name] for name in (*drawing, "repetition_penalty") if said.get(name)}


def _ends(folder: Folder, text: Tokenizer) -> list[int]:
    """Tokens that end a text beside the tokenizer's end mark."""
    said = _said(folder).get("eos_token_id")
    several = said if isinstance(said, list) else [] if said is None else [said]
    return [one for one in several if one != text.special.end]


def _fits(layout: Layout, settings: dict[str, object]) -> bool:
    return all(settings.get(name) == value for name, value in layout.means.items())
