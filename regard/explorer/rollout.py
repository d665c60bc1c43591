"""Attention rollout (Abnar & Zuidema 2020, section 3): what of the first layer's tokens reaches those of the last.

    rollout = (½ A_L + ½ I) ... (½ A_2 + ½ I) (½ A_1 + ½ I)         with A the mean over a layer's heads

The identity is the residual connection, which takes every token along as it is.
"""

from collections.abc import Iterable

import numpy as np

from regard.nn.record import Weights


def rolled(layers: Iterable[Weights], tokens: int) -> Weights:
    """From the mean attention of each layer, the first one first: (tokens, tokens)."""
    whole: Weights = np.eye(tokens, dtype=np.float32)
    for mean in layers:
        assert mean.shape == whole.shape, f"a layer sees all tokens from all tokens, not {mean.shape}"
        whole = np.float32(0.5) * (mean @ whole + whole)
    return whole
