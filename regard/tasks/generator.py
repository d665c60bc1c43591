"""A prompt in, its continuation out: whole, or piece by piece as it is written.

prompt -> ids -> search -> text          (fused kernels, nothing recorded)
continuation.attention -> the finished text replayed once, with a record

A model sees `context` tokens at once. A longer prompt is read from its last tokens on; a text that outgrows the
context goes on from its last half, as often as it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import DataConfig, SearchConfig
from regard.data.badlines import BadLines
from regard.data.language import Stream, Texts
from regard.data.subwords import Subwords
from regard.data.tokenizers import Tokenizer
from regard.data.words import SPACE
from regard.decoding import Hypothesis, Limits, search
from regard.decoding.choices import Choices
from regard.decoding.one_by_one import drawn, likeliest, steps
from regard.errors import UserError
from regard.models.decoder import Decoder
from regard.nn.record import AttentionRecord, Axis, Recording, records
from regard.tasks.base import Evaluation, Predictor
from regard.tasks.writer import Writer

ROWS = 256
"""Tokens whose logits are held at once when a text is scored."""
TOKENS = 200
"""New tokens where nothing else is asked for."""


@dataclass(frozen=True)
class Continuation:
    """One continued prompt. `others` are further ones; `truncated` says that the prompt was too long to read whole."""

    prompt: str
    text: str
    score: float
    prompt_ids: list[int]
    ids: list[int]
    ended: bool
    generator: Generator = field(repr=False)
    others: list[Continuation] = field(default_factory=list)
    truncated: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """As JSON."""
        row = {"prompt": self.prompt, "text": self.text, "score": self.score, "ended": self.ended}
        return row | ({"truncated": True} if self.truncated else {})

    @cached_property
    def attention(self) -> AttentionRecord:
        """All sites and heads, over the prompt and what was written."""
        return self.look(Recording())

    def look(self, recording: Recording) -> AttentionRecord:
        """As `attention`, but only the sites, heads and rows that `recording` asks for."""
        return self.generator.replay([*self.prompt_ids, *self.ids], recording)


@dataclass(frozen=True)
class Reading:
    """What is read of a text, the most tokens to write after it, and the number of those that were written before."""

    ids: list[int]
    tokens: int
    number: int


class Generator(Predictor):
    """A trained decoder with its tokenizer.

    `before` stands before every prompt (the mark that begins a document); `blank` is read where there is no prompt.
    `border` is the mark which nothing after it sees beyond: a document sees itself only. `ends` are tokens that end a
    text beside the end mark, as in models that were taught to answer.
    """

    def __init__(
        self,
        model: Decoder,
        tokenizer: Tokenizer,
        context: int,
        before: Sequence[int],
        blank: Sequence[int],
        border: int | None = None,
        ends: Sequence[int] = (),
    ) -> None:
        self.model, self.tokenizer, self.context = model, tokenizer, context
        self.before, self.blank, self.border, self.ends = list(before), list(blank), border, list(ends)

    def using(self, model: Decoder) -> Generator:
        """The same one, by another model."""
        return Generator(model, self.tokenizer, self.context, self.before, self.blank, self.border, self.ends)

    @property
    def end(self) -> int:
        """The end mark; an id that no model predicts, where there is none."""
        end = self.tokenizer.special.end
        return -1 if end is None else end

    def encode(self, prompt: str, special: bool = False) -> list[int]:
        """The ids that a prompt is read as; with `special`, marks that are written in it are what they say."""
        if special and not isinstance(self.tokenizer, Subwords):
            raise UserError("special: is for published models; this tokenizer has no marks that can be written")
        ids = []
        if isinstance(self.tokenizer, Subwords):
            ids = self.tokenizer.encode_batch([prompt], special)[0] if prompt else []
        elif prompt:
            ids = self.tokenizer.encode_batch([prompt])[0]
            if ids and self.tokenizer.inner.id_to_token(ids[0]) == SPACE and not prompt.startswith(" "):
                ids = ids[1:]  # the space before the first word, where it is a token of its own, was not asked for
        ids = [*self.before, *ids] if not special or ids[: len(self.before)] != self.before else ids
        ids = ids or self.blank
        if not ids:
            raise UserError("prompt = '': this model needs something to begin with (try a word)")
        return ids

    def generate(
        self,
        prompts: Sequence[str],
        options: SearchConfig,
        stop: Sequence[str] | str = (),
        choices: Sequence[str] | str = (),
        special: bool = False,
    ) -> list[Continuation]:
        """The continuations of prompts, in their order; `options.n_best` of each.

        A text ends with the model's end mark, after `options.max_length` tokens, or where it contains a string of
        `stop`, which is cut off. With `choices`, it is one of these strings. With `special`, a prompt may contain the
        model's own marks ("<|im_start|>user ...").
        """
        stop, read = _strings(stop, "stop"), [self.encode(prompt, special) for prompt in prompts]
        if choices:
            names = _strings(choices, "choices")
            return [self._chosen(prompt, ids, options, names) for prompt, ids in zip(prompts, read, strict=True)]
        return [
            self._continued(prompt, ids, number, options, stop)
            for number, (prompt, ids) in enumerate(zip(prompts, read, strict=True))
        ]

    def stream(
        self, prompt: str, options: SearchConfig, stop: Sequence[str] | str = (), special: bool = False
    ) -> Iterator[str]:
        """The continuation of a prompt, piece by piece; a piece never ends within a character, or within a string that
        may become one of `stop`. Put together they are what `generate` gives."""
        stop = _strings(stop, "stop")
        if options.method == "beam":
            return iter([self.generate([prompt], options, stop, special=special)[0].text])
        return self._written(Writer(self.tokenizer, self.encode(prompt, special), stop), options)

    @torch.inference_mode()  # entered anew for each piece, which another thread may ask for
    def _written(self, writer: Writer, options: SearchConfig) -> Iterator[str]:
        left, number = options.max_length or TOKENS, 0
        while left > 0:
            reading = self._reading(writer.ids, left, number)
            source, limits = self._search(reading, options, all_ids=writer.ids)
            by_chance = drawn([np.random.default_rng((options.seed, limits.numbers[0], 0))], options)
            choose = by_chance if options.method == "sample" else likeliest
            for step in steps(self.model, source, options, limits, choose):
                if step.tokens[0] in (self.end, *self.ends):
                    yield writer.rest()
                    return
                yield writer.add(step.tokens[0])
                if writer.stopped:
                    return
            left, number = left - reading.tokens, number + reading.tokens
        yield writer.rest()

    def _reading(self, ids: list[int], tokens: int, number: int) -> Reading:
        """Of ids, what is read before up to so many tokens are written; after the first time, half of the context."""
        read = ids[-max(1, self.context // 2 if number else self.context - 1) :]
        return Reading(read, min(tokens, self.context - len(read)), number)

    def _search(
        self,
        reading: Reading,
        options: SearchConfig,
        stop: Sequence[str] = (),
        sentence: int = 0,
        all_ids: Sequence[int] | None = None,
    ) -> tuple[Tensor, Limits]:
        """What a search is given: all of the prompt but its last token, and the limits. `all_ids` is the whole text so
        far, where only the end of it is read."""
        special = self.tokenizer.special
        unwanted = {special.pad, special.unknown, special.begin, special.first, special.mask, special.separator}
        limits = Limits(
            begin=[reading.ids[-1]],
            end=self.end,
            lengths=[reading.tokens],
            never=[token for token in unwanted if token is not None and token != self.end],
            numbers=[sentence + 1_000_003 * reading.number],
            said=[list(all_ids or reading.ids)],
            stop=self._stop(reading.ids, stop) if stop or self.ends else None,
        )
        return torch.tensor([reading.ids[:-1]], dtype=torch.long, device=self.device), limits

    def _continued(
        self, prompt: str, ids: list[int], number: int, options: SearchConfig, stop: Sequence[str]
    ) -> Continuation:
        wanted = options.max_length or TOKENS
        reading = self._reading(ids, wanted, 0)
        source, limits = self._search(reading, options, stop, number, ids)
        found = [
            self._gone_on(ids, one, options, stop, number, wanted)
            for one in search(self.model, source, options, limits)[0]
        ]
        return self._continuation(prompt, ids, reading.ids, found, stop)

    def _gone_on(
        self, prompt: list[int], one: Hypothesis, options: SearchConfig, stop: Sequence[str], number: int, wanted: int
    ) -> Hypothesis:
        """An output that the context was too short for, with the rest of it."""
        single, ids, ended = options.model_copy(update={"n_best": 1}), list(one.ids), one.ended
        while not ended and len(ids) < wanted and ids[-1] not in self.ends:
            reading = self._reading([*prompt, *ids], wanted - len(ids), len(ids))
            source, limits = self._search(reading, single, stop, number, [*prompt, *ids])
            more = search(self.model, source, single, limits)[0][0]
            ids, ended = [*ids, *more.ids], more.ended
        return Hypothesis(ids[:-1] if ids[-1:] and ids[-1] in self.ends else ids, one.score, ended)

    def _chosen(self, prompt: str, ids: list[int], options: SearchConfig, choices: Sequence[str]) -> Continuation:
        """The best of given strings, by the search of the options over their tokens."""
        names: dict[tuple[int, ...], str] = {}
        for choice in choices:
            output = self._after(prompt, choice)
            if self.tokenizer.special.unknown in output:
                raise UserError(f"choices: {choice!r} has a part that the model does not know")
            if (other := names.setdefault(output, choice)) != choice:
                raise UserError(f"choices: {other!r} and {choice!r} are the same to the model; leave one out")
        room = 1 + max(map(len, names))
        if room >= self.context:
            raise UserError(f"choices: the longest has {room - 1} tokens; the context is {self.context}")
        read = ids[-(self.context - room) :]
        options = options.model_copy(update={"no_repeat_ngram": 0})  # a choice may repeat itself
        source, limits = self._search(Reading(read, room, 0), options)
        allowed = Choices(list(names), self.end)
        limits = replace(limits, never=(), allowed=allowed, stop=allowed.complete if self.end < 0 else None)
        found = self._continuation(prompt, ids, read, search(self.model, source, options, limits)[0], ())
        made = [replace(one, text=names.get(tuple(one.ids), one.text)) for one in (found, *found.others)]
        return replace(made[0], others=made[1:])

    def _after(self, prompt: str, choice: str) -> tuple[int, ...]:
        """The tokens of a choice as they follow the prompt; as they would begin a text, where they cannot be parted."""
        before, both = self.encode(prompt) if prompt else list(self.before), self.encode(prompt + choice)
        if both[: len(before)] == before and len(both) > len(before):
            return tuple(both[len(before) :])
        return tuple(self.tokenizer.encode_batch([choice])[0])

    def _continuation(
        self, prompt: str, ids: list[int], read: list[int], found: Sequence[Hypothesis], stop: Sequence[str]
    ) -> Continuation:
        made = []
        for one in found:
            writer = Writer(self.tokenizer, list(read), stop)
            text = "".join(writer.add(token) for token in one.ids if not writer.stopped)
            text += "" if writer.stopped else writer.rest()
            made.append(Continuation(prompt, text, one.score, read, one.ids, one.ended, self, [], len(read) < len(ids)))
        return replace(made[0], others=made[1:])

    def _stop(self, prompt: list[int], stop: Sequence[str]) -> Callable[[Sequence[int]], bool]:
        window = 4 * max(map(len, stop), default=0)  # tokens: a character has four bytes at most

        def stopped(ids: Sequence[int]) -> bool:
            if ids[-1] in self.ends or not stop:
                return ids[-1] in self.ends
            before, last = [*prompt[-4:], *ids[:-window]][-4:], ids[-window:]
            text = self.tokenizer.decode([*before, *last])[len(self.tokenizer.decode(before)) :]
            return any(one in text for one in stop)

        return stopped

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @torch.inference_mode()
    def replay(self, ids: list[int], wanted: Recording) -> AttentionRecord:
        """The attention over a finished text, from one forward pass; of a long one, over its last `context` tokens."""
        recording, ids = wanted.again(), ids[-self.context :]
        self.model(torch.tensor([ids], device=self.device), record=recording)
        axis = Axis(self.tokenizer.tokens(ids), self.tokenizer.word_groups(ids))
        return next(records(recording, 1, lambda site, index: (axis, axis)))

    def read(self, files: Sequence[str], data: DataConfig, bad: BadLines) -> list[Stream]:
        """The documents of files, each as one stream of tokens."""
        streams = []
        for document in Texts(files):
            texts = list(document)
            parts = [np.array(row, dtype=np.uint32) for row in self.tokenizer.encode_batch(texts)]
            size = sum(len(text.encode(errors="replace")) for text in texts)
            streams.append(Stream(np.concatenate([np.array(self.before, dtype=np.uint32), *parts]), size))
        return streams

    def evaluate(self, examples: Sequence[Stream], stride: int | None = None) -> Evaluation:
        """Perplexity and bits per byte. Every token is predicted once, from at least `context` - `stride` tokens before
        it where there are so many; `stride` is half of the context unless given."""
        rows: list[dict[str, Any]] = []
        for number, stream in enumerate(examples):
            nats, tokens = self._surprise(stream, max(1, self.context // 2) if stride is None else stride)
            rows.append({"document": number, "tokens": tokens, "nats": nats, "bytes": stream.bytes})
        count = sum(row["tokens"] for row in rows)
        if not count:
            raise UserError("there is no text to score (a text needs at least two tokens)")
        total = sum(row["nats"] for row in rows)
        bits = total / math.log(2) / sum(row["bytes"] for row in rows)
        loss = total / count
        return Evaluation(
            {"tokens": count, "loss": loss, "perplexity": math.exp(min(loss, 50.0)), "bits_per_byte": bits}, rows
        )

    @torch.inference_mode()
    def _surprise(self, stream: Stream, stride: int) -> tuple[float, int]:
        """-log p of all tokens but the first, and how many they are."""
        if not 1 <= stride <= self.context:
            raise UserError(f"stride = {stride}: must be from 1 to the context, {self.context}")
        count, total, done = len(stream.ids), 0.0, 1  # `done`: tokens that were predicted, or need not be
        begin = 0
        while done < count:
            last = min(count, begin + self.context + 1)
            ids = torch.from_numpy(stream.ids[begin:last].astype(np.int64))[None].to(self.device)
            fresh = last - done
            begins = ids[:, :-1] == self.border if self.border is not None else None
            documents = None if begins is None or not bool(begins[:, 1:].any()) else begins.cumsum(dim=1)
            hidden = self.model(ids[:, :-1], documents=documents)[0, -fresh:]
            for part, answers in zip(hidden.split(ROWS), ids[0, -fresh:].split(ROWS), strict=True):
                total += F.cross_entropy(self.model.output(part), answers, reduction="sum").item()
            done, begin = last, begin + stride
        return total, max(0, count - 1)


def _strings(given: Sequence[str] | str, name: str) -> list[str]:
    """One string is one, and not its letters."""
    several = [given] if isinstance(given, str) else list(given)
    if not all(several):
        raise UserError(f"{name} = '': must not be empty")
    return several
