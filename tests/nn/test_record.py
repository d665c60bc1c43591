"""A record holds what was recorded: selecting, joining into words and JSON neither lose nor invent weight."""

import numpy as np
import pytest
import torch

from regard.errors import UserError
from regard.nn.record import AttentionRecord, Axis, Recording, records

QUERIES, KEYS = ["Le", "ch", "at", "."], ["The", "wh", "ite", "c", "at"]
QUERY_WORDS, KEY_WORDS = [[0], [1, 2], [3]], [[0], [1, 2], [3, 4]]


def softmax(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def example(heads: int = 3) -> AttentionRecord:
    sites = {
        "encoder.0.self": (KEYS, KEY_WORDS, KEYS, KEY_WORDS),
        "decoder.0.cross": (QUERIES, QUERY_WORDS, KEYS, KEY_WORDS),
        "decoder.1.cross": (QUERIES, QUERY_WORDS, KEYS, KEY_WORDS),
        "decoder.1.self": (QUERIES, QUERY_WORDS, QUERIES, QUERY_WORDS),
    }
    return AttentionRecord(
        {site: softmax(heads, len(rows), len(columns)).numpy() for site, (rows, _, columns, _) in sites.items()},
        {site: rows for site, (rows, _, _, _) in sites.items()},
        {site: columns for site, (_, _, columns, _) in sites.items()},
        None,
        {site: words for site, (_, words, _, _) in sites.items()},
        {site: words for site, (_, _, _, words) in sites.items()},
    )


def test_matrix_is_one_head_or_the_mean_at_the_alignment() -> None:
    record = example()
    assert record.alignment_site == "decoder.1.cross"
    np.testing.assert_array_equal(record.matrix(), record.weights["decoder.1.cross"].mean(axis=0))
    np.testing.assert_array_equal(record.matrix("encoder.0.self", 2), record.weights["encoder.0.self"][2])
    assert record.select("*.self").alignment_site == "decoder.1.self", "without cross-attention, the last site"


def test_select_sites_heads_and_rows() -> None:
    record = example()
    small = record.select("decoder.*.cross", heads=[0, 2], rows=[1, 3])
    assert small.sites == ["decoder.0.cross", "decoder.1.cross"]
    assert small.heads == [0, 2]
    for site in small.sites:
        np.testing.assert_array_equal(small.weights[site], record.weights[site][[0, 2]][:, [1, 3]])
        assert small.queries[site] == ["ch", "."]
        assert small.keys[site] == KEYS
        assert small.query_words[site] == [[0], [1]], "words are counted among the rows that are left"
    np.testing.assert_array_equal(small.matrix(head=2), record.weights["decoder.1.cross"][2][[1, 3]])


def test_selecting_twice_is_selecting_once() -> None:
    twice = example().select(heads=[1, 2]).select("decoder.1.*", heads=[2])
    once = example().select("decoder.1.*", heads=[2])
    assert twice.to_json() == once.to_json()


def test_selecting_everything_changes_nothing() -> None:
    record, same = example(), example().select()
    for site in record.sites:
        np.testing.assert_array_equal(same.weights[site], record.weights[site])
    assert (same.queries, same.keys) == (record.queries, record.keys)
    assert (same.query_words, same.key_words) == (record.query_words, record.key_words)


def test_words_join_tokens_and_rows_still_sum_to_one() -> None:
    record = example()
    words = record.words()
    assert words.queries["decoder.0.cross"] == ["Le", "chat", "."]
    assert words.keys["decoder.0.cross"] == ["The", "white", "cat"]
    for site in words.sites:
        np.testing.assert_allclose(words.weights[site].sum(axis=-1), 1, atol=1e-6)
    tokens, joined = record.weights["decoder.0.cross"], words.weights["decoder.0.cross"]
    np.testing.assert_allclose(joined[:, 0, 1], tokens[:, 0, 1] + tokens[:, 0, 2], atol=1e-6)
    np.testing.assert_allclose(joined[:, 1, 0], (tokens[:, 1, 0] + tokens[:, 2, 0]) / 2, atol=1e-6)


@pytest.mark.parametrize("heads", [None, [1, 2]])
def test_json_round_trip_is_exact(heads: list[int] | None) -> None:
    record = example() if heads is None else example().select(heads=heads)
    record.keys["decoder.1.cross"][0] = "“猫 \n<s> 😀"
    read = AttentionRecord.from_json(record.to_json())
    assert read.sites == record.sites
    for site in record.sites:
        np.testing.assert_array_equal(read.weights[site], record.weights[site])
        assert read.weights[site].dtype == np.float32
    for name in ("queries", "keys", "heads", "query_words", "key_words"):
        assert getattr(read, name) == getattr(record, name)


def test_json_keeps_tokens_readable() -> None:
    record = AttentionRecord(
        {"decoder.cross": np.ones((1, 1, 1), np.float32)}, {"decoder.cross": ["猫"]}, {"decoder.cross": ["cat"]}
    )
    assert "猫" in record.to_json()


def test_errors_name_what_is_there() -> None:
    record = example()
    with pytest.raises(
        UserError, match=r"site = 'decoder\.1\.cros': not in the record; did you mean 'decoder\.1\.cross'\?"
    ):
        record.matrix("decoder.1.cros")
    with pytest.raises(UserError, match=r"head = 3: the record holds heads \[0, 1, 2\]"):
        record.matrix(head=3)
    with pytest.raises(UserError, match=r"head = 0: the record holds heads \[1\]"):
        record.select(heads=[1]).matrix(head=0)
    with pytest.raises(UserError, match=r"sites = 'vision\.\*': matches nothing \(known: decoder\.0\.cross, decoder"):
        record.select("vision.*")
    with pytest.raises(UserError, match="the record is empty: this model has no attention"):
        AttentionRecord({}, {}, {}).matrix()


def test_weights_and_labels_must_agree() -> None:
    with pytest.raises(AssertionError, match=r"decoder\.cross: weights \(1, 2, 3\), labels \(1, 3\)"):
        AttentionRecord(
            {"decoder.cross": np.ones((1, 2, 3), np.float32)},
            {"decoder.cross": ["a"]},
            {"decoder.cross": ["x", "y", "z"]},
        )


# Recording during a forward pass


def axes(site: str, sentence: int) -> tuple[Axis, Axis]:
    """The second sentence of the batch is shorter by a query and two keys."""
    queries, keys = QUERIES[: 4 - sentence], KEYS[: 5 - 2 * sentence]
    return Axis(queries, [[i] for i in range(len(queries))]), Axis(keys, [[i] for i in range(len(keys))])


def record_steps(recording: Recording, weights: torch.Tensor, step: int) -> list[AttentionRecord]:
    """What `attention` does: `step` queries per call, as an RNN decoder gives them, or all of them at once."""
    for first in range(0, weights.shape[2], step):
        part = weights[:, :, first : first + step]
        heads, rows = recording.select("decoder.cross", part.shape[1], part.shape[2])
        if rows:
            recording.add("decoder.cross", part[:, heads][:, :, rows])
    return list(records(recording, axes))


@pytest.mark.parametrize("rows", [None, [0, 3], [1, 2]])
@pytest.mark.parametrize("heads", [None, [2], [0, 1]])
@pytest.mark.parametrize("step", [1, 4])
def test_records_are_the_batch_without_its_padding(step: int, heads: list[int] | None, rows: list[int] | None) -> None:
    weights = softmax(2, 3, 4, 5)
    both = record_steps(Recording(heads=heads, rows=rows), weights, step)
    assert len(both) == 2
    for sentence, record in enumerate(both):
        queries, keys = axes("decoder.cross", sentence)
        kept = [row for row in (range(4) if rows is None else rows) if row < len(queries.tokens)]
        expected = weights[sentence].numpy()[[0, 1, 2] if heads is None else heads][:, kept, : len(keys.tokens)]
        np.testing.assert_array_equal(record.weights["decoder.cross"], expected)
        assert record.queries["decoder.cross"] == [queries.tokens[row] for row in kept]
        assert record.keys["decoder.cross"] == keys.tokens
        assert record.heads == heads


def test_recording_wants_sites_by_pattern() -> None:
    recording = Recording(sites="decoder.*.cross")
    assert recording.wants("decoder.3.cross")
    assert not recording.wants("decoder.3.self")
    assert not recording.wants("decoder.cross")


def test_nothing_recorded_gives_no_records() -> None:
    assert list(records(Recording(), axes)) == []
