"""The search for an output. It knows nothing of models, only three verbs: `start`, `step` and `state.select`."""

import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.decoding.beam import beam
from regard.decoding.one_by_one import greedy, sample
from regard.decoding.search import Branch, Decodable, Hypothesis, Limits, Trace

__all__ = ["Branch", "Decodable", "Hypothesis", "Limits", "Trace", "beam", "search"]

METHODS = {"greedy": greedy, "beam": beam, "sample": sample}


@torch.inference_mode()
def search(model: Decodable, source: Tensor, options: SearchConfig, limits: Limits) -> list[list[Hypothesis]]:
    """The best outputs for each sentence of `source` (B, S), best first, `options.n_best` of them."""
    return METHODS[options.method](model, source, options, limits)
