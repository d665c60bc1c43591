"""`regard evaluate`: how good a run is, on a file or on the sentences it held out itself."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from regard.config import SearchConfig
    from regard.run import Run
    from regard.tasks.base import Evaluation
    from regard.tasks.translation_scores import Variant


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Pairs to score; without them, the run's own held-out sentences.", show_default=False),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Source and target columns: en,fr or 0,1.")] = None,
    tokenize: Annotated[
        str | None,
        typer.Option(help="sacreBLEU's tokenizer: 13a, none, intl, zh, char, ...; by default as in training."),
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    max_bad_share: Annotated[
        float | None, typer.Option(help="Share of unusable lines that is an error; as in training.", min=0, max=1)
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Width of the beam; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="0 favours short outputs, 1 is neutral.")] = None,
    ask: Annotated[str | None, typer.Option(help="Said before every text: 'translate English to German:'.")] = None,
    by_length: Annotated[bool, typer.Option("--by-length", help="BLEU of short and of long sentences too.")] = False,
    stride: Annotated[
        int | None, typer.Option(help="Language models: tokens predicted from one context.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write each sentence, its output and its BLEU (JSONL).", show_default=False)
    ] = None,
    worst: Annotated[
        Path | None, typer.Option(help="Draw the worst errors of a model of images (.png).", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    int8: Annotated[bool, typer.Option("--int8", help="Weights in 8 bits: faster, hardly worse (CPU).")] = False,
) -> None:
    """Score a run on a file, or on what it held out.

    Translation: BLEU, chrF and TER with their signatures, exact outputs, perplexity, token accuracy, and the alignment
    error rate (AER) where the file's third column holds word alignments. Other tasks: their own scores.
    """
    from regard.explorer.figures import writable
    from regard.run import Run
    from regard.tasks.base import Predictor
    from regard.tasks.generator import Generator
    from regard.tasks.image_classifier import ImageClassifier
    from regard.tasks.summarize import Summarizer
    from regard.tasks.translation_scores import Variant

    opened = Run.load(run, device, "int8" if int8 else "float32")
    predictor, translates = opened.predictor, opened.config.task == "translate"
    writing = {"--beam": beam, "--length-penalty": length_penalty, "--ask": ask}
    reading = {"--out": out, "--columns": columns, "--max-bad-share": max_bad_share}
    for able, whose, options in (
        (translates, "translators", {"--tokenize": tokenize, "--lowercase": lowercase, "--by-length": by_length}),
        (translates or isinstance(predictor, Summarizer), "models that write", writing),
        (translates or isinstance(predictor, Predictor), "runs that are scored on files", reading),
        (isinstance(predictor, Generator), "language models", {"--stride": stride}),
        (isinstance(predictor, ImageClassifier), "models of images", {"--worst": worst}),
    ):
        for name, value in options.items():
            if value is not None and value is not False and not able:
                raise UserError(f"{name}: is for {whose}; {run} is a run of the task {opened.config.task!r}")
    if worst is not None:
        writable(worst)
    search = opened.config.decode.wishing({"beam": beam, "length_penalty": length_penalty})
    if translates:
        variant = Variant(tokenize or opened.variant.tokenize, lowercase)
        sets = _sets(opened, files or [], columns, max_bad_share)
        _score_pairs(opened, sets, search, variant, ask, files or [], by_length, out, as_json)
    elif isinstance(predictor, Predictor):
        score = predictor.evaluate
        if isinstance(predictor, Generator):
            score = partial(predictor.evaluate, stride=stride)
        elif isinstance(predictor, Summarizer):
            translator = predictor.translator if ask is None else predictor.translator.asking(ask)
            score = Summarizer(translator, search).evaluate
        _score(_sets(opened, files or [], columns, max_bad_share), score, files or [], out, worst, as_json)
    else:
        _score_again(opened, files or [], as_json)


def _score_pairs(
    run: Run,
    sets: Mapping[str, Sequence[Any]],
    search: SearchConfig,
    variant: Variant,
    ask: str | None,
    files: list[str],
    by_length: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """A translator's scores, on files or on what the run held out."""
    from regard.cli.output import output
    from regard.cli.show import print_lengths, print_scores
    from regard.tasks.translation_scores import sentence_bleu

    scores = {}
    with output(out, [Path(file) for file in files]) as file:
        for name, pairs in sets.items():
            found, results = run.evaluate(pairs, search, variant, ask)
            scores[name] = asdict(found)
            if cut := sum(one.truncated for one in results):
                typer.echo(
                    f"warning: {name}: {cut:,} sources are too long for the model; their beginning was read", err=True
                )
            if out is None:
                continue
            each = sentence_bleu([one.text for one in results], [pair.target for pair in pairs], variant)
            for pair, result, value in zip(pairs, results, each, strict=True):
                row: dict[str, object] = {"set": name, "source": pair.source, "reference": pair.target}
                row |= {"output": result.text, "bleu": round(value, 2)}
                print(json.dumps(row, ensure_ascii=False), file=file)
    if as_json:
        typer.echo(json.dumps(scores, indent=2, ensure_ascii=False))
        return
    print_scores(scores)
    if by_length:
        print_lengths(scores)


def _score(
    sets: Mapping[str, Sequence[Any]],
    score: Callable[[Sequence[Any]], Evaluation],
    files: list[str],
    out: Path | None,
    worst: Path | None,
    as_json: bool,
) -> None:
    """Any task's own scores, on files or on what the run held out."""
    from regard.cli.images import draw_worst
    from regard.cli.output import output
    from regard.cli.pictures import Picture

    scores = {}
    with output(out, [Path(file) for file in files]) as file:
        for number, (name, examples) in enumerate(sets.items(), 1):
            found = score(examples)
            scores[name] = found.scores
            if worst:
                draw_worst(examples, found.rows, Picture(worst, single=len(sets) == 1).place(number))
            for row in found.rows if out else ():
                print(json.dumps({"set": name, **row}, ensure_ascii=False), file=file)
    _show(scores, as_json)


def _sets(run: Run, files: list[str], columns: str | None, max_bad_share: float | None) -> Mapping[str, Sequence[Any]]:
    """What to score on, if there is something in each; what was left out of files is said."""
    from regard.cli.inputs import names_in
    from regard.data.badlines import BadLines

    bad = BadLines()
    sets = run.sets(files, names_in(columns), bad, max_bad_share)
    if bad.total:
        print(bad.summary(), file=sys.stderr)
    if not sets:
        path = run.folder.path
        raise UserError(f"{path}: held no examples out; give a file (regard evaluate {path} FILE)")
    for name, examples in sets.items():
        if not len(examples):
            raise UserError(f"{name}: no usable example in it, so there is nothing to score")
        if sys.stderr.isatty():
            print(f"Scoring {len(examples):,} of {name} ...", file=sys.stderr)
    return sets


def _score_again(run: Run, files: list[str], as_json: bool) -> None:
    """The scores of a task that is scored only on text of its own (pre-training), computed once more."""
    if files:
        raise UserError(f"{files[0]}: a run of the task {run.config.task!r} is scored on the text it held out only")
    _show(run.score(), as_json)


def _show(scores: Mapping[str, Mapping[str, Any]], as_json: bool) -> None:
    from regard.cli.show import print_task_scores

    if as_json:
        typer.echo(json.dumps(scores, indent=2, ensure_ascii=False))
    else:
        print_task_scores(scores)
