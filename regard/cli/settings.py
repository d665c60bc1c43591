"""`regard settings`: what can be set, what it is if nobody does, and what it means; and `--set`, which sets it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from regard.errors import UserError

if TYPE_CHECKING:
    from regard.config import Config, Settings

WORDS = {
    "kind": "the family of models",
    "size": "the size that the values below come from, unless they are given",
    "vocabulary": "entries of the vocabulary; null: the tokenizer's",
    "pad": "the id of padding",
    "layers": "layers, one above the other",
    "encoder_layers": "layers of the encoder, one above the other",
    "decoder_layers": "layers of the decoder, one above the other",
    "width": "width of the vectors between layers",
    "inner": "width inside the feed-forward",
    "heads": "heads of each attention",
    "dropout": "share of the activations that are left out in training",
    "attention_dropout": "share of the attention weights that are left out in training",
    "inner_dropout": "share of the activations inside the feed-forward that are left out in training",
    "activation": "inside the feed-forward",
    "norm": "where the norms stand: before each sublayer, or after its sum",
    "norm_epsilon": "added to the variance in norms",
    "score": "how a query and a key are compared",
    "positions": "how the model is told the places of tokens",
    "position_join": "how places join the embeddings",
    "cell": "kind of the recurrent cells",
    "max_length": "most tokens that the model reads",
    "tie_output": "the output projection is the embedding table",
}
"""Settings that mean the same in every model. All others are described where they stand."""


def settings(
    task: Annotated[str, typer.Argument(help="translate, classify, language, ...")] = "translate",
    model: Annotated[
        str | None, typer.Option(help="A model (regard models); by default the task's.", show_default=False)
    ] = None,
) -> None:
    """List every setting of a task and a model: its name, its value if nothing is said, what it means.

    Any of them can be changed: regard train ... --set train.steps=2000
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from regard.training.start import usual_settings

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("--set", no_wrap=True)
    table.add_column("value", overflow="fold", max_width=18)
    table.add_column("what it means")
    section = ""
    for name, value, meaning in explained(usual_settings(task, model)):
        if section not in ("", name.partition(".")[0]):
            table.add_section()
        section = name.partition(".")[0]
        table.add_row(name, value, meaning)
    console = Console(markup=False)
    (console if console.is_terminal else Console(width=160, markup=False)).print(table)


def explained(config: Config) -> Iterator[tuple[str, str, str]]:
    """Every setting by its whole name, with its value as YAML and its meaning."""
    from regard.config import Settings, scalar

    for section in type(config).model_fields:
        held = getattr(config, section)
        if isinstance(held, Settings):
            for name, value in held.model_dump(mode="json").items():
                yield f"{section}.{name}", scalar(value), meaning(type(held), name)


def meaning(kind: type[Settings], name: str) -> str:
    """What a setting is, in words, and what it may be."""
    own = (parent.model_fields.get(name) for parent in kind.__mro__ if hasattr(parent, "model_fields"))
    said = next((field.description for field in own if field and field.description), WORDS.get(name, ""))
    choices = [str(one) for one in _choices(kind.model_fields[name].annotation)]
    return f"{said} ({', '.join(choices)})" if len(choices) > 1 else said


def _choices(annotation: Any) -> list[Any]:
    """The values of a `Literal`, also of one among others."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [one for part in get_args(annotation) for one in _choices(part)]


def parse_settings(pairs: Sequence[str]) -> dict[str, object]:
    """Values are read as YAML: numbers, true/false, null and [lists] mean themselves, anything else is text."""
    import yaml

    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UserError(f"--set {pair!r}: must be key=value (try --set train.steps=2000)")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        if isinstance(value, dict):  # "summarize:" is text
            value = text
        if isinstance(value, str):  # YAML 1.1 reads 1e-3 as text
            with contextlib.suppress(ValueError):
                value = float(value)
        found[key] = value
    return found
