"""Decoding equals Hugging Face's, token for token, on the same weights: greedy and beam, plain and packed."""

from __future__ import annotations

import pytest
import torch

from regard.config import SearchConfig
from regard.data.tokenizers import BOS, EOS, PAD
from regard.decoding import Limits, search
from regard.inference import pack
from regard.models.transformer import TransformerConfig
from regard.nn.loss import projected_loss

pytest.importorskip("transformers")
from bench.peers import marian, of_marian

VOCABULARY = 200
SHAPE = TransformerConfig(
    encoder_layers=2, decoder_layers=2, width=32, inner=48, heads=4, max_length=40, norm="post",
    positions="sinusoid-halves", dropout=0.0,
)  # fmt: skip


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(("beam", "penalty"), [(1, 1.0), (4, 1.0), (4, 0.6), (5, 2.0), (3, 0.0)])
def test_the_same_tokens(beam: int, penalty: float, activation: str) -> None:
    torch.manual_seed(beam)
    config = SHAPE.model_copy(update={"activation": activation})
    peer = marian(config, VOCABULARY).eval()
    with torch.no_grad():
        for name, weight in peer.named_parameters():
            if weight.ndim > 1 and "embed_positions" not in name:
                weight.normal_(std=0.25)
        peer.final_logits_bias[0, EOS] = 4.0  # outputs end at different lengths
    ours = of_marian(peer)
    source = torch.randint(4, VOCABULARY, (6, 9))
    source[1, 5:], source[4, 2:] = PAD, PAD
    theirs = peer.generate(
        source, attention_mask=(source != PAD).long(), num_beams=beam, do_sample=False, max_new_tokens=15,
        length_penalty=penalty, early_stopping=False, bad_words_ids=[[PAD], [BOS]],
    )[:, 1:].tolist()  # fmt: skip
    expected = [[token for token in row if token not in (PAD, EOS)] for row in theirs]
    assert penalty > 1 or len({len(row) for row in expected}) > 1, "the test should see outputs of several lengths"
    options = SearchConfig(method="beam" if beam > 1 else "greedy", beam=beam, length_penalty=penalty)
    limits = Limits(BOS, EOS, [15] * len(source), never=(PAD, BOS))
    for model in (ours, pack(ours)):
        assert [best[0].ids for best in search(model, source, options, limits)] == expected


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
