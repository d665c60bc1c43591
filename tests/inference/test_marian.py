"""Training equals Hugging Face's on the same weights: the loss and its gradients. (Decoding: tests/hub.)"""

from __future__ import annotations

import pytest
import torch

from regard.data.tokenizers import PAD
from regard.models.transformer import TransformerConfig
from regard.nn.loss import projected_loss

pytest.importorskip("transformers")
from bench.peers import marian, of_marian

VOCABULARY = 200
SHAPE = TransformerConfig(
    encoder_layers=2, decoder_layers=2, width=32, inner=48, heads=4, max_length=40, norm="post",
    positions="sinusoid-halves", dropout=0.0,
)  # fmt: skip


def test_the_same_loss_and_gradients() -> None:
    torch.manual_seed(0)
    peer = marian(SHAPE, VOCABULARY)
    ours = of_marian(peer)
    source, target = torch.randint(4, VOCABULARY, (5, 9)), torch.randint(4, VOCABULARY, (5, 8))
    logits = peer(input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target[:, :-1]).logits
    answers = target[:, 1:].flatten()
    theirs = torch.nn.functional.cross_entropy(logits.flatten(0, 1), answers, reduction="sum", label_smoothing=0.1)
    hidden = ours(source, target[:, :-1]).flatten(0, 1)
    loss = projected_loss(hidden, ours.output.weight, ours.output.bias, answers, 0.1)
    torch.testing.assert_close(loss, theirs)
    theirs.backward(), loss.backward()
    found = ours.target_embedding.weight.grad
    assert found is not None
    found[PAD] = 0  # Marian never trains the embedding of padding
    expected = peer.model.shared.weight.grad.clone()
    expected[PAD] = 0
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
