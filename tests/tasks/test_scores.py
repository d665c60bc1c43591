"""Scores against hand-made cases."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import VARIANTS

from regard.api import train
from regard.config import SearchConfig
from regard.data.pairs import Pair
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.models import build, parse_model
from regard.nn.record import AttentionRecord, Axis, Heads, Recording
from regard.tasks.alignment import alignment_errors
from regard.tasks.marks import Marks
from regard.tasks.translation_scores import (
    Variant,
    bleu,
    evaluate,
    forced_scores,
    scores_by_length,
    sentence_bleu,
    text_metrics,
    text_scores,
    tokenize_of,
)
from regard.tasks.translator import Translator, links

TEXTS = ["the white cat sleeps", "a red dog sees the cat", "two cats sleep", "the dog sleeps", "a cat"]


@pytest.fixture(scope="module")
def translator() -> Translator:
    tokenizer = Tokenizer.train(TEXTS, kind="word", vocabulary=23)
    torch.manual_seed(0)
    return Translator(build(parse_model(VARIANTS["transformer"]), len(tokenizer)).eval(), tokenizer)


def test_bleu_is_sacrebleus_and_its_variants_differ() -> None:
    assert bleu(["the cat sleeps ."], ["the cat sleeps ."]) == pytest.approx(100)
    assert bleu(["a", "b"], ["c", "d"]) == 0
    outputs, references = ["The Cat sleeps here."], ["the cat sleeps here."]
    cased, signature = text_scores(outputs, references, text_metrics(Variant(), references))
    uncased, other = text_scores(outputs, references, text_metrics(Variant(lowercase=True), references))
    assert cased["bleu"] < uncased["bleu"] == pytest.approx(100)
    assert "case:mixed" in signature["bleu"]
    assert "case:lc" in other["bleu"]


def test_links_are_the_strongest_and_the_end_mark_is_none() -> None:
    weights = np.array([[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]], np.float32)
    heads = Heads(weights, Axis.plain(["le", "chat", "dort", "</s>"]), Axis.plain(["the", "cat", "</s>"]), [0])
    record = AttentionRecord({"decoder.cross": heads})
    assert links(record, Marks(pad=0, start=1, end=2)) == ((0, 0), (1, 1))
    assert links(record, Marks(pad=0, start=2, end=2, before=(1,))) == ((0, 0),), "marks before either side"
    assert links(record, Marks(pad=0, start=1, end=2), asked=1) == ((0, 1),), "what was asked is no source word"


def test_alignment_error_is_zero_for_its_own_links_and_one_for_wrong_ones(translator: Translator) -> None:
    encode = translator.tokenizer.encode_batch
    sites = [f"decoder.{layer}.cross" for layer in range(2)]
    for site in sites:
        right, wrong = [], []
        for text in TEXTS:
            (record,) = translator.replay(encode([text]), encode([text]), Recording(sites="*cross"))
            found = links(record.words(), translator.marks, site)
            right.append(Pair(text, text, found))
            wrong.append(Pair(text, text, tuple((source + 50, target) for source, target in found)))
        assert alignment_errors(translator, right)[site] == pytest.approx(0)
        assert alignment_errors(translator, wrong)[site] == pytest.approx(1)


def test_forced_scores_are_those_of_the_log_probabilities(translator: Translator) -> None:
    pairs = [Pair(text, text) for text in TEXTS]
    nats, tokens, right = 0.0, 0, 0
    with torch.no_grad():
        for text in TEXTS:
            ids = translator.tokenizer.encode(text)
            hidden = translator.model(torch.tensor([[*ids, 3]]), torch.tensor([[2, *ids]]))
            log_probs = torch.log_softmax(translator.model.output(hidden), dim=-1)[0]
            for place, token in enumerate([*ids, 3]):
                nats -= log_probs[place, token].item()
                right += int(log_probs[place].argmax() == token)
                tokens += 1
    for budget in (5, 4096):
        forced = forced_scores(translator, pairs, budget)
        assert (forced.right, forced.tokens) == (right, tokens)
        assert forced.nats == pytest.approx(nats, rel=1e-4)


def test_scores_by_length_part_the_sentences() -> None:
    pairs = [Pair("w " * words, f"the cat number {words} sleeps") for words in (1, 10, 11, 20, 21, 45)]
    outputs = [pair.target if len(pair.source.split()) <= 20 else "no" for pair in pairs]
    found = scores_by_length(pairs, outputs, text_metrics(Variant(), [])["bleu"])
    assert {name: part.pairs for name, part in found.items()} == {"1-10": 2, "11-20": 2, "21-30": 1, "over 30": 1}
    assert [round(part.bleu) for part in found.values()] == [100, 100, 0, 0]


def test_evaluate_counts_what_is_exact(translator: Translator) -> None:
    options = SearchConfig(method="greedy")
    outputs = [one.text for one in translator.translate(TEXTS, options)]
    scores, results = evaluate(translator, [Pair(t, o) for t, o in zip(TEXTS, outputs, strict=True)], options)
    assert scores.exact == 100
    assert scores.sentences == len(results) == len(TEXTS)
    assert scores.aer == {}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("The cat sleeps.", "13a"),
        ("Кошка спит.", "13a"),
        ("고양이가 잔다.", "13a"),
        ("我今天去学校了。", "zh"),
        ("私は今日学校に行きました。", "char"),
        ("แมวกำลังนอนหลับ", "char"),
        ("He said 你好 to all of them.", "13a"),
        ("", "13a"),
    ],
)
def test_texts_are_parted_as_their_script_is(reference: str, expected: str) -> None:
    assert tokenize_of([reference]) == expected
    if expected != "13a":
        half = reference[: len(reference) // 2 + 2]
        assert 0 < bleu([half + "?"] * 3, [reference] * 3) < 100, "what is half right is not nothing"
        assert 0 < sentence_bleu([half], [reference])[0] < 100


def test_a_word_of_ter_is_a_character_where_there_are_no_spaces() -> None:
    references = ["我今天去学校了。", "他明天不来这里。"]
    metrics = text_metrics(Variant(), references)
    found, _ = text_scores([text[:-2] + "吗。" for text in references], references, metrics)
    assert 0 < found["ter"] < 50, "one of eight"


def test_the_pairs_that_are_too_long_do_not_cost_the_others_their_alignment(translator: Translator) -> None:
    short = Pair("the cat", "the cat", ((0, 0), (1, 1)))
    long = Pair("cat " * 3000, "cat", ((0, 0),))
    assert alignment_errors(translator, [short, long]) == alignment_errors(translator, [short])


def test_nothing_cannot_be_scored(translator: Translator) -> None:
    with pytest.raises(UserError, match=r"pairs = \[\]"):
        evaluate(translator, [], SearchConfig())


def test_a_run_scores_as_it_was_told_to(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a{n} b\ta{n} &apos; b\n" for n in range(40)), encoding="utf8")
    settings = {"train.steps": 1, "options.tokenize": "none", "tokenizer.vocabulary": 300, "model.width": 16}
    run = train(
        "translate", str(tmp_path / "pairs.tsv"), out=tmp_path / "run", model="rnn-attention", settings=settings
    )
    for scores in run.scores.values():
        assert "tok:none" in scores["signatures"]["bleu"]
    assert "tok:none" in run.evaluate([("a1 b", "a1 &apos; b")])[0].signatures["bleu"]
    assert "tok:13a" in run.evaluate([("a1 b", "a1 &apos; b")], variant=Variant("13a"))[0].signatures["bleu"]
    with pytest.raises(UserError, match="tokenize = 'nonne': unknown to sacreBLEU; did you mean 'none'"):
        train("translate", "no-file.tsv", out=tmp_path / "other", settings={"options.tokenize": "nonne"})
