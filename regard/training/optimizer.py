"""What turns gradients into weights: the optimiser, the learning rate at each step, the moving average."""

from __future__ import annotations

import math
import re

import torch
from torch import Tensor, nn

from regard.config import TrainConfig
from regard.nn.layers import GatedFeedForward, GroupedSelfAttention, MultiHeadAttention
from regard.nn.recurrent import Recurrent
from regard.training.muon import Muon


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Adam, AdamW or Muon, fused. Vectors (biases, norms) do not decay; frozen weights are left alone.

    Each group has a `share` of the learning rate: lower layers of a pre-trained model may learn more slowly.
    """
    shares = rate_shares(model, config.layer_decay)
    matrices = inner_matrices(model) if config.optimizer == "muon" else {}
    split: dict[tuple[bool, float, int], list[nn.Parameter]] = {}
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            split.setdefault((weight.ndim > 1, shares[name], matrices.get(name, 0)), []).append(weight)
    groups = [
        {"params": weights, "weight_decay": config.weight_decay if decays else 0.0, "share": share, "orthogonal": parts}
        for (decays, share, parts), weights in sorted(split.items(), key=lambda item: (not item[0][0], -item[0][1]))
    ]
    kinds: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "muon": Muon}
    kind = kinds[config.optimizer]
    return kind(groups, lr=config.learning_rate, betas=config.betas, eps=1e-9, fused=True)


def inner_matrices(model: nn.Module) -> dict[str, int]:
    """The weights of the linear maps within layers, each with the number of maps that it is: queries, keys and values,
    gate and values, or the gates of a recurrent cell, are one above the other."""
    found: dict[str, int] = {}
    for place, module in model.named_modules():
        if isinstance(module, Recurrent):
            found |= {f"{place}.{name}": module.gates for name, weight in module.named_parameters() if weight.ndim == 2}
        elif re.search(r"(encoder|decoder)\.\d+\.", f"{place}."):
            if isinstance(module, MultiHeadAttention):
                found[f"{place}.weight"] = 3
            elif isinstance(module, GatedFeedForward):
                found[f"{place}.inner.weight"] = 2
            elif isinstance(module, GroupedSelfAttention):
                found[f"{place}.memory.weight"] = 2
            elif isinstance(module, nn.Linear):
                found.setdefault(f"{place}.weight", 1)
    return found


def depth(name: str) -> float:
    """How high in its encoder a weight stands: 0 for embeddings, 1, 2, ... for its layers, infinity for what is above.

    The names are those of `regard.models.heads.Headed`.
    """
    if not name.startswith("encoder.") or name.startswith(("encoder.pooler.", "encoder.final_norm.")):
        return math.inf
    layer = re.match(r"encoder\.encoder\.(\d+)\.", name)
    return 1.0 + int(layer[1]) if layer else 0.0


def rate_shares(model: nn.Module, decay: float) -> dict[str, float]:
    """The share of the learning rate that each weight has: 1 above the encoder, then `decay` for each layer down
    (Howard 2018, section 3.2)."""
    depths = {name: depth(name) for name, _ in model.named_parameters()}
    top = max((value for value in depths.values() if value < math.inf), default=0.0)
    return {name: decay ** (top + 1 - value) if value < math.inf else 1.0 for name, value in depths.items()}


def freeze(model: nn.Module, layers: int) -> int:
    """Keep an encoder's embeddings and its lowest layers as they are, or all of it (-1); how many weights that is."""
    limit = math.inf if layers < 0 else layers + 1
    frozen = [weight for name, weight in model.named_parameters() if layers and depth(name) < limit]
    for weight in frozen:
        weight.requires_grad_(False)
    return sum(weight.numel() for weight in frozen)


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
    if config.schedule == "linear":
        return config.learning_rate * min(rising, max(0.0, (config.steps - step) / max(1, config.steps - warm)))
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
