"""Several processes that train one model (`torchrun`); a single process is the case of one rank."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from regard.errors import UserError


@dataclass(frozen=True)
class Ranks:
    """Who we are among how many, and where our model lives."""

    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def gather(self, mine: Any) -> list[Any]:
        """What each rank has, in order, known to all."""
        if self.size == 1:
            return [mine]
        everyone: list[Any] = [None] * self.size
        dist.all_gather_object(everyone, mine)
        return everyone

    def sum(self, *values: float) -> list[float]:
        """Each value, summed over the ranks; cheaper than `gather`."""
        if self.size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return total.tolist()

    def wait(self) -> None:
        if self.size > 1:
            dist.barrier()

    def close(self) -> None:
        if self.size > 1:
            dist.destroy_process_group()


def join(device: str = "auto") -> Ranks:
    """Joins the processes that `torchrun` started, or stands alone."""
    size, rank, local = (int(os.environ.get(name, default)) for name, default in _TORCHRUN)
    chosen = pick_device(device, local)
    if size > 1 and device == "auto" and chosen.type == "mps":  # which processes cannot share
        chosen = torch.device("cpu")
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    if size > 1:
        # The others wait while the first prepares the data and computes the final scores: let them.
        backend = "nccl" if chosen.type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=timedelta(days=1))
    return Ranks(rank, size, chosen)


DEVICES = ("cpu", "cuda", "mps", "xpu")
_TORCHRUN = (("WORLD_SIZE", "1"), ("RANK", "0"), ("LOCAL_RANK", "0"))


def pick_device(name: str, local_rank: int = 0) -> torch.device:
    """`auto` is a GPU when there is one. A device that is not there is an error that says what is."""
    if name in ("auto", "cuda") and torch.cuda.is_available():
        return torch.device("cuda", local_rank)
    if name == "auto":
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"device = {name!r}: cannot be used here ({reason}); try 'auto' or 'cpu'") from None
    if device.type not in DEVICES:
        raise UserError(f"device = {name!r}: nothing can be trained there; one of auto, {', '.join(DEVICES)}")
    return device
