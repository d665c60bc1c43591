"""Published encoder-decoders with their tokenizers: opened, they write what `transformers` writes; and the way back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from seq2seq import PEERS
from tokenizers.processors import TemplateProcessing

import regard
from regard.config import SearchConfig
from regard.data.subwords import Subwords
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.hub.published import export
from regard.nn.record import Recording
from regard.training.saved import open_saved
from regard.training.start import train

TEXTS = ["The white cat sleeps.", "A dog, not a cat, is barking at the mouse!", "Sleeping cats don't bark at dogs."]
KINDS = ["bart", "marian", "t5", "t5, version 1.1"]


def tokenizer_of(kind: str) -> Tokenizer:
    """BART's puts <s> before a text and </s> behind it, the others' only </s>."""
    if kind == "bart":
        return Subwords.learn(TEXTS * 5, kind="byte-bpe", vocabulary=320)
    made: Tokenizer = Subwords.learn(TEXTS * 5, kind="unigram", vocabulary=70)
    if kind == "marian":
        made = Tokenizer.train(TEXTS * 5, vocabulary=340)
    end = made.special.end
    made.inner.post_processor = TemplateProcessing(single="$A </s>", pair="$A $B </s>", special_tokens=[("</s>", end)])
    return made


def published(kind: str, folder: Path, seed: int = 0) -> tuple[Any, Any]:
    """A random model of theirs with a tokenizer, written by them; and both as they open them."""
    tokenizer = tokenizer_of(kind)
    special = tokenizer.special
    assert special.pad is not None
    assert special.end is not None
    forced = {"forced_bos_token_id": special.begin} if kind == "bart" else {}
    start = special.end if kind == "bart" else special.pad
    peer = replace(PEERS[kind], pad=special.pad, end=special.end, start=start)
    model = peer.random(seed, 0.3, vocabulary=len(tokenizer))
    model.generation_config.update(num_beams=3, max_length=25, no_repeat_ngram_size=2, early_stopping=False, **forced)
    model.save_pretrained(folder)
    names = {"pad_token": "<pad>", "eos_token": "</s>", "bos_token": "<s>", "unk_token": "<unk>"}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer.inner, **names)
    theirs.save_pretrained(folder)
    return model, theirs


def written(model: Any, tokenizer: Any, texts: list[str], **wishes: Any) -> list[str]:
    read = tokenizer(texts, return_tensors="pt", padding=True, return_token_type_ids=False)
    pad, start = model.config.pad_token_id, model.generation_config.decoder_start_token_id
    never = [[token] for token in {pad, start} - {model.config.eos_token_id}]
    found = model.generate(**read, bad_words_ids=never, **wishes)
    return [text.strip() for text in tokenizer.batch_decode(found, skip_special_tokens=True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [None, 1])
def test_a_published_folder_writes_what_transformers_writes(kind: str, beam: int | None, tmp_path: Path) -> None:
    for seed in range(3):
        model, tokenizer = published(kind, tmp_path, seed)
        run = regard.load(tmp_path)
        assert (run.config.decode.beam, run.config.decode.max_length, run.config.decode.no_repeat_ngram) == (
            3,
            24 - (kind == "bart"),
            2,
        )
        search = None if beam is None else run.config.decode.model_copy(update={"method": "greedy"})
        found = [one.text for one in run.translate(TEXTS, search)]
        assert found == written(model, tokenizer, TEXTS, **({} if beam is None else {"num_beams": beam}))
        assert any(found), "the test should see some text"


@pytest.mark.parametrize("wishes", [{"early_stopping": True, "length_penalty": 2.0}, {"forced_eos_token_id": 2}])
def test_a_search_ends_as_the_folder_says(wishes: dict[str, Any], tmp_path: Path) -> None:
    """As BART's that summarise: early, or with the end mark in the last place."""
    differs = 0
    for seed in range(4):
        model, tokenizer = published("bart", tmp_path, seed)
        plain = [one.text for one in regard.load(tmp_path).translate(TEXTS)]
        model.generation_config.update(max_length=12, **wishes)
        model.save_pretrained(tmp_path)
        run = regard.load(tmp_path)
        found = [one.text for one in run.translate(TEXTS)]
        assert found == written(model, tokenizer, TEXTS)
        search = run.config.decode.model_copy(update={"early_stopping": False, "force_end": False})
        differs += found != [one.text for one in run.translate(TEXTS, search)]
        assert plain, "there was something to shorten"
    assert differs, "the wish changed nothing"


def test_lengths_may_be_said_without_the_first_mark(tmp_path: Path) -> None:
    model, _ = published("t5", tmp_path)
    model.generation_config.update(max_length=None, max_new_tokens=9, min_length=1)
    model.save_pretrained(tmp_path)
    decode = regard.load(tmp_path).config.decode
    assert (decode.max_length, decode.min_length) == (9, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_its_attention_is_replayed_over_the_finished_text(kind: str, tmp_path: Path) -> None:
    model, tokenizer = published(kind, tmp_path)
    (one,) = regard.load(tmp_path).translate(TEXTS[:1])
    source = tokenizer(TEXTS[0], return_tensors="pt").input_ids
    marks = one.translator.marks
    target = torch.tensor([marks.target(one.target_ids)])
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model(input_ids=source, decoder_input_ids=target[:, :-1], output_attentions=True)
    record = one.look(Recording())
    for number, expected in enumerate(theirs.cross_attentions):
        heads = record[f"decoder.{number}.cross"]
        torch.testing.assert_close(torch.from_numpy(heads.weights), expected[0], atol=1e-5, rtol=1e-4)
        assert len(heads.keys.tokens) == source.shape[1]
        assert heads.keys.tokens[-1] == heads.queries.tokens[-1] == "</s>"
    (row,) = expected[0].sum(dim=-1).unique().round(decimals=4).unique()
    assert row == 1


def test_a_task_can_be_asked_for(tmp_path: Path) -> None:
    model, tokenizer = published("t5", tmp_path)
    run = regard.load(tmp_path)
    asked = [f"sleeping dog: {text}" for text in TEXTS]
    found = [one.text for one in run.stream(TEXTS, ask="sleeping dog: ")]
    assert found == written(model, tokenizer, asked) == [one.text for one in run.translate(asked)]
    assert found != [one.text for one in run.translate(TEXTS)]
    assert [one.text for one in run.summarize(TEXTS, ask="sleeping dog:")] == found


@pytest.mark.parametrize("kind", ["bart", "t5", "marian"])
def test_fine_tuned_and_exported_it_still_agrees(kind: str, tmp_path: Path) -> None:
    published(kind, tmp_path / "theirs")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(
        "".join(
            f"{text} {n}\t{other}\n"
            for n in range(20)
            for text, other in zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True)
        )
    )
    settings = {
        "start": str(tmp_path / "theirs"),
        "train.steps": 4,
        "train.validate_every": 2,
        "data.max_length": 38 if kind != "t5" else 99,
    }
    settings |= {"train.validate_sentences": 2, "train.warmup": 0, "train.learning_rate": 0.01, "decode.max_length": 12}
    settings |= {"data.test_count": 3}
    train("translate", [str(pairs)], out=tmp_path / "run", settings=settings)
    run = regard.load(tmp_path / "run")
    before, after = open_saved(tmp_path / "theirs").weights, open_saved(run.folder.path).weights
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before), "it learned"
    export(open_saved(run.folder.path), tmp_path / "back")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    assert "token_type_ids" not in tokenizer(TEXTS), "its models would not take them"
    search = run.config.decode.model_copy(update={"max_length": 20})
    ours = [one.text for one in run.translate(TEXTS, search)]
    assert ours == written(model, tokenizer, TEXTS, max_new_tokens=20 + (kind == "bart"), max_length=None)
    again = regard.load(tmp_path / "back")
    assert [one.text for one in again.translate(TEXTS, search)] == ours


def test_what_has_no_published_form_is_refused(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{text} {n}\t{text}\n" for n in range(20) for text in TEXTS))
    settings = {"train.steps": 1, "train.validate_every": 1, "train.validate_sentences": 1, "data.test_count": 0}
    settings |= {"tokenizer.kind": "char", "model.width": 16, "model.inner": 16, "model.heads": 2}
    train("translate", [str(pairs)], out=tmp_path / "run", settings=settings)
    every = r"model\.norm = 'pre', model\.positions = 'sinusoid': cannot be written as marian, which has 'post', 'sin"
    with pytest.raises(UserError, match=every):
        export(open_saved(tmp_path / "run"), tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists(), "nothing is left of it"
    with pytest.raises(UserError, match=r"task .translate., it cannot summarize"):
        regard.load(tmp_path / "run").summarize("a", SearchConfig())
