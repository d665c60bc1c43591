"""A trained run, opened to be used: `regard.load("runs/mine").translate(["The white cat is sleeping."])`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.config import Config, SearchConfig, assemble
from regard.data.badlines import BadLines
from regard.data.pairs import Pair
from regard.data.prepare import Prepared
from regard.data.readers import read_pairs
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.inference import Weights, pack
from regard.models import build, parse_model
from regard.models.base import EncoderDecoder
from regard.nn.weights import load_tensors, load_weights
from regard.tasks.translation_scores import Scores, Variant, evaluate
from regard.tasks.translator import Translation, Translator
from regard.training.distributed import pick_device
from regard.training.folder import RunFolder
from regard.training.memory import keep_freed_memory
from regard.training.start import read_run_config


class Run:
    """A run folder with its model in memory, ready to be used: see `regard.inference`."""

    def __init__(self, folder: RunFolder, config: Config, tokenizer: Tokenizer, model: EncoderDecoder) -> None:
        self.folder, self.config, self.tokenizer, self.model = folder, config, tokenizer, model
        self.translator = Translator(model, tokenizer)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", weights: Weights = "float32") -> Run:
        folder = RunFolder(Path(path))
        config, _ = assemble([("config.yaml", read_run_config(folder))], parse_model)
        if not folder.model.is_file():
            raise UserError(
                f"{path}: has no trained weights yet (no model.safetensors); they appear with the first validation. "
                f"Go on training: regard train --resume {path}"
            )
        tokenizer = Tokenizer.load(folder.tokenizer)
        model = build(config.model, len(tokenizer))
        load_weights(model, load_tensors(folder.model)[0], folder.model)
        keep_freed_memory()
        return cls(folder, config, tokenizer, pack(model.to(pick_device(device)), weights))

    def __repr__(self) -> str:
        return f"Run({str(self.folder.path)!r}, task={self.config.task!r}, model={self.config.model.kind!r})"

    def translate(
        self, texts: Sequence[str] | str, search: SearchConfig | None = None, prefixes: Sequence[str] | None = None
    ) -> list[Translation]:
        """Translate one text or several; each result has `.text`, `.score` and `.attention`."""
        return list(self.stream([texts] if isinstance(texts, str) else texts, search, prefixes))

    def stream(
        self,
        texts: Iterable[str],
        search: SearchConfig | None = None,
        prefixes: Iterable[str] | None = None,
        window: int | None = None,
    ) -> Iterator[Translation]:
        """As `translate`, for more texts than fit in memory; `window` of them are read at a time."""
        return self.translator.translate(texts, search or self.config.decode, prefixes, window)

    def evaluate(
        self,
        pairs: Sequence[Pair] | str | Path,
        search: SearchConfig | None = None,
        variant: Variant | None = None,
    ) -> tuple[Scores, list[Translation]]:
        """Scores on pairs, or on a file of them, and the translations that were scored."""
        if isinstance(pairs, str | Path):
            pairs = self.read([str(pairs)])
        return evaluate(self.translator, pairs, search or self.config.decode, variant)

    def read(
        self, files: Sequence[str], columns: Sequence[str] | None = None, bad: BadLines | None = None
    ) -> list[Pair]:
        """The pairs of files, by the columns that the run was trained on unless others are named.

        Lines that cannot be used are counted in `bad`.
        """
        bad = bad or BadLines()
        pairs = list(read_pairs(files, columns=columns or self.config.data.columns, bad=bad))
        bad.check(self.config.data.max_bad_share)
        return pairs

    def held_out(self) -> dict[str, list[Pair]]:
        """The run's own test sets, which no choice has seen."""
        return Prepared.open(self.folder.data).tests

    @property
    def scores(self) -> dict[str, Any]:
        """The final scores on the run's own held-out sentences, by test set."""
        if not self.folder.scores.is_file():
            raise UserError(f"{self.folder.path}: has no scores yet; they are computed when the training ends")
        scores: dict[str, Any] = json.loads(self.folder.scores.read_text(encoding="utf8"))
        return scores
