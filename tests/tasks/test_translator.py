"""Translations come in order, belong to their source, and show the attention of the finished output."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import small_model

from regard.config import SearchConfig
from regard.data.prepare import Silent
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.nn.record import Recording
from regard.tasks import task_named
from regard.tasks import translator as module
from regard.tasks.translator import Translator
from regard.training.distributed import join
from regard.training.start import settle

WORDS = [f"w{n}" for n in range(19)]


@pytest.fixture(scope="module", params=["transformer", "rnn-attention", "rnn"])
def translator(request: pytest.FixtureRequest) -> Translator:
    return Translator(small_model(request.param), Tokenizer.train([" ".join(WORDS)] * 2, kind="word", vocabulary=23))


def texts(count: int, longest: int = 9) -> list[str]:
    random = np.random.default_rng(0)
    return [" ".join(random.choice(WORDS, random.integers(0, longest))) for _ in range(count)]


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_order_windows_and_batches_change_nothing(
    translator: Translator, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = texts(40)
    options = SearchConfig(method=method, beam=2)
    expected = [(one.source, one.text) for one in translator.translate(lines, options)]
    assert [source for source, _ in expected] == lines
    monkeypatch.setattr(module, "WINDOW", 7)
    small = options.model_copy(update={"batch_tokens": 12})
    assert [(one.source, one.text) for one in translator.translate(iter(lines), small)] == expected


def test_the_first_outputs_come_soon(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST", 2)
    monkeypatch.setattr(module, "WINDOW", 5)
    taken = iter(["w1"] * 20)
    seen = [20 - taken.__length_hint__() for _ in translator.translate(taken, SearchConfig(method="greedy"))]
    assert seen == [2] * 2 + [6] * 4 + [11] * 5 + [16] * 5 + [20] * 4


def test_a_stream_is_read_only_as_far_as_needed(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW", 5)
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield "w1 w2"

    results = translator.translate(endless(), SearchConfig(method="greedy"))
    for _ in range(7):
        next(results)
    assert taken == 10


def test_attention_belongs_to_the_finished_output(translator: Translator) -> None:
    """Each row of the cross-attention is what a step-by-step decoding of that very output would have looked at."""
    (result,) = translator.translate(["w3 w1 w4 w1 w5"], SearchConfig(beam=3, n_best=3))
    for one in [result, *result.others]:
        record = one.attention
        if not record.sites:
            assert type(translator.model).__name__ == "RNN"
            return
        heads = record[record.alignment_site]
        assert heads.queries.tokens == [*one.text.split(), "</s>"]
        assert heads.keys.tokens == ["w3", "w1", "w4", "w1", "w5", "</s>"]
        np.testing.assert_allclose(heads.weights.sum(axis=-1), 1, atol=1e-5)
        again = Recording()
        with torch.no_grad():
            source = torch.tensor([[*one.source_ids, 3]])
            translator.model(source, torch.tensor([[2, *one.target_ids]]), record=again)
        np.testing.assert_allclose(heads.weights, again.batch(record.alignment_site)[0].numpy(), atol=1e-6)


def test_only_what_is_asked_for_is_recorded(translator: Translator) -> None:
    (result,) = translator.translate(["w3 w1 w4"], SearchConfig(min_length=3))
    whole = result.attention
    if not whole.sites:
        return
    part = result.look(Recording(sites="*cross", heads=[0], rows=[1]))
    assert all(site.endswith("cross") for site in part.sites)
    for site in part.sites:
        assert part[site].weights.shape[:2] == (1, 1)
        np.testing.assert_allclose(part[site].weights[0, 0], whole[site].weights[0, 1], atol=1e-6)


def test_a_wish_can_be_used_twice_and_in_any_order(translator: Translator) -> None:
    one, other = translator.translate(["w3 w1 w4", "w2 w2"], SearchConfig(min_length=3))
    if not one.attention.sites:
        return
    wish = Recording(sites="*cross", rows=[2, 0])
    for result in (one, other):
        site = result.attention.alignment_site
        seen = result.look(wish)[site]
        np.testing.assert_allclose(seen.weights, result.attention[site].weights[:, [0, 2]], atol=1e-6)
        assert seen.queries.tokens == [result.attention[site].queries.tokens[row] for row in (0, 2)]
    with pytest.raises(UserError, match=r"rows = \[99\]: .* has rows 0 to"):
        one.look(Recording(rows=[99]))


def test_a_source_too_long_for_the_model_is_cut_and_told() -> None:
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 2, kind="word", vocabulary=23)
    short, long = Translator(small_model("transformer"), tokenizer).translate(
        ["w1", " ".join(["w1"] * 100)], SearchConfig(method="greedy")
    )
    assert (short.truncated, long.truncated) == (False, True)
    assert len(long.source_ids) == 63


def test_a_decoder_shows_source_and_target_as_one() -> None:
    """Its prompt is the source: every token of either sees what stands before it, whoever shares the batch."""
    tokenizer = Tokenizer.train([" ".join(WORDS)] * 2, kind="word", vocabulary=23)
    decoder = Translator(small_model("gpt"), tokenizer)
    found = list(decoder.translate(["w1 w2 w3", "w4"], SearchConfig(method="greedy", max_length=5)))
    several = list(decoder.replay([one.source_ids for one in found], [one.target_ids for one in found], Recording()))
    for one, shared in zip(found, several, strict=True):
        tokens = [*one.source.split(), "</s>", "<s>", *tokenizer.tokens(one.target_ids)]
        heads = one.attention["decoder.1.self"]
        assert heads.keys.tokens == heads.queries.tokens == tokens
        np.testing.assert_allclose(heads.weights.sum(axis=-1), 1, atol=1e-5)
        assert not np.triu(heads.mean(), 1).any()
        np.testing.assert_allclose(shared["decoder.1.self"].weights, heads.weights, atol=1e-5)


def test_what_is_asked_for_is_not_cut_off(translator: Translator) -> None:
    """By the length that outputs have where nothing is asked for: 10 + twice the source's."""
    (found,) = translator.translate(["w2"], SearchConfig(method="greedy", min_length=25))
    assert len(found.target_ids) >= 25
    prefix = " ".join(["w1"] * 20)
    (found,) = translator.translate(["w2"], SearchConfig(beam=2), [prefix])
    assert found.text.startswith(prefix)
    with pytest.raises(UserError, match="max_length = 3: is less than a prefix of 20 tokens"):
        list(translator.translate(["w2"], SearchConfig(max_length=3), [prefix]))


def test_prefixes_are_as_many_as_texts(translator: Translator) -> None:
    with pytest.raises(UserError, match="prefixes: 1 beside 2 texts"):
        list(translator.translate(["w1", "w2"], SearchConfig(), ["w1"]))
    with pytest.raises(UserError, match="prefixes: 0 beside 1 texts"):  # those of the window before were enough
        list(translator.translate(["w1", "w2"], SearchConfig(), ["w1"], window=1))


def test_white_space_in_a_source_says_nothing(translator: Translator) -> None:
    plain, other = translator.translate(["w1 w2 w3", "w1\u00a0w2 \u202f w3"], SearchConfig())
    assert other.source == plain.source
    assert (other.text, other.score) == (plain.text, plain.score)


def test_a_text_with_line_breaks_is_one(translator: Translator) -> None:
    (found,) = translator.translate(["w1\nw2"], SearchConfig())
    assert found.source == "w1 w2"


def test_heads_that_are_not_there_are_said(translator: Translator) -> None:
    (found,) = translator.translate(["w1 w2"], SearchConfig())
    if not found.attention.sites:
        pytest.skip("a model without attention")
    with pytest.raises(UserError, match=r"heads = \[99\]: .* has heads 0 to"):
        found.look(Recording(heads=[99]))


def test_validation_translates_from_all_parts_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may be sorted: the first sentences would be the short ones."""
    rows = [" ".join(["w1"] * (1 + number // 40)) for number in range(200)]
    (tmp_path / "a.tsv").write_text("".join(f"{row} w{n}\t{row}\n" for n, row in enumerate(rows)), encoding="utf8")
    settings = {"data.valid": [str(tmp_path / "a.tsv")], "train.validate_sentences": 5, "tokenizer.vocabulary": 400}
    config, _ = settle("translate", [str(tmp_path / "a.tsv")], "transformer-micro", None, settings)
    task = task_named("translate").prepare(config, tmp_path / "cache", Silent())
    seen: list[str] = []

    def noted(self: Translator, texts: list[str], options: SearchConfig) -> list[Any]:
        seen.extend(texts)
        return [SimpleNamespace(text="") for _ in texts]

    monkeypatch.setattr(Translator, "translate", noted)
    task.validate(task.build(config, task.vocabulary, task.facts).eval(), join("cpu"))
    assert [len(text.split()) for text in seen] == [2, 3, 4, 5, 6]


def test_many_short_lines_are_not_one_batch(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores of a step are rows times beam times vocabulary."""
    sizes: list[int] = []
    inner = module.search

    def counted(model: Any, source: Any, options: Any, limits: Any) -> Any:
        sizes.append(len(source))
        return inner(model, source, options, limits)

    monkeypatch.setattr(module, "search", counted)
    monkeypatch.setattr(module, "SCORES_A_TOKEN", 4)
    options = SearchConfig(beam=5, batch_tokens=256)
    assert len(list(translator.translate(["w1"] * 60, options))) == 60
    most = 256 * 4 // (5 * len(translator.tokenizer))
    assert max(sizes) <= most + 1 < 60


def test_no_numbers_give_no_output_but_a_word(translator: Translator) -> None:
    import copy

    broken = copy.deepcopy(translator.model)
    with torch.no_grad():
        for weight in broken.parameters():
            weight.fill_(float("nan"))
    with pytest.raises(UserError, match="the weights of this model are no numbers"):
        list(Translator(broken, translator.tokenizer).translate(["w1 w2"], SearchConfig(beam=2)))
