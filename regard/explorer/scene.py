"""What can be looked at. A new kind of run becomes visible in the page by one small adapter: a `Subject` and a `Scene`.

    Subject   an opened run: what it is, an example for it, and `look(wish)` -> Scene
    Scene     one input as the model read it: its axes of tokens, and `replay(recording)`, one forward pass over it

Everything else (matrices, labels of heads, the inside of a head) is computed from these two, the same for all runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.nn.record import AttentionRecord, Axis, Recording, records

TOKENS = 2048
"""The longest input, and output, that the page shows."""
MOST = 5
"""Classes and choices that the page shows, the likeliest."""


@dataclass(frozen=True)
class Wish:
    """What to look at: an input, what is switched off, and how the output must begin (token ids)."""

    text: str
    off: tuple[str, ...] = ()
    forced: tuple[int, ...] = ()
    checkpoint: str = ""


class Scene(ABC):
    """One input as a model read it, and what it made of it."""

    output: str
    score: float | None
    note: str = ""  # what a person should know about this answer
    specials: frozenset[str] = frozenset()  # labels of the tokens that stand for no text: <s>, [SEP], ...
    image: Any = None  # for pictures: what the first axis is laid over
    answers: list[tuple[str, float]] = []  # noqa: RUF012 - what it says of the input, each with its probability

    @abstractmethod
    def replay(self, recording: Recording) -> None:
        """One forward pass over the finished input and output."""

    @abstractmethod
    def axes(self, site: str) -> tuple[Axis, Axis]:
        """The tokens that ask at `site`, and those that they look at."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """Tokens of the longest axis."""

    def record(self, recording: Recording) -> AttentionRecord:
        self.replay(recording)
        return next(records(recording, 1, lambda site, _: self.axes(site)))

    def decoding(self) -> dict[str, Any]:
        """Step by step: the candidates of each step and the search tree."""
        raise UserError("this run does not write its output step by step: there is no decoding to look at")


@dataclass
class Subject(ABC):
    """An opened run, as the page sees it."""

    name: str
    model: str
    task: str
    network: nn.Module
    examples: list[str]
    about: dict[str, Any] = field(default_factory=dict)
    verbs: frozenset[str] = frozenset()
    """Beside looking: "decode" (step by step, with forced tokens), "switch" (heads off)."""

    @abstractmethod
    def look(self, wish: Wish) -> Scene: ...

    def check(self, wish: Wish) -> None:
        """Wishes that this kind of run cannot fulfil are answered before any work."""
        if wish.off and "switch" not in self.verbs:
            raise UserError(f"{self.name}: has no heads that could be switched off")
        if wish.forced and "decode" not in self.verbs:
            raise UserError(f"{self.name}: does not write token by token, so no token can be forced")


def check_forced(forced: Sequence[int], tokenizer: Tokenizer) -> None:
    for token in forced:
        if token >= len(tokenizer):
            raise UserError(f"forced = {token}: no such token; there are {len(tokenizer):,}, from 0 on")


def too_long(tokens: int, limit: int = TOKENS) -> UserError:
    return UserError(f"The text has {tokens:,} tokens; the page shows at most {limit:,}. Shorten it and try again.")
