"""A record holds what was recorded: selecting, joining into words and JSON neither lose nor invent weight."""

import numpy as np
import pytest
import torch

from regard.errors import UserError
from regard.nn.record import AttentionRecord, Axis, Heads, Recording, records

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
        {
            site: Heads(
                softmax(heads, len(rows), len(columns)).numpy(),
                Axis(rows, row_words),
                Axis(columns, column_words),
                list(range(heads)),
            )
            for site, (rows, row_words, columns, column_words) in sites.items()
        }
    )


def test_matrix_is_one_head_or_the_mean_at_the_alignment() -> None:
    record = example()
    assert record.alignment_site == "decoder.1.cross"
    np.testing.assert_array_equal(record.matrix(), record["decoder.1.cross"].weights.mean(axis=0))
    np.testing.assert_array_equal(record.matrix("encoder.0.self", 2), record["encoder.0.self"].weights[2])
    assert record.select("*.self").alignment_site == "decoder.1.self", "without cross-attention, the last site"


def test_select_sites_heads_and_rows() -> None:
    record = example()
    small = record.select("decoder.*.cross", heads=[0, 2], rows=[1, 3])
    assert list(small.sites) == ["decoder.0.cross", "decoder.1.cross"]
    for site in small.sites:
        np.testing.assert_array_equal(small[site].weights, record[site].weights[[0, 2]][:, [1, 3]])
        assert small[site].numbers == [0, 2]
        assert small[site].queries.tokens == ["ch", "."]
        assert small[site].keys.tokens == KEYS
        assert small[site].queries.words == [[0], [1]], "words are counted among the rows that are left"
    np.testing.assert_array_equal(small.matrix(head=2), record["decoder.1.cross"].weights[2][[1, 3]])


def test_selecting_twice_is_selecting_once() -> None:
    twice = example().select(heads=[1, 2]).select("decoder.1.*", heads=[2])
    once = example().select("decoder.1.*", heads=[2])
    assert twice.to_json() == once.to_json()


def test_selecting_everything_changes_nothing() -> None:
    record, same = example(), example().select()
    for site in record.sites:
        np.testing.assert_array_equal(same[site].weights, record[site].weights)
        assert (same[site].queries, same[site].keys) == (record[site].queries, record[site].keys)


def test_words_join_tokens_and_rows_still_sum_to_one() -> None:
    record = example()
    words = record.words()
    assert words["decoder.0.cross"].queries.tokens == ["Le", "chat", "."]
    assert words["decoder.0.cross"].keys.tokens == ["The", "white", "cat"]
    for site in words.sites:
        np.testing.assert_allclose(words[site].weights.sum(axis=-1), 1, atol=1e-6)
    tokens, joined = record["decoder.0.cross"].weights, words["decoder.0.cross"].weights
    np.testing.assert_allclose(joined[:, 0, 1], tokens[:, 0, 1] + tokens[:, 0, 2], atol=1e-6)
    np.testing.assert_allclose(joined[:, 1, 0], (tokens[:, 1, 0] + tokens[:, 2, 0]) / 2, atol=1e-6)


@pytest.mark.parametrize("heads", [None, [1, 2]])
def test_json_round_trip_is_exact(heads: list[int] | None) -> None:
    record = example() if heads is None else example().select(heads=heads)
    record["decoder.1.cross"].keys.tokens[0] = "“猫 \n<s> 😀"
    read = AttentionRecord.from_json(record.to_json())
    assert list(read.sites) == list(record.sites)
    for site in record.sites:
        np.testing.assert_array_equal(read[site].weights, record[site].weights)
        assert read[site].weights.dtype == np.float32
        for name in ("queries", "keys", "numbers"):
            assert getattr(read[site], name) == getattr(record[site], name)


def test_json_keeps_tokens_readable() -> None:
    heads = Heads(np.ones((1, 1, 1), np.float32), Axis.plain(["猫"]), Axis.plain(["cat"]), [0])
    assert "猫" in AttentionRecord({"decoder.cross": heads}).to_json()


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
    with pytest.raises(UserError, match=r"row = 4: the record holds rows 0 to 3"):
        record.select("decoder.1.cross", rows=[4])
    with pytest.raises(UserError, match=r"sites = 'vision\.\*': matches nothing \(known: decoder\.0\.cross, decoder"):
        record.select("vision.*")
    with pytest.raises(UserError, match="the record is empty: this model has no attention"):
        AttentionRecord({}).matrix()


def test_weights_and_labels_must_agree() -> None:
    with pytest.raises(AssertionError, match=r"weights \(1, 2, 3\) for labels \(1, 1, 3\)"):
        Heads(np.ones((1, 2, 3), np.float32), Axis.plain(["a"]), Axis.plain(["x", "y", "z"]), [0])


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
    return list(records(recording, 2, axes))


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
        np.testing.assert_array_equal(record["decoder.cross"].weights, expected)
        assert record["decoder.cross"].queries.tokens == [queries.tokens[row] for row in kept]
        assert record["decoder.cross"].keys.tokens == keys.tokens
        assert record["decoder.cross"].numbers == ([0, 1, 2] if heads is None else heads)


def test_recording_wants_sites_by_pattern() -> None:
    recording = Recording(sites="decoder.*.cross")
    assert recording.wants("decoder.3.cross")
    assert not recording.wants("decoder.3.self")
    assert not recording.wants("decoder.cross")


def test_nothing_recorded_gives_empty_records() -> None:
    assert list(records(Recording(), 2, axes)) == [AttentionRecord({})] * 2


def test_a_word_is_written_in_its_letters() -> None:
    """Even where its tokens are the bytes of a letter that the vocabulary does not have."""
    axis = Axis(["▁", "<0xE2>", "<0x82>", "<0xAC>", "5", "▁", ".", "▁"], [[0, 1, 2, 3, 4], [5, 6], [7]])
    assert axis.joined().tokens == ["€5", ".", "▁"]
