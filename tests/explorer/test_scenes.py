"""What the page is given is what Python's own record holds; what is off is off; what is inside adds up."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import VARIANTS, VOCABULARY, small_model

from regard.config import SearchConfig
from regard.data.subwords import Subwords
from regard.errors import UserError
from regard.explorer.document import document
from regard.explorer.inside import inside
from regard.explorer.opening import open_run
from regard.explorer.patterns import patterns
from regard.explorer.scene import Scene, Wish
from regard.explorer.seen import Seen, Shelf, pooled
from regard.explorer.writing import Writings
from regard.inference.silence import without
from regard.models import build, parse_model
from regard.nn.record import Axis, Heads, Recording
from regard.run import Run
from regard.tasks.generator import Generator

TEXT = "red cat sees dog"


class Random(Scene):
    """A random model over random tokens: a whole adapter, in ten lines."""

    output, score = "", None

    def __init__(self, variant: str) -> None:
        torch.manual_seed(1)
        self.model = small_model(variant)
        self.source, self.target = torch.randint(4, VOCABULARY, (1, 7)), torch.randint(4, VOCABULARY, (1, 5))

    def replay(self, recording: Recording) -> None:
        self.model(self.source, self.target, record=recording)

    def axes(self, site: str) -> tuple[Axis, Axis]:
        source, target = (Axis.plain([str(one) for one in ids[0].tolist()]) for ids in (self.source, self.target))
        if self.model.joined:
            source = target = Axis.plain([*source.tokens, *target.tokens])
        queries = source if site.startswith("encoder") else target
        return queries, source if site.endswith("cross") else queries

    @property
    def longest(self) -> int:
        return 12


def test_matrices_are_those_of_the_record(transformer_run: Path) -> None:
    seen = Seen(open_run(transformer_run).look(Wish(TEXT)))
    record = Run.load(transformer_run).translate(TEXT)[0].attention
    assert list(seen.heads) == list(record.sites)
    for site in record.sites:
        np.testing.assert_allclose(seen.matrix(site, "mean", "tokens"), record.matrix(site), atol=1e-5)
        np.testing.assert_allclose(seen.matrix(site, "1", "words"), record.words().matrix(site, 1), atol=1e-5)
        np.testing.assert_allclose(seen.matrix(site, "max", "tokens"), record[site].weights.max(axis=0), atol=1e-5)
        np.testing.assert_allclose(seen.matrix(site, "rollout", "words").sum(axis=1), 1, atol=1e-5)


def test_rollout_of_one_layer_is_half_itself(transformer_run: Path) -> None:
    seen = Seen(open_run(transformer_run).look(Wish(TEXT)))
    mean = seen.matrix("encoder.0.self", "mean", "tokens")
    np.testing.assert_allclose(seen.matrix("encoder.0.self", "rollout", "tokens"), (mean + np.eye(len(mean))) / 2)


def test_a_large_scene_is_recorded_site_by_site(transformer_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = open_run(transformer_run).look(Wish(TEXT))
    whole = Seen(scene)
    monkeypatch.setattr("regard.explorer.seen.HOLD", 0)
    monkeypatch.setattr("regard.explorer.seen.SHORT", 0)
    parts = Seen(scene)
    assert parts._whole is None
    assert parts.summary() == whole.summary()
    for site in whole.heads:
        np.testing.assert_array_equal(parts.matrix(site, "0", "words"), whole.matrix(site, "0", "words"))


def test_the_shelf_keeps_the_latest(transformer_run: Path) -> None:
    subject, shelf = open_run(transformer_run), Shelf(2)
    looks = {text: shelf.get(text, lambda text=text: subject.look(Wish(text))) for text in ("one", "two", "three")}
    assert shelf.get("three", lambda: pytest.fail("made twice")) is looks["three"]
    assert shelf.get("one", lambda: subject.look(Wish("one"))) is not looks["one"]


def test_pooling_keeps_the_largest() -> None:
    weights = np.random.default_rng(0).random((2, 100, 30), dtype=np.float32)
    small = pooled(weights, 10)
    assert small.shape == (2, 10, 10)
    assert small.max() == weights.max()
    np.testing.assert_array_equal(small[:, 0, 0], weights[:, :10, :3].max(axis=(1, 2)))
    np.testing.assert_array_equal(pooled(weights, 200), weights)


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "rnn" and not name.startswith("rnn, ")])
def test_the_inside_of_a_head_adds_up(variant: str) -> None:
    """Every score's formula, computed line by line, ends in the score; softmax and values give the head's output."""
    seen = Seen(Random(variant))
    for site, (query, key) in zip(seen.heads, [(2, 1), (4, 0), (0, 0), (3, 2), (4, 4), (1, 0)], strict=False):
        told = inside(seen, site, 0, query, key)
        weights = seen.matrix(site, "0", "tokens")[query]
        np.testing.assert_allclose(told["weights"], weights, atol=1e-6)
        assert told["lines"][-1]["number"] == pytest.approx(told["scores"][key], abs=1e-4)
        allowed, scores = np.array(told["allowed"]), np.array(told["scores"])
        shares = np.where(allowed, np.exp(scores - scores.max()), 0)
        np.testing.assert_allclose(shares / shares.sum(), weights, atol=1e-5)
        np.testing.assert_allclose(np.array(told["value"]) * weights[key], told["weighted"], atol=1e-6)
        assert told["formula"]


def test_the_inside_is_asked_for_what_there_is(transformer_run: Path) -> None:
    seen = Seen(open_run(transformer_run).look(Wish(TEXT)))
    with pytest.raises(UserError, match=r"head = 7: decoder\.0\.cross has 2 here, counted from 0"):
        inside(seen, "decoder.0.cross", 7, 0, 0)
    with pytest.raises(UserError, match=r"key = 99: decoder\.0\.cross has \d+ here"):
        inside(seen, "decoder.0.cross", 0, 0, 99)


@pytest.mark.parametrize("variant", ["transformer", "transformer, post-norm, learned positions"])
def test_a_head_that_is_off_adds_nothing(variant: str) -> None:
    """As if the columns of the output projection that read it were zero."""
    model, zeroed = small_model(variant), small_model(variant)
    source, target = torch.randint(4, VOCABULARY, (2, 7)), torch.randint(4, VOCABULARY, (2, 5))
    with torch.no_grad():
        zeroed.decoder[1].cross.output.weight[:, 8:] = 0  # the second of two heads of width 8
        expected = zeroed(source, target)
        before = model(source, target)
        torch.testing.assert_close(without(model, ["decoder.1.cross.1"])(source, target), expected)
        assert not torch.allclose(before, expected)
        torch.testing.assert_close(model(source, target), before, msg="the model itself is as it was")


def test_a_layer_that_is_off_passes_on() -> None:
    model = small_model("transformer")
    source, target = torch.randint(4, VOCABULARY, (2, 7)), torch.randint(4, VOCABULARY, (2, 5))
    with torch.no_grad():
        off = without(model, ["encoder.0", "encoder.1"])
        others = torch.cat([source[:, :1], source[:, 1:].flip(1)], dim=1)
        torch.testing.assert_close(off.encode(source)[:, 0], off.encode(others)[:, 0], msg="nobody looks at anybody")
        assert not torch.allclose(model.encode(source)[:, 0], model.encode(others)[:, 0])
        state, ids = off.start(source), target[:, 0]
        assert off.step(ids, state)[0].shape == (2, VOCABULARY), "and it can be decoded with"


@pytest.mark.parametrize(
    ("off", "message"),
    [
        ("decoder.1.cross.9", "this attention has heads 0 to 1"),
        ("decoder.7.cross.0", "there is no '7' here"),
        ("vision.0", r"this model has no such layers \(it has: encoder, decoder\)"),
        ("nonsense", "must be a head"),
    ],
)
def test_what_cannot_be_switched_off_is_said(off: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        without(small_model("transformer"), [off])


def test_switching_off_changes_the_score_and_nothing_stays_off(transformer_run: Path) -> None:
    subject = open_run(transformer_run)
    before = subject.look(Wish(TEXT)).score
    assert subject.look(Wish(TEXT, off=("decoder.1.cross.0", "decoder.1.cross.1"))).score != before
    assert subject.look(Wish(TEXT)).score == before


def test_an_rnn_has_nothing_to_switch_off(rnn_run: Path) -> None:
    subject = open_run(rnn_run)
    with pytest.raises(UserError, match="has no heads that could be switched off"):
        subject.check(Wish(TEXT, off=("decoder.0.cross.0",)))


def test_forced_tokens_begin_the_output_and_the_rest_is_searched(transformer_run: Path) -> None:
    subject = open_run(transformer_run)
    plain = subject.look(Wish(TEXT))
    other = next(one["id"] for one in plain.decoding()["steps"][0]["candidates"] if one["id"] != plain.target[0])
    forced = subject.look(Wish(TEXT, forced=(other,)))
    assert forced.target[0] == other
    assert forced.decoding()["steps"][0]["forced"]
    assert forced.score < plain.score


@pytest.mark.parametrize("run", ["transformer_run", "rnn_run"])
def test_the_tree_is_the_search(run: str, request: pytest.FixtureRequest) -> None:
    """Its paths are the outputs that the search answers with, with their scores; its candidates are the model's own."""
    path = request.getfixturevalue(run)
    scene = open_run(path).look(Wish(TEXT))
    best = Run.load(path).translate(TEXT)[0]
    assert (scene.output, scene.score) == (best.text, pytest.approx(best.score, abs=1e-4))
    told = scene.decoding()
    paths: list[list[int]] = [[]]
    finished = []
    for branches in told["tree"]:
        ended = [one for one in branches if one["kept"] and one["ended"]]
        finished += [(one["score"], paths[one["parent"]]) for one in ended]
        going = [one for one in branches if one["kept"] and not one["ended"]]
        paths = [[*paths[one["parent"]], one["id"]] for one in going]
    finished += [(one["score"], ids) for one, ids in zip(going, paths, strict=True)]  # they may have met the limit
    score, ids = max(finished)
    assert ids == best.target_ids
    assert score == pytest.approx(best.score, abs=1e-4)
    for step in told["steps"]:
        shares = [one["probability"] for one in step["candidates"]]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) <= 1 + 1e-5
    total = sum(np.log(step["chosen"]["probability"]) for step in told["steps"]) / len(told["steps"])
    assert total == pytest.approx(best.score, abs=1e-3), "the chosen tokens' probabilities make up the score"


def diagonal(offset: int) -> Heads:
    weights = np.eye(6, k=offset, dtype=np.float32)
    weights[weights.sum(axis=1) == 0, 0] = 1
    tokens = Axis.plain([f"t{place}" for place in range(6)])
    return Heads(weights[None], tokens, tokens, [0])


@pytest.mark.parametrize(("offset", "label"), [(-1, "previous"), (1, "next"), (0, "same")])
def test_heads_are_named_after_what_they_do(offset: int, label: str) -> None:
    (found,) = patterns(diagonal(offset), frozenset())
    assert found.label == label
    assert found.measures[label] == pytest.approx(1)
    assert "1.00 of its weight" in found.why


def test_heads_without_a_place_are_sharp_broad_or_mixed() -> None:
    axis, keys = Axis.plain(list("abcd")), Axis.plain(list("uvwx"))
    even = np.full((4, 4), 0.25, np.float32)
    point = np.roll(np.eye(4, dtype=np.float32), 2, axis=0) * 0.9 + 0.025
    mark = np.zeros((4, 4), np.float32)
    mark[:, 3] = 1
    labels = [
        one.label for one in patterns(Heads(np.stack([even, point, mark]), axis, keys, [0, 1, 2]), frozenset("x"))
    ]
    assert labels == ["broad", "sharp", "mark"]


def test_nothing_typed_is_nothing_seen(transformer_run: Path) -> None:
    told = Seen(open_run(transformer_run).look(Wish("  "))).summary()
    assert (told["output"], told["sites"], told["alignment"]) == ("", [], None)


def test_too_much_text_is_said(transformer_run: Path, rnn_run: Path) -> None:
    with pytest.raises(UserError, match=r"The text has 3,\d+ tokens; the page shows at most 2,048"):
        open_run(rnn_run).look(Wish("cat " * 3000))
    cut = open_run(transformer_run).look(Wish("cat " * 1500))
    assert "Only the first 1,023 of 1,5" in cut.note


# Encoders and pictures


def test_an_encoder_is_seen_as_its_own_record_has_it(classifier_run: Path) -> None:
    text = "the cat is dull"
    scene = open_run(classifier_run).look(Wish(text))
    (found,) = Run.load(classifier_run).predictor.classify([text])
    assert (scene.output, dict(scene.answers)) == (found.label, pytest.approx(found.probabilities, abs=1e-5))
    seen = Seen(scene)
    assert seen.summary()["alignment"] == "encoder.1.self"
    for site, heads in found.attention.sites.items():
        for head in heads.numbers:
            np.testing.assert_allclose(seen.matrix(site, str(head), "tokens"), heads.head(head), atol=1e-5)
    told = inside(seen, "encoder.1.self", 1, 0, 2)
    assert told["weights"] == pytest.approx(found.attention["encoder.1.self"].weights[1, 0].tolist(), abs=1e-5)


def test_an_encoder_without_its_layers_answers_otherwise(classifier_run: Path) -> None:
    subject = open_run(classifier_run)
    texts = ("the cat is dull", "the dog is great")
    off = [dict(subject.look(Wish(text, off=("encoder.0", "encoder.1"))).answers) for text in texts]
    on = [dict(subject.look(Wish(text)).answers) for text in texts]
    assert off[0] != on[0]
    assert Seen(subject.look(Wish(""))).summary()["sites"] == []


WORDS = "cat\tNOUN\nsees\tVERB\n\n" * 20
ASKED = {"question": "who sees?", "answers": [{"text": "the cat", "answer_start": 0}]}
QUESTIONS = [{"context": "the cat sees a dog", "qas": [{"id": str(place), **ASKED}]} for place in range(20)]
CHOICE = {"context": "the cat is", "options": ["good", "bad"], "label": 0}


@pytest.mark.parametrize(
    ("task", "file", "data", "text", "answers"),
    [
        ("tag", "words.conll", WORDS, "cat sees cat", 3),
        ("answer", "squad.json", json.dumps({"data": [{"paragraphs": QUESTIONS}]}), "who sees? ||| the cat sees", 1),
        ("choose", "choices.jsonl", (json.dumps(CHOICE) + "\n") * 20, "the cat is ||| good ||| bad", 2),
    ],
)
def test_every_reader_answers(
    task: str, file: str, data: str, text: str, answers: int, tmp_path: Path, classifier_run: Path
) -> None:
    """What is asked for is answered, what is missing is said; of a choice, the attention over what was chosen."""
    from regard.training.start import train

    (tmp_path / file).write_text(data, encoding="utf8")
    held_out = {"data.valid": [str(tmp_path / file)], "data.test": [str(tmp_path / file)]}
    settings = {"start": str(classifier_run), **held_out, "train.epochs": 0.1, "train.device": "cpu"}
    train(task, [str(tmp_path / file)], out=tmp_path / "run", settings=settings)
    subject = open_run(tmp_path / "run")
    scene = subject.look(Wish(text))
    assert len(scene.answers) == answers
    assert all(0 <= share <= 1 for _, share in scene.answers)
    assert task == "tag" or "|||" in subject.look(Wish("the cat is good")).note
    if task == "choose":
        assert scene.output == scene.answers[0][0]
        assert scene.output in scene.axes("encoder.0.self")[0].tokens


def test_an_encoder_that_fills_masks_is_shown(tmp_path: Path) -> None:
    from regard.training.start import train

    (tmp_path / "text.txt").write_text("the cat sees a dog\nthe dog sees a cat\n\n" * 40, encoding="utf8")
    shape = {"model.layers": 1, "model.width": 16, "model.inner": 16, "model.heads": 2, "tokenizer.vocabulary": 60}
    settings = {**shape, "train.steps": 1, "train.device": "cpu"}
    train("masked", [str(tmp_path / "text.txt")], out=tmp_path / "run", settings=settings)
    subject = open_run(tmp_path / "run")
    scene = subject.look(Wish(subject.examples[0]))
    assert Seen(scene).summary()["sites"]
    assert len(scene.answers) == 5, "the first example has a mask"
    assert len(subject.look(Wish("the <mask> sees a <mask>")).answers) == 2, "one guess for each"
    assert "[MASK]" in subject.look(Wish("the cat sees")).note


def test_a_long_question_is_seen_where_it_was_answered(tmp_path: Path, classifier_run: Path) -> None:
    from regard.training.start import train

    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": QUESTIONS}]}), encoding="utf8")
    files = [str(tmp_path / "squad.json")]
    settings = {"start": str(classifier_run), "data.valid": files, "data.test": files, "train.epochs": 0.1}
    train("answer", files, out=tmp_path / "run", settings={**settings, "train.device": "cpu"})
    context = "the cat sees a dog " * 200
    scene = open_run(tmp_path / "run").look(Wish(f"who sees? ||| {context}"))
    (found,) = Run.load(tmp_path / "run", "cpu").answer("who sees?", context)
    assert scene.row.ids == found.window.ids
    assert "the part with the answer is shown" in scene.note


def test_a_pair_is_two_texts(classifier_run: Path) -> None:
    (queries, _) = open_run(classifier_run).look(Wish("the cat ||| is dull")).axes("encoder.0.self")
    assert queries.tokens.count("[SEP]") == 2


def test_a_picture_is_seen_as_its_own_record_has_it(image_run: Path) -> None:
    subject = open_run(image_run)
    scene = subject.look(Wish(subject.examples[0]))
    seen = Seen(scene)
    record = scene.found.attention
    for site in record.sites:
        np.testing.assert_allclose(seen.matrix(site, "1", "tokens"), record.matrix(site, 1), atol=1e-5)
    image = seen.summary()["image"]
    assert (image["rows"], image["columns"], image["extra"]) == (4, 4, 1)
    own = subject.look(Wish(image["source"]))
    assert own.found.probabilities == pytest.approx(scene.found.probabilities, abs=1e-5), "the same picture, sent"
    for wrong in ("", "no such picture", "data:image/png;base64,AAAA", "data:image/png;base64,?"):
        with pytest.raises(UserError, match=r"picture|cannot be classified"):
            subject.look(Wish(wrong))


# Language models


@pytest.fixture(scope="module")
def writer() -> Writings:
    torch.manual_seed(0)
    tokenizer = Subwords.learn(["the red cat sees the dog"] * 4, kind="byte-bpe", vocabulary=300)
    shape = {"kind": "gpt", "layers": 2, "width": 16, "heads": 2, "max_length": 64}
    model = build(parse_model(shape), len(tokenizer)).eval()
    return Writings("gpt", "gpt", Generator(model, tokenizer, 64, [], [1]), SearchConfig(beam=3), ["the cat"])


def test_a_written_text_is_seen_as_its_own_record_has_it(writer: Writings) -> None:
    scene = writer.look(Wish("the red cat"))
    (best,) = writer.generator.generate(["the red cat"], SearchConfig(beam=3, max_length=12))
    assert (scene.ids, scene.score) == (best.ids, pytest.approx(best.score, abs=1e-4))
    seen = Seen(scene)
    for site in best.attention.sites:
        np.testing.assert_allclose(seen.matrix(site, "1", "tokens"), best.attention.matrix(site, 1), atol=1e-5)
    steps = scene.decoding()["steps"]
    assert [step["chosen"]["id"] for step in steps][: len(best.ids)] == best.ids
    forced = writer.look(Wish("the red cat", forced=(best.ids[0], steps[1]["candidates"][-1]["id"])))
    assert forced.ids[:2] == [best.ids[0], steps[1]["candidates"][-1]["id"]]
    assert writer.look(Wish("the red cat", off=("decoder.0", "decoder.1"))).score != scene.score


def test_a_prompt_longer_than_the_context_is_read_from_its_end(writer: Writings) -> None:
    assert "Only the last 52 of" in writer.look(Wish("the red cat sees the dog " * 20)).note


def test_a_page_of_a_part_has_no_rollout(transformer_run: Path) -> None:
    """What goes through all layers cannot be told from some of them."""
    record = Run.load(transformer_run).translate(TEXT)[0].attention
    assert '"rollout": true' in document(record)
    assert '"rollout": false' in document(record.select("decoder.*.cross"))
    assert '"rollout": false' in document(record.select("*", [0]), whole=False)
