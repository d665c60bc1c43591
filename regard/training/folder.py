"""A run is a folder. Here are the names of its files, and the only ways to write them: whole, or not at all.

config.yaml         all settings, each with where it came from
tokenizer.json      the vocabulary, of a model that reads text; special_tokens_map.json: which token is which
facts.json          what else the task learned from its data: class names, ...
model.safetensors   the best weights so far
metrics.jsonl       one line for each report of the training
curve.svg           the learning curve
scores.json         the final scores on held-out sentences
data/               the tokenised examples and the held-out sentences
training/           checkpoints to resume from: the last two
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from regard.config import read_yaml
from regard.data.folders import atomic, remove
from regard.data.tokenizer_files import FILES as TOKENIZER_FILES
from regard.errors import UserError
from regard.nn.weights import load_tensors


@dataclass(frozen=True)
class Progress:
    """Where a training stands, beside its tensors: all that the next step depends on."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # micro-batches of the epoch already used
    best: tuple[float, float] | None = None
    best_step: int = 0
    waited: int = 0  # validations since the best
    seconds: float = 0.0
    unreported_loss: float = 0.0  # sum over the tokens since the last report
    unreported_tokens: int = 0
    metrics_bytes: int = 0  # how much of metrics.jsonl belongs to this state
    done: bool = False


_FOLDERS = ("data", "training", "tensorboard")


class RunFolder:
    """The paths of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.tokenizer = path / "tokenizer.json"
        self.facts = path / "facts.json"
        self.model = path / "model.safetensors"
        self.metrics = path / "metrics.jsonl"
        self.curve = path / "curve.svg"
        self.scores = path / "scores.json"
        self.data = path / "data"
        self._lock: TextIO | None = None

    def others(self) -> list[str]:
        """What is in the folder and not of a run. A run's folders are removed before its config: without one, a folder
        that is not empty is somebody's own."""
        own = {path.name for path in self._files()} | {"attention.svg", "attention.png"}
        own |= {name for name in _FOLDERS if not any((self.path / name).glob("*"))}
        return [path.name for path in self.path.iterdir() if path.name not in own and not path.name.startswith(".")]

    def clear(self) -> None:
        """Removes a run; other files in the folder stay."""
        for folder in _FOLDERS:
            shutil.rmtree(self.path / folder, ignore_errors=True)
        for path in self._files():
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        text = [self.path / name for name in TOKENIZER_FILES]
        return [self.model, self.metrics, self.curve, self.scores, self.facts, *text, self.config]

    def hold(self) -> None:
        """Claim the run for this process: two that write into one would make nothing of it."""
        if os.name != "posix":
            return
        import fcntl

        file = (self.path / ".lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            with file:
                raise UserError(
                    f"{self.path}: is being trained by another process ({file.read().strip()}); wait, or stop that one"
                ) from None
        file.truncate(0)
        print(os.getpid(), file=file, flush=True)
        self._lock = file
        for place in (self.path, self.path / "training"):
            for left in place.glob(".*.tmp"):  # by a process that was killed
                remove(left)

    def release(self) -> None:
        if self._lock is not None:
            (self.path / ".lock").unlink(missing_ok=True)
            self._lock.close()
            self._lock = None

    def checkpoints(self) -> list[Path]:
        """The newest first."""
        return sorted((self.path / "training").glob("step-*.safetensors"), reverse=True)

    @property
    def reached(self) -> int:
        """The step of the newest checkpoint."""
        return max((int(path.stem.removeprefix("step-")) for path in self.checkpoints()), default=0)

    def create(self) -> None:
        """Makes the folder; an answer at once when it cannot be written."""
        try:
            (self.path / "training").mkdir(parents=True, exist_ok=True)
            with atomic(self.path / "training" / ".writable") as probe:
                probe.touch()
            (self.path / "training" / ".writable").unlink()
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror}); choose another --out") from None

    def save_checkpoint(self, progress: Progress, tensors: Mapping[str, Tensor]) -> None:
        path = self.path / "training" / f"step-{progress.step:09d}.safetensors"
        save_tensors(path, tensors, {"progress": json.dumps(asdict(progress))})
        for old in self.checkpoints()[2:]:
            old.unlink()

    def load_checkpoint(self) -> tuple[Progress, dict[str, Tensor], list[str]] | None:
        """The newest checkpoint that can be read, and a warning for each newer one that cannot."""
        warnings: list[str] = []
        for path in self.checkpoints():
            try:
                tensors, about = load_tensors(path)
                read = json.loads(about["progress"])
                best = None if read["best"] is None else tuple(read["best"])
                return Progress(**{**read, "best": best}), tensors, warnings
            except UserError as error:
                warnings.append(f"{error}; using the checkpoint before it")
            except (KeyError, ValueError, TypeError):
                warnings.append(f"{path}: not a checkpoint of this version; using the checkpoint before it")
        if warnings:
            raise UserError("no checkpoint can be read:\n" + "\n".join(w.partition("; using")[0] for w in warnings))
        return None


def read_run_config(folder: RunFolder) -> dict[str, Any]:
    """The settings of an existing run; a clear answer when there is none."""
    if folder.path.is_file():
        raise UserError(f"{folder.path}: is a file; give the folder that it is in")
    if not folder.path.is_dir():
        raise UserError(
            f"{folder.path}: no such folder; train a run first (regard train translate pairs.tsv --out ...)"
        )
    if not folder.config.is_file():
        raise UserError(f"{folder.path}: not a run of Regard (it has no config.yaml)")
    values = read_yaml(folder.config)
    if not {"task", "model", "train"} <= values.keys():
        raise UserError(f"{folder.path}: not a run of Regard (its config.yaml is something else's)")
    return values


def write_text(path: Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf8")


def save_tensors(path: Path, tensors: Mapping[str, Tensor], about: dict[str, str]) -> None:
    flat = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    try:
        with atomic(path) as temporary:
            temporary.touch()
            mode = temporary.stat().st_mode  # the library would leave it to its owner alone
            save_file(flat, temporary, about)
            temporary.chmod(mode)
    except (OSError, SafetensorError) as error:
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
        reason = "the disk is full" if full else str(error)
        raise UserError(
            f"{path}: could not be saved ({reason}). What was saved before is intact: make room, then resume"
        ) from None
