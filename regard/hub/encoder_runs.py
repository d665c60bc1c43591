"""Published encoders as trained models of ours, and back: the head says which task it is."""

from __future__ import annotations

from pathlib import Path

from regard.data.tokenizer_files import open_tokenizer
from regard.errors import UserError, listed
from regard.hub.encoders import PublishedEncoder, read_encoder, write_encoder
from regard.hub.folder import Folder, read_json
from regard.hub.tokenizer import write_tokenizer
from regard.models.base import EncoderConfig, HeadName
from regard.tasks import settings_of
from regard.tasks.reading import subwords
from regard.tasks.saved import Facts, Saved

OURS = "regard"
"""Where config.json keeps what nobody else has a name for: whether questions may have no answer, and from when on."""
LONGEST = 4096
"""Tokens of a text that are read by a model which has no limit of its own, such as XLNet."""
TASKS: dict[HeadName | None, str] = {
    None: "masked",
    "masked": "masked",
    "pretraining": "masked",
    "sequence": "classify",
    "token": "tag",
    "span": "answer",
    "choice": "choose",
}


def open_encoder(folder: Folder) -> Saved:
    found = read_encoder(folder)
    if found.missing:
        raise UserError(f"{folder.path}: weights are missing: {listed(found.missing)}")
    longest = found.config.longest_input or LONGEST
    values = {"task": TASKS[found.head], "model": found.config.model_dump(), "data": {"max_length": longest}}
    config, _ = settings_of([("config.json", values)])
    text = open_tokenizer(folder.path)
    if len(text) > (rows := len(found.weights["encoder.words.weight"])):
        raise UserError(f"{folder.path}: its tokenizer has {len(text):,} entries, its model {rows:,}: not of one model")
    if folder.model_type == "big_bird" and found.head != "span" and not _tells_segments(folder.path):
        text = subwords(text).of_one_segment()
    facts = {**_facts(found), **folder.config.get(OURS, {})}
    return Saved(folder.path, config, found.weights, text, facts, found.spare, found.unused)


def export_encoder(saved: Saved, out: Path) -> None:
    config = saved.config
    head = _head(config.task, saved.facts)
    labels = saved.facts.get("labels") or saved.facts.get("tags") or ()
    numbers = saved.facts.get("numbers")
    problem = {None: None, True: "regression", False: "single_label_classification"}[numbers]
    labels = ["LABEL_0"] if numbers else labels
    assert isinstance(config.model, EncoderConfig), "an encoder's run has an encoder's config"
    more = {OURS: dict(saved.facts)} if head == "span" else {}
    write_encoder(out, PublishedEncoder(config.model, head, saved.weights, {}, labels, problem), more)
    # XLNet's summary is its last token: with padding on the right it would be of the padding.
    side = {"padding_side": "left"} if config.model.kind == "xlnet" else {}
    write_tokenizer(out, saved.tokenizer, saved.tokenizer.inner, segments=config.model.segments > 1, more=side)


def _tells_segments(path: Path) -> bool:
    """Whether the folder says that segments are read. BigBird's tokenizer in `transformers` has none, except where its
    model makes its own, for questions: what was fine-tuned there saw pairs as one segment."""
    said = path / "tokenizer_config.json"
    return said.is_file() and "token_type_ids" in (read_json(said).get("model_input_names") or ())


def _head(task: str, facts: Facts) -> HeadName | None:
    if task == "masked":
        head: HeadName | None = facts["head"]
        return head
    return next(head for head, name in TASKS.items() if name == task)


def _facts(found: PublishedEncoder) -> Facts:
    if found.problem == "multi_label_classification":
        raise UserError(
            "config.json: problem_type = 'multi_label_classification': a text has one label here; "
            "allowed: single_label_classification, regression"
        )
    if found.head == "sequence":
        numbers = found.problem == "regression" or len(found.labels) == 1
        return {"numbers": numbers, "labels": [] if numbers else list(found.labels), "threshold": 0.5}
    if found.head == "token":
        tags = list(found.labels)
        return {"tags": tags, "entities": "O" in tags}
    if found.head == "span":
        return {"none": False, "threshold": 0.0}
    return {"choices": 0} if found.head == "choice" else {"head": found.head}
