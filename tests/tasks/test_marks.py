"""What stands around texts: also where a tokenizer has no padding of its own, as GPT-2's and Llama's."""

from __future__ import annotations

import pytest
import tokenizers
import torch
from tokenizers import models, pre_tokenizers

from regard.data.subwords import Subwords
from regard.errors import UserError
from regard.models import build, parse_model
from regard.models.prompted import Prompted
from regard.tasks import settings_of
from regard.tasks.marks import Marks, check_padding
from regard.tasks.translate import Translate

WORDS = {"<|endoftext|>": 0, "a": 1, "b": 2, "c": 3, "d": 4}


@pytest.fixture
def tokenizer() -> Subwords:
    inner = tokenizers.Tokenizer(models.WordLevel(WORDS, unk_token="a"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.add_special_tokens(["<|endoftext|>"])
    return Subwords(inner)


def test_without_padding_the_end_mark_is_still_read_and_learned(tokenizer: Subwords) -> None:
    marks = Marks.of(tokenizer, None)
    assert (marks.pad, marks.start, marks.end) == (-1, 0, 0)
    assert marks.never == ()
    batch = marks.batch([[1, 2], [1]], [[3], [3, 4, 3]])
    assert batch.target.tolist() == [[0, 3, 0, -1, -1], [0, 3, 4, 3, 0]]
    assert int((batch.target[:, 1:] != marks.pad).sum()) == batch.tokens == 6


def test_padding_with_the_end_mark_is_no_padding(tokenizer: Subwords) -> None:
    """As many save GPT-2's tokenizer. Otherwise the end would never be learned, and the start be dropped."""
    padded = Subwords(tokenizer.inner, {"pad": "<|endoftext|>", "end": "<|endoftext|>"})
    assert padded.special.pad == padded.special.end == 0
    assert Marks.of(padded, None) == Marks.of(tokenizer, None)
    with pytest.raises(UserError, match="pads with its end mark"):
        check_padding(padded, parse_model({"kind": "transformer"}))


@torch.no_grad()
def test_a_decoder_sees_no_word_before_it_predicts_it(tokenizer: Subwords) -> None:
    torch.manual_seed(0)
    settings = {"kind": "gpt", "layers": 2, "width": 16, "heads": 2, "max_length": 24}
    decoder = build(parse_model(settings), len(WORDS)).eval()
    marks = Marks.of(tokenizer, None)
    model = Prompted(decoder, marks.pad)  # type: ignore[arg-type]
    batch = marks.batch([[1, 2], [1]], [[3], [3, 4, 3]])
    other = marks.batch([[1, 2], [1]], [[4], [4, 4, 3]])
    first, second = (model(one.source, one.target[:, :-1])[:, 0] for one in (batch, other))
    torch.testing.assert_close(first, second)
    alone = marks.batch([[1]], [[3, 4, 3]])
    found = model(alone.source, alone.target[:, :-1])
    torch.testing.assert_close(model(batch.source, batch.target[:, :-1])[1:], found, atol=1e-5, rtol=1e-5)


def test_a_model_must_pad_with_the_tokenizers_padding(tokenizer: Subwords) -> None:
    check_padding(tokenizer, parse_model({"kind": "bart"}))  # it has none
    learned = Subwords.learn(["a b c d"] * 5, kind="byte-bpe", vocabulary=300)
    check_padding(learned, parse_model({"kind": "bart"}))
    check_padding(learned, parse_model({"kind": "gpt"}))  # a decoder alone has its own
    with pytest.raises(UserError, match=r"model\.pad = 1: the tokenizer pads with 0"):
        check_padding(learned, parse_model({"kind": "bart", "pad": 1}))


def test_source_and_target_share_the_context_of_a_decoder() -> None:
    shape = {"kind": "gpt", "layers": 1, "width": 8, "heads": 1, "max_length": 64}
    config, _ = settings_of([("", {"task": "translate", "model": shape, "data.max_length": 31})])
    Translate.check(config)
    with pytest.raises(UserError, match="must be at most 31, since the model reads 64 with source and target together"):
        Translate.check(config.model_copy(update={"data": config.data.model_copy(update={"max_length": 32})}))
