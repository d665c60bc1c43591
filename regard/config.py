"""Typed settings. Every choice is a value here or in a model's own config; an unknown key is an error.

A run's config is put together from layers, each later one winning: defaults, the model's size, the corpus, a recipe
file, flags. `assemble` remembers which layer each value came from, and `dump` writes that beside the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError, model_validator

from regard.errors import UserError, nearest

Values = Mapping[str, object]
Kind = TypeVar("Kind", bound="Settings")


class Settings(BaseModel):
    """The base of all settings: immutable, nothing unknown, numbers may not be NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)


Decay = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class ModelConfig(Settings):
    """What every model's config has. `vocabulary` is the tokenizer's unless given."""

    kind: str
    size: str = ""
    vocabulary: int | None = Field(default=None, ge=1)
    pad: int = 0

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        width, heads = getattr(self, "width", 0), getattr(self, "heads", 1)
        if width % heads and getattr(self, "head_width", None) is None:
            raise ValueError(f"width = {width}: must be a multiple of heads = {heads}")
        return self

    @property
    def longest_input(self) -> int | None:
        """Tokens that the model can read, if there is a limit."""
        return getattr(self, "max_length", None)


class DataConfig(Settings):
    """Where examples come from and how they are divided."""

    train: list[str] = Field(default=[], description="files, folders, globs, or the name of a built-in corpus")
    valid: list[str] = Field(default=[], description="files to validate on; without them a part of train is held out")
    test: list[str] = Field(default=[], description="files to score at the end; without them a part is held out")
    columns: list[str] | None = Field(default=None, description="names or numbers of the source and target columns")
    valid_count: int = Field(default=1000, ge=1, description="held out to validate on; at most 5% of pairs, else 10%")
    test_count: int = Field(
        default=1000, ge=0, description="held out for the final score; at most 5% of pairs, else 10%"
    )
    max_length: int = Field(default=256, ge=1, description="longest text, or side of a pair, in tokens")
    max_bad_share: float = Field(default=0.1, ge=0, le=1, description="share of unusable lines that stops the run")
    seed: Seed = Field(default=1, description="chooses what is held out")


class TokenizerConfig(Settings):
    kind: Literal["bpe", "byte-bpe", "wordpiece", "unigram", "char", "word"] = Field(
        default="bpe", description="how texts are cut into tokens"
    )
    vocabulary: int = Field(default=8000, ge=1, description="most entries the vocabulary may have")
    lowercase: bool = Field(default=False, description="make all letters small, in outputs too")
    file: str | None = Field(default=None, description="a trained tokenizer.json to use instead of training one")


class TrainConfig(Settings):
    steps: int = Field(default=8000, ge=1, description="updates of the weights, at most; see patience")
    epochs: float | None = Field(default=None, gt=0, description="how often all examples are seen; then steps follow")
    batch_tokens: int = Field(default=4096, ge=1, description="padded tokens on the longer side of one micro-batch")
    accumulate: int = Field(default=1, ge=1, description="micro-batches per step, on each rank")
    optimizer: Literal["adam", "adamw", "muon"] = Field(default="adam", description="what turns gradients into steps")
    learning_rate: float = Field(default=1e-3, gt=0, description="the highest rate, reached after warm-up")
    schedule: Literal["inverse-sqrt", "cosine", "linear", "constant"] = Field(
        default="inverse-sqrt", description="how the rate falls after warm-up"
    )
    warmup: int = Field(default=400, ge=0, description="steps in which the rate rises from 0")
    betas: tuple[Decay, Decay] = Field(default=(0.9, 0.98), description="decays of Adam's two moving averages")
    weight_decay: float = Field(
        default=0.0, ge=0, description="share of the rate by which matrices shrink at each step"
    )
    layer_decay: float = Field(default=1.0, gt=0, le=1, description="rate of each layer below the top, times this")
    freeze: int = Field(default=0, ge=-1, description="lowest layers (and embeddings) that stay as they are; -1 = all")
    clip: float = Field(default=1.0, ge=0, description="largest norm of the gradient; 0 = no clipping")
    label_smoothing: float = Field(default=0.1, ge=0, lt=1, description="share of the truth given to all answers alike")
    average: float = Field(default=0.999, ge=0, lt=1, description="decay of the moving average of weights; 0 = none")
    validate_every: int = Field(default=500, ge=1, description="steps between validations")
    validate_sentences: int = Field(default=500, ge=0, description="sentences translated at each validation")
    checkpoint_every: int | None = Field(default=None, ge=1, description="steps between checkpoints; as validations")
    patience: int = Field(default=8, ge=0, description="validations without a better score before stopping; 0 = never")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="of products: bfloat16 where the GPU or the CPU multiplies in it, else float32"
    )
    device: str = Field(default="auto", description="cpu, cuda, cuda:1, mps; auto: a GPU if there is one")
    seed: Seed = Field(default=1, description="decides the first weights, the order of examples, and dropout")

    @model_validator(mode="after")
    def _agreeing(self) -> TrainConfig:
        if self.optimizer == "adam" and self.weight_decay:
            raise ValueError(f"weight_decay = {self.weight_decay}: adam has none (try optimizer = adamw)")
        return self


class SearchConfig(Settings):
    """How an output is searched for; see `regard.decoding`."""

    method: Literal["greedy", "beam", "sample"] = Field(default="beam", description="how an output is searched for")
    beam: int = Field(default=4, ge=1, description="outputs that are followed at once")
    n_best: int = Field(default=1, ge=1, description="outputs to give for each input")
    length_penalty: float = Field(default=1.0, ge=0, description="score / length ** penalty; 0 = none")
    early_stopping: bool = Field(default=False, description="end a search at `beam` finished outputs, best or not")
    force_end: bool = Field(default=False, description="in its last place an output has the end mark, at no cost")
    no_repeat_ngram: int = Field(default=0, ge=0, description="forbid n-grams of this size to repeat; 0 = allow")
    min_length: int = Field(default=0, ge=0, description="tokens before an output may end")
    max_length: int | None = Field(default=None, ge=1, description="tokens; by default 10 + twice the source's")
    temperature: float = Field(default=1.0, ge=1e-3, description="sampling: below 1 the likely becomes likelier")
    top_k: int = Field(default=0, ge=0, description="sample among the k likeliest; 0 = all")
    top_p: float = Field(default=1.0, gt=0, le=1, description="sample within this share of probability")
    min_p: float = Field(default=0.0, ge=0, lt=1, description="sample what has this share of the likeliest's chance")
    typical_p: float = Field(
        default=1.0, gt=0, le=1, description="sample the most typical of this share (Meister 2022)"
    )
    repetition_penalty: float = Field(
        default=1.0, ge=0.01, le=100, description="over 1: what was said is less likely; 1 = none"
    )
    seed: Seed = Field(default=1, description="decides what is drawn in sampling")
    batch_tokens: int = Field(default=4096, ge=1, description="padded source tokens decoded together")

    @model_validator(mode="after")
    def _agreeing(self) -> SearchConfig:
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length = {self.min_length}: is more than max_length = {self.max_length}")
        if self.method == "greedy" and self.n_best > 1:
            raise ValueError(f"n_best = {self.n_best}: greedy search has one output (try method = beam)")
        return self

    def wishing(self, wishes: Mapping[str, Any], section: str = "decode.") -> SearchConfig:
        """With what is asked for, where it is not None. Who names only a beam means beam search, and greedy by 1; and
        who wants several outputs of a greedy run means beam search too."""
        given = {name: value for name, value in wishes.items() if value is not None}
        several = given.get("n_best", 1) != 1
        if "beam" in given and "method" not in given:
            given["method"] = "greedy" if given["beam"] == 1 and not several else "beam"
        if several and self.method == "greedy":
            given.setdefault("method", "beam")
        if given.get("method") == "beam" and self.beam == 1:  # a published folder's greedy search
            given.setdefault("beam", SearchConfig.model_fields["beam"].default)
        found = validated(SearchConfig, {**self.model_dump(), **given}, section)
        if given.get("beam", 1) != 1 and found.method != "beam":
            raise UserError(
                f"{section}beam = {found.beam}: is for beam search, and the method is {found.method} "
                "(try method = beam)"
            )
        idle = [name for name in ("temperature", "top_k", "top_p", "min_p", "typical_p") if name in given]
        if idle and found.method != "sample":
            name = idle[0]
            raise UserError(
                f"{section}{name} = {getattr(found, name):g}: is for sampling, and the method is {found.method} "
                "(try method = sample)"
            )
        return found


class Config(Settings):
    """All of a run."""

    task: str
    start: str | None = Field(default=None, description="a run or a published folder to begin with: --from")
    data: DataConfig = DataConfig()
    options: SerializeAsAny[Settings] = Field(default=Settings(), description="the task's own settings")
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: SerializeAsAny[ModelConfig]
    train: TrainConfig = TrainConfig()
    decode: SearchConfig = SearchConfig()


def flatten(values: Values, prefix: str = "") -> Iterator[tuple[str, object]]:
    """`{"train": {"steps": 5}}` -> `("train.steps", 5)`; keys that are dotted already stay as they are."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def nest(values: Values) -> dict[str, Any]:
    """The inverse of `flatten`."""
    nested: dict[str, Any] = {}
    for dotted, value in values.items():
        *path, last = dotted.split(".")
        inner = nested
        for key in path:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise UserError(f"{dotted}: {key!r} is a value, not a section")
        inner[last] = value
    return nested


Sections = Mapping[str, Callable[[Mapping[str, Any]], Settings]]


def assemble(layers: list[tuple[str, Values]], sections: Sections) -> tuple[Config, dict[str, str]]:
    """One config from layers (origin, values), and the origin of each value that is not a default.

    `sections` turn all values into the config of a section that depends on them: the model's own, the task's own.
    """
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        for key, value in flatten(layer):
            values[key], origins[key] = value, origin
    nested = nest(values)
    if not isinstance(nested.get("model", {}), dict):
        raise UserError(f"model = {nested['model']!r}: must be a section with a kind (try --model transformer-tiny)")
    parsed = {name: parse(nested) for name, parse in sections.items()}
    return validated(Config, {**nested, **parsed}), origins


def validated(kind: type[Kind], values: Mapping[str, Any], section: str = "") -> Kind:
    """`kind` from plain values; what is wrong is said with the field, the value and what is allowed."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise UserError("\n".join(_explain(kind, item, section) for item in error.errors())) from None


def _explain(kind: type[Settings], item: Mapping[str, Any], section: str) -> str:
    path = [str(part) for part in item["loc"]]
    dotted = section + ".".join(path)
    if item["type"] == "extra_forbidden":
        owner: Any = kind
        for part in path[:-1]:
            owner = owner.model_fields[part].annotation
        return f"{dotted}: unknown key{nearest(path[-1], owner.model_fields)}"
    if item["type"] == "missing":
        return f"{dotted}: missing"
    if not path:  # a rule about several fields at once names them itself
        return section + str(item["msg"]).removeprefix("Value error, ")
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"{dotted} = {item['input']!r}: {message.replace('input should be', 'must be')}"


def dump(config: Config, origins: Mapping[str, str]) -> str:
    """The config as YAML, each value with where it came from."""
    lines = []
    for name, section in config.model_dump(mode="json").items():
        if not isinstance(section, dict):
            lines.append(f"{name}: {scalar(section)}")
            continue
        lines.append(f"{name}:" + ("" if section else " {}"))
        for key, value in section.items():
            origin = origins.get(f"{name}.{key}", "default")
            lines.append(f"  {key}: {scalar(value)}".ljust(40) + f"  # {origin}")
    return "\n".join(lines) + "\n"


def scalar(value: object) -> str:
    """One value as YAML."""
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6)
    return text.removesuffix("\n").removesuffix("\n...")


def read_origins(path: Path) -> dict[str, str]:
    """What `dump` wrote beside each value."""
    origins, section = {}, ""
    for line in path.read_text(encoding="utf8").splitlines():
        if not line.startswith(" "):
            section = line.partition(":")[0]
        elif "  # " in line:
            key = line.partition(":")[0].strip()
            origins[f"{section}.{key}"] = line.rpartition("  # ")[2]
    return origins


def read_yaml(path: Path) -> dict[str, Any]:
    """A recipe or a run's config as plain values."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML ({error})".replace("\n", " ")) from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: must hold sections such as 'train:' and 'model:'")
    return values
