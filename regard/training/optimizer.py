"""What turns gradients into weights: the optimiser, the learning rate at each step, the moving average."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from regard.config import TrainConfig


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Adam or AdamW, fused. Vectors (biases, norms) do not decay."""
    weights = list(model.parameters())
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
    ]
    kind: type[torch.optim.Adam] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.optimizer]
    return kind(groups, lr=config.learning_rate, betas=config.betas, eps=1e-9, fused=True)


def learning_rate(step: int, config: TrainConfig) -> float:
    """The rate of step 1, 2, ...: linear warm-up to the peak, then down.

    "inverse-sqrt" is the paper's (Vaswani 2017, eq. 3) with its peak named instead of derived from the width:
    rate = peak · min(step / warmup, √(warmup / step)).
    """
    warm = max(config.warmup, 1)
    rising = min(1.0, step / warm)
    if config.schedule == "inverse-sqrt":
        return config.learning_rate * min(rising, math.sqrt(warm / step))
    if config.schedule == "cosine":
        share = min(1.0, max(0.0, (step - warm) / max(1, config.steps - warm)))
        return config.learning_rate * rising * (0.5 + 0.5 * math.cos(math.pi * share))
    return config.learning_rate * rising


class Average:
    """The moving average of the weights (Polyak 1992), which translates better than the weights themselves.

    The decay grows with the steps, (1 + t) / (10 + t), so that the first random weights are soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        fresh = [weight.detach() for weight in model.parameters()]
        torch._foreach_lerp_(list(self.weights.values()), fresh, 1 - decay)


def optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's memory by the names of the weights."""
    tensors = {}
    for name, weight in model.named_parameters():
        for key, value in optimizer.state[weight].items():
            tensors[f"{name}:{key}"] = value
    return tensors


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """The inverse of `optimizer_tensors`."""
    weights = dict(model.named_parameters())
    for key, value in tensors.items():
        name, _, item = key.rpartition(":")
        weight = weights[name]
        # A fused optimiser keeps its step counter beside the weight, as float32.
        optimizer.state[weight][item] = value.to(weight.device)
