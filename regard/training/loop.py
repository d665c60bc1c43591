"""The training loop. It reads from top to bottom, and knows tasks and models only by what they promise.

Everything that a step depends on is a function of the config and of `Progress`: the batches (seed and epoch), the
dropout (seed, step and micro-batch), the rate (step). A run that was killed and resumed is therefore the same run.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from regard.config import TrainConfig
from regard.data.batching import plan
from regard.errors import UserError
from regard.nn.weights import load_weights, weights_of
from regard.tasks.base import Task, Validation
from regard.training.display import Display, Report
from regard.training.distributed import Ranks
from regard.training.folder import Progress, RunFolder, save_tensors
from regard.training.interrupt import Interrupt
from regard.training.memory import give_back_freed_memory
from regard.training.metrics import Metrics
from regard.training.optimizer import (
    Average,
    build_optimizer,
    learning_rate,
    optimizer_tensors,
    restore_optimizer,
)

REPORT_EVERY, GIVE_BACK_EVERY = 20, 100


class Trainee(nn.Module):
    """The model and its loss as one module, so that data parallelism wraps both."""

    def __init__(self, model: nn.Module, task: Task) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Any) -> Tensor:
        return self.task.loss(self.model, batch)


class Trainer:
    """A model in training: its optimiser, its average, and where it stands."""

    def __init__(self, model: nn.Module, task: Task, config: TrainConfig, folder: RunFolder, ranks: Ranks) -> None:
        self.model, self.task, self.config, self.folder, self.ranks = model, task, config, folder, ranks
        self.optimizer = build_optimizer(model, config)
        self.average = Average(model, config.average) if config.average else None
        self.progress = Progress()
        self.trainee: nn.Module = Trainee(model, task)
        if ranks.size > 1:
            self.trainee = DistributedDataParallel(self.trainee)
        self._plan: tuple[int, list[NDArray[np.int64]]] | None = None

    def fit(self, display: Display, interrupt: Interrupt) -> Progress:
        """Train until the last step, until the score stops rising, or until interrupted; return where it stands."""
        config, metrics = self.config, Metrics(self.folder, self.progress if self.ranks.first else None)
        checkpoint_every = config.checkpoint_every or config.validate_every
        self.model.train()
        began = time.monotonic() - self.progress.seconds
        unreported = self.progress.unreported_loss, self.progress.unreported_tokens
        report = Report(self.progress.step, config.steps, self.task.unit, *unreported)
        while not self.progress.done:
            rate = learning_rate(self.progress.step + 1, config)
            loss, tokens = self.step(rate)
            self.progress = replace(self.progress, seconds=time.monotonic() - began)
            step = self.progress.step
            self._check(loss, "loss")
            report.add(step, loss, tokens, rate)
            last = step >= config.steps
            if step % REPORT_EVERY == 0 or last:
                display.step(report)
                metrics.write(report.row())
            if step % config.validate_every == 0 or last:
                validation = self.validate()
                display.validation(step, validation, better=self.progress.waited == 0)
                row = {"valid_loss": validation.loss, "valid_score": validation.score, **validation.metrics}
                metrics.write({"step": step, **row})
                metrics.draw()
            if step % REPORT_EVERY == 0 or last:
                report = Report(step, config.steps, self.task.unit)  # its clock starts after the validation
            patient = not config.patience or self.progress.waited < config.patience
            self.progress = replace(
                self.progress,
                done=last or not patient,
                unreported_loss=report.losses,
                unreported_tokens=report.tokens,
                metrics_bytes=metrics.size,
            )
            if step % GIVE_BACK_EVERY == 0:
                give_back_freed_memory()
            stopping = self.ranks.sum(interrupt.wanted)[0] > 0
            if step % checkpoint_every == 0 or self.progress.done or stopping:
                metrics.sync()
                self.checkpoint()
            if stopping:
                break
        metrics.close()
        return self.progress

    def step(self, rate: float) -> tuple[float, int]:
        """One update from `accumulate` micro-batches on each rank; the loss per token, and how many tokens.

        The loss is the sum over all micro-batches of all ranks, divided by their tokens: how they are divided over
        micro-batches and ranks changes nothing.
        """
        ranks, config = self.ranks, self.config
        rows, place = self.take(config.accumulate * ranks.size)
        mine = list(enumerate(rows))[ranks.rank :: ranks.size]
        seeds = {index: _mix(config.seed, self.progress.step, index) for index, _ in mine}
        batches = [(index, self.task.batch(part, seeds[index]).to(ranks.device)) for index, part in mine]
        tokens = max(1, int(ranks.sum(sum(batch.tokens for _, batch in batches))[0]))  # none, if all is unknown
        total = torch.zeros((), device=ranks.device)
        for number, (index, batch) in enumerate(batches):
            torch.manual_seed(seeds[index])
            with self._synchronise(number == len(batches) - 1), self._precision():
                loss = self.trainee(batch)
                (loss * (ranks.size / tokens)).backward()  # DDP averages over the ranks; we want their sum
            total += loss.detach()
        if config.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["share"]
        with self._precision():  # for Muon's products; Adam has none
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        step = self.progress.step + 1
        if self.average:
            self.average.update(self.model, step)
        epoch, position = place
        self.progress = replace(self.progress, step=step, epoch=epoch, position=position)
        return ranks.sum(total.item())[0] / tokens, tokens

    def take(self, count: int) -> tuple[list[NDArray[np.int64]], tuple[int, int]]:
        """The next micro-batches, over all ranks, and the place (epoch, position) after them."""
        epoch, position = self.progress.epoch, self.progress.position
        taken: list[NDArray[np.int64]] = []
        while len(taken) < count:
            batches = self._epoch(epoch)
            more = batches[position : position + count - len(taken)]
            taken, position = taken + more, position + len(more)
            if position >= len(batches):  # beyond it, if a run goes on with larger batches
                epoch, position = epoch + 1, 0
        return taken, (epoch, position)

    def validate(self) -> Validation:
        """Score the averaged weights, and keep them if they are the best so far."""
        with self.averaged():
            self.model.eval()
            validation = self.task.validate(self.model, self.ranks)
            self._check(validation.loss, "validation loss")
            self.model.train()
            best = self.progress.best
            if best is None or validation.rank > best:
                if self.ranks.first:
                    save_tensors(self.folder.model, weights_of(self.model), {"step": str(self.progress.step)})
                kept = {"best": validation.rank, "best_step": self.progress.step, "waited": 0}
                self.progress = replace(self.progress, **kept)  # type: ignore[arg-type]
            else:
                self.progress = replace(self.progress, waited=self.progress.waited + 1)
        return validation

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """The model with the average of its weights, for the time of the block."""
        if self.average is None:
            yield
            return
        current = {name: weight.clone() for name, weight in weights_of(self.model).items()}
        load_weights(self.model, self.average.weights, self.folder.model)
        try:
            yield
        finally:
            load_weights(self.model, current, self.folder.model)

    def checkpoint(self) -> None:
        self._check(nn.utils.get_total_norm(self.model.parameters()).item(), "size of the weights")
        if not self.ranks.first:
            return
        tensors = {f"model/{name}": weight for name, weight in weights_of(self.model).items()}
        tensors |= {f"optimizer/{name}": t for name, t in optimizer_tensors(self.model, self.optimizer).items()}
        if self.average:
            tensors |= {f"average/{name}": weight for name, weight in self.average.weights.items()}
        self.folder.save_checkpoint(self.progress, tensors)

    def resume(self) -> list[str]:
        """Go back to the newest readable checkpoint, if there is any; warnings about those that were not."""
        found = self.folder.load_checkpoint()
        if found is None:
            return []
        self.progress, tensors, warnings = found
        path = self.folder.path
        load_weights(self.model, _under("model/", tensors), path)
        restore_optimizer(self.model, self.optimizer, _under("optimizer/", tensors))
        if self.average:  # a run that did not average before begins with the weights it has
            averaged = _under("average/", tensors) or weights_of(self.model)
            for name, weight in averaged.items():
                self.average.weights[name].copy_(weight)
        return warnings

    def reopen(self) -> None:
        """A finished run that was given more steps goes on; its scores are no longer those of its weights."""
        if self.ranks.first:
            self.folder.scores.unlink(missing_ok=True)
        self.progress = replace(self.progress, done=False, waited=0)
        self.checkpoint()  # killed from here on, it is still a run that goes on

    def _check(self, value: float, name: str) -> None:
        """That it is a number: before anything is kept that is none."""
        if not math.isfinite(value):
            raise UserError(
                f"the {name} is {value} at step {self.progress.step}: the training has diverged. Try a lower "
                f"train.learning_rate (now {self.config.learning_rate:g}) or a longer train.warmup; what was saved "
                "before is intact"
            )

    def _epoch(self, epoch: int) -> list[NDArray[np.int64]]:
        if self._plan is None or self._plan[0] != epoch:
            tokens, seed = self.config.batch_tokens, self.config.seed
            self._plan = epoch, plan(self.task.lengths, batch_tokens=tokens, seed=seed, epoch=epoch)
        return self._plan[1]

    def _synchronise(self, now: bool) -> contextlib.AbstractContextManager[Any]:
        """Ranks exchange gradients once per step, with the last micro-batch."""
        if isinstance(self.trainee, DistributedDataParallel) and not now:
            return self.trainee.no_sync()
        return contextlib.nullcontext()

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        return torch.autocast(self.ranks.device.type, torch.bfloat16, enabled=in_bfloat16(self.config, self.ranks))


def in_bfloat16(config: TrainConfig, ranks: Ranks) -> bool:
    """Whether products are in bfloat16: by `auto` where the device multiplies in it faster than in float32."""
    if config.precision != "auto":
        return config.precision == "bfloat16"
    if ranks.device.type == "cpu":
        able = torch.cpu.get_capabilities()
        return bool(able.get("avx512_bf16") or able.get("amx_bf16"))
    return ranks.device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def _mix(seed: int, step: int, index: int) -> int:
    """One seed for all that is random in one micro-batch: the same whichever rank computes it."""
    return int(np.random.SeedSequence([seed, step, index]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
