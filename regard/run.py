"""A trained run, opened to be used: `regard.load("runs/mine").translate(["The white cat is sleeping."])`."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray
from torch import nn

from regard.config import SearchConfig
from regard.data.badlines import BadLines
from regard.data.files import format_of
from regard.data.images import Content
from regard.data.pairs import Pair
from regard.data.readers import one_line, read_pairs, source_line
from regard.data.words import split_words
from regard.errors import UserError, nearest
from regard.inference import Weights, pack
from regard.models.base import Features
from regard.models.heads import Headed
from regard.tasks import task_named
from regard.tasks.answer import Answerer, Found
from regard.tasks.base import Predictor as Scored
from regard.tasks.base import Task
from regard.tasks.choose import Chooser, Chosen
from regard.tasks.classify import Classified, Classifier
from regard.tasks.filler import Filled, Filler
from regard.tasks.generator import Continuation, Generator
from regard.tasks.image_classifier import Classification, ImageClassifier
from regard.tasks.reading import Pooling, Reader
from regard.tasks.saved import Saved
from regard.tasks.summarize import Summarizer
from regard.tasks.tag import TaggedWords, Tagger
from regard.tasks.translate import variant_of
from regard.tasks.translation_scores import Scores, Variant, evaluate
from regard.tasks.translator import Translation, Translator
from regard.training.distributed import pick_device
from regard.training.folder import RunFolder
from regard.training.memory import keep_freed_memory
from regard.training.saved import open_saved, trained_model

Predictor = TypeVar("Predictor")
_LOG = logging.getLogger("regard")  # on the terminal, unless a program says otherwise


class Run:
    """A trained model in memory, ready to be used: see `regard.inference`.

    `predictor` is the object that has its task's verb; the verbs below hand over to it. Those that search for an output
    do so as the run's config says under `decode`, or as `search` does, changed by what is named:
    `run.translate(text, beam=10)`.
    """

    def __init__(self, saved: Saved, model: nn.Module) -> None:
        self.saved, self.model = saved, model
        self.folder, self.config = RunFolder(saved.path), saved.config
        self.predictor = task_named(saved.config.task).predictor(saved, model)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", weights: Weights = "float32") -> Run:
        """Open a run, or a published folder."""
        saved = open_saved(Path(path))
        for note in saved.notes:
            _LOG.warning(note)
        model = trained_model(saved)
        saved = replace(saved, weights={}, spare={})  # the model has them, in its own layout
        model = pack(model.eval().requires_grad_(False).to(pick_device(device)), weights, keep=False)
        keep_freed_memory()  # from now on: what packing frees, nobody needs again
        return cls(saved, model)

    def __repr__(self) -> str:
        return f"Run({str(self.folder.path)!r}, task={self.config.task!r}, model={self.config.model.kind!r})"

    def asked(self, kind: type[Predictor], verb: str) -> Predictor:
        """The predictor, if it is of the kind that has this verb."""
        if not isinstance(self.predictor, kind):
            raise UserError(f"{self.folder.path}: is a run of the task {self.config.task!r}, it cannot {verb}")
        return self.predictor

    @property
    def translator(self) -> Translator:
        return self.asked(Translator, "translate")

    @property
    def summarizer(self) -> Summarizer:
        if isinstance(self.predictor, Translator) and self.saved.facts.get("any_text"):
            return Summarizer(self.predictor, self.config.decode)  # a published model does not say what it writes
        return self.asked(Summarizer, "summarize")

    def summarize(
        self, texts: Sequence[str] | str, search: SearchConfig | None = None, ask: str | None = None, **wishes: Any
    ) -> list[Translation]:
        """Summarise one text or several; each result has `.text`, `.score` and `.attention`."""
        return list(self.summarizer.summarize(_texts(texts), self._search(search, wishes), ask=ask))

    def translate(
        self,
        texts: Sequence[str] | str,
        search: SearchConfig | None = None,
        prefixes: Sequence[str] | str | None = None,
        ask: str | None = None,
        **wishes: Any,
    ) -> list[Translation]:
        """Translate one text or several; each result has `.text`, `.score` and `.attention`. `prefixes` are how each
        must begin, or all of them."""
        several = _texts(texts)
        begun = [prefixes] * len(several) if isinstance(prefixes, str) else prefixes
        if begun is not None and len(begun) != len(several):
            raise UserError(f"prefixes: {len(begun)} beside {len(several)} texts; give one for each, or one for all")
        return list(self.stream(several, search, begun, ask=ask, **wishes))

    def stream(
        self,
        texts: Iterable[str],
        search: SearchConfig | None = None,
        prefixes: Iterable[str] | None = None,
        window: int | None = None,
        ask: str | None = None,
        **wishes: Any,
    ) -> Iterator[Translation]:
        """As `translate`, for more texts than fit in memory; `window` of them are read at a time.

        `ask` is what a model of many tasks is told before every text: "translate English to German:".
        """
        return self.translator.translate(texts, self._search(search, wishes), prefixes, window, ask)

    def _search(self, search: SearchConfig | None, wishes: Mapping[str, Any]) -> SearchConfig:
        return (search or self.config.decode).wishing(wishes, section="")

    def classify(
        self, texts: Sequence[str | Content] | str | Content, seconds: Sequence[str] | str | None = None
    ) -> list[Classified] | list[Classification]:
        """The class of each text, pair of texts, or image (a file, its bytes, an array or one of Pillow's), with its
        probability, `.attention`."""
        if isinstance(self.predictor, ImageClassifier):
            if seconds is not None:
                raise UserError("seconds: are for pairs of texts, and this is a model of images")
            return [_seen(one) for one in self.predictor.classify(_several(texts))]
        plain = _texts(texts)
        others = [seconds] * len(plain) if isinstance(seconds, str) else seconds
        if others is not None and len(others) != len(plain):
            raise UserError(f"seconds: {len(others)} beside {len(plain)} texts; give one for each, or one for all")
        return self.asked(Classifier, "classify").classify(plain, others)

    def tag(self, sentences: Sequence[str] | Sequence[list[str]] | str) -> list[TaggedWords]:
        """A tag for each word; a sentence that is not divided into words yet is parted around punctuation."""
        parted = [split_words(one) if isinstance(one, str) else one for one in _several(sentences)]
        return self.asked(Tagger, "tag").tag(parted)

    def answer(self, questions: Sequence[str] | str, contexts: Sequence[str] | str) -> list[Found]:
        """The part of each context that answers the question, with its place and `.attention`; one context may be for
        all questions."""
        asked = _texts(questions, "questions")
        read = [contexts] * len(asked) if isinstance(contexts, str) else contexts
        if len(read) != len(asked):
            raise UserError(f"contexts: {len(read)} beside {len(asked)} questions; give one for each, or one for all")
        return self.asked(Answerer, "answer").answer(asked, read)

    def choose(self, contexts: Sequence[str] | str, choices: Sequence[Sequence[str]] | Sequence[str]) -> list[Chosen]:
        """The best of the choices for each situation."""
        several = [choices] if isinstance(contexts, str) else choices
        if any(isinstance(one, str) for one in several) or len(several) != len(_several(contexts)):
            raise UserError("choices: give a list of texts for each situation: choose([context], [[one, other]])")
        return self.asked(Chooser, "choose").choose(_several(contexts), cast(Sequence[Sequence[str]], several))

    def fill(self, texts: Sequence[str] | str, top: int = 5) -> list[Filled]:
        """The likeliest words in place of each mask."""
        return self.asked(Filler, "fill masks").fill(_texts(texts), top)

    def embed(self, texts: Sequence[str] | str, pooling: str = "mean", layers: str = "last") -> NDArray[np.float32]:
        """A vector for each text, from a run with any encoder; see `Reader.vectors`."""
        texts = _texts(texts)
        if pooling not in get_args(Pooling):
            raise UserError(f"pooling = {pooling!r}: unknown{nearest(pooling, get_args(Pooling))}")
        if layers not in get_args(Features):
            raise UserError(f"layers = {layers!r}: unknown{nearest(layers, get_args(Features))}")
        return self.reader.vectors(texts, cast(Pooling, pooling), cast(Features, layers))

    @property
    def reader(self) -> Reader:
        """The encoder with its tokenizer."""
        if not isinstance(self.model, Headed):
            raise UserError(f"{self.folder.path}: a run of the task {self.config.task!r} has no vectors of texts")
        return Reader(self.model, self.saved.tokenizer, self.config.data.max_length)

    @property
    def generator(self) -> Generator:
        return self.asked(Generator, "generate")

    def generate(
        self,
        prompts: Sequence[str] | str,
        search: SearchConfig | None = None,
        stop: Sequence[str] | str = (),
        choices: Sequence[str] | str = (),
        special: bool = False,
        **wishes: Any,
    ) -> list[Continuation]:
        """Continue one prompt or several; each result has `.text`, `.score` and `.attention`."""
        return self.generator.generate(_texts(prompts, "prompts"), self._search(search, wishes), stop, choices, special)

    def write(
        self,
        prompt: str,
        search: SearchConfig | None = None,
        stop: Sequence[str] | str = (),
        special: bool = False,
        **wishes: Any,
    ) -> Iterator[str]:
        """As `generate`, for one prompt: the text piece by piece, as it is written."""
        (prompt,) = _texts([prompt], "prompts")
        return self.generator.stream(prompt, self._search(search, wishes), stop, special)

    def score(
        self, *files: str | Path, max_bad_share: float | None = None, stride: int | None = None
    ) -> dict[str, dict[str, Any]]:
        """The scores of any task, by set: on files, or on what the run held out.

        More lines than `max_bad_share` that cannot be used are an error (by default as in training). `stride` is for
        language models: tokens predicted from one context.
        """
        predictor, task = self.predictor, self.config.task
        if stride is not None and not isinstance(predictor, Generator):
            raise UserError(f"stride = {stride}: is for language models; this is a run of {task!r}")
        if max_bad_share is not None and not 0 <= max_bad_share <= 1:
            raise UserError(f"max_bad_share = {max_bad_share}: must be from 0 to 1 (try 0.1)")
        if not files and task != "translate" and not isinstance(predictor, Scored):  # pre-training, on its own text
            return self.task.test(self.model)
        sets = self.sets([str(file) for file in files], max_bad_share=max_bad_share)
        if task == "translate":
            return {name: asdict(self.evaluate(pairs)[0]) for name, pairs in sets.items()}
        if isinstance(predictor, Generator):
            return {name: dict(predictor.evaluate(streams, stride).scores) for name, streams in sets.items()}
        assert isinstance(predictor, Scored), "it has sets to be scored on"
        return {name: dict(predictor.evaluate(examples).scores) for name, examples in sets.items()}

    def sets(
        self,
        files: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        bad: BadLines | None = None,
        max_bad_share: float | None = None,
    ) -> Mapping[str, Sequence[Any]]:
        """What to score on, by the names of the sets: the examples of files, or what the run held out."""
        predictor, bad, translates = self.predictor, bad or BadLines(), self.config.task == "translate"
        if not translates and not isinstance(predictor, Scored):
            raise UserError(f"{self.folder.path}: a run of the task {self.config.task!r} is scored when it is trained")
        if not files:
            return self.held_out()
        parallel = translates and any(format_of(Path(file)) == "text" for file in files)
        apart = [files] if parallel else [[file] for file in files]
        names = [Path(few[0]).name for few in apart]
        names = names if len(set(names)) == len(names) else [few[0] for few in apart]
        if translates:
            return dict(zip(names, [self.read(few, columns, bad, max_bad_share) for few in apart], strict=True))
        data = self.config.data.model_copy(update={"columns": columns} if columns else {})
        sets = {name: predictor.read(few, data, bad) for name, few in zip(names, apart, strict=True)}
        bad.check(data.max_bad_share if max_bad_share is None else max_bad_share, "max_bad_share")
        return sets

    def evaluate(
        self,
        pairs: Sequence[Pair | tuple[str, str]] | str | Path,
        search: SearchConfig | None = None,
        variant: Variant | None = None,
        ask: str | None = None,
        columns: Sequence[str] | None = None,
        **wishes: Any,
    ) -> tuple[Scores, list[Translation]]:
        """Scores on pairs (source, target), or on a file of them, and the translations that were scored. `variant` says
        how texts are compared, if not as in training: `regard.Variant(tokenize="none", lowercase=True)`."""
        if self.config.task != "translate":
            raise UserError(f"{self.folder.path}: a run of the task {self.config.task!r} is scored by run.score(file)")
        if isinstance(pairs, str | Path):
            pairs = self.read([str(pairs)], columns)
        paired = [_pair(pair, number) for number, pair in enumerate(pairs)]
        translator = self.translator if ask is None else self.translator.asking(ask)
        return evaluate(translator, paired, self._search(search, wishes), variant or self.variant)

    @property
    def variant(self) -> Variant:
        """How a translator's outputs are compared with their references, unless something else is asked for."""
        return variant_of(self.config)

    def read(
        self,
        files: Sequence[str],
        columns: Sequence[str] | None = None,
        bad: BadLines | None = None,
        max_bad_share: float | None = None,
    ) -> list[Pair]:
        """The pairs of files, by the columns that the run was trained on unless others are named.

        Lines that cannot be used are counted in `bad`.
        """
        bad = bad or BadLines()
        pairs = list(read_pairs(files, columns=columns or self.config.data.columns, bad=bad))
        bad.check(self.config.data.max_bad_share if max_bad_share is None else max_bad_share, "max_bad_share")
        return pairs

    def held_out(self) -> Mapping[str, Sequence[Any]]:
        """The run's own test sets."""
        return self.task.tests

    @property
    def task(self) -> Task:
        """The task with the data that the run keeps."""
        if not self.folder.data.is_dir():
            path = self.folder.path
            raise UserError(f"{path}: holds no examples to score on; give a file (regard evaluate {path} FILE)")
        return task_named(self.config.task).open(self.config, self.folder.data)

    @property
    def scores(self) -> dict[str, Any]:
        """The final scores on the run's own held-out sentences, by test set."""
        if not self.folder.scores.is_file():
            raise UserError(f"{self.folder.path}: has no scores yet; they are computed when the training ends")
        scores: dict[str, Any] = json.loads(self.folder.scores.read_text(encoding="utf8"))
        return scores


def _several(given: Any) -> Sequence[Any]:
    """One text is one, and not its letters; an image is one, and not its rows."""
    one = isinstance(given, str | Path | bytes) or hasattr(given, "__array_interface__")
    several: Sequence[Any] = [given] if one else given
    return several


def _texts(given: Any, name: str = "texts") -> list[str]:
    """One text, or several; what is none, such as a missing value, is not read as one."""
    several = list(_several(given))
    for number, one in enumerate(several):
        if not isinstance(one, str):
            raise UserError(f"{name}[{number}] = {one!r}: must be a text")
    return several


def _pair(given: Any, number: int) -> Pair:
    if isinstance(given, Pair):
        return given
    if isinstance(given, str) or len(given) != 2:
        raise UserError(f"pairs[{number}] = {given!r}: must be a source and its target")
    source, target = _texts(given, f"pairs[{number}]")
    return Pair(source_line(source), one_line(target))


def _seen(found: Classification | UserError) -> Classification:
    if isinstance(found, UserError):
        raise found
    return found
