"""The command line as a person meets it: what works, and for each mistake one clear message and exit code 2."""

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import SMALL, flags

from regard import Pair, UserError, load
from regard.cli import main
from regard.cli.show import print_task_scores, show_scores
from regard.training.folder import RunFolder

QUICK = flags({**SMALL, "train.steps": 20, "train.validate_every": 10})


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def regard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def run(*arguments: str | Path, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "argv", ["regard", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        read = capsys.readouterr()
        return Result(code, read.out, read.err)

    return run


@pytest.fixture(scope="module")
def trained(pairs_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "mine"
    arguments = ["train", "translate", str(pairs_file), "--out", str(out), "--model", "transformer-tiny", *QUICK]
    subprocess.run([sys.executable, "-m", "regard", *arguments], check=True, capture_output=True)
    return out


def test_help_is_quick_to_load_and_fits_eighty_columns() -> None:
    code = (
        "import sys, regard, regard.cli; sys.argv = ['regard', '--help']\n"
        "try: regard.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'matplotlib', 'pydantic', 'tokenizers'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"COLUMNS": "80", "PATH": ""}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for verb in ("demo", "train", "translate", "evaluate", "corpus", "models"):
        assert verb in done.stdout


def test_a_run_is_a_folder(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    assert names - {"tensorboard"} == {  # that one where its package is installed
        "config.yaml", "tokenizer.json", "model.safetensors", "metrics.jsonl", "curve.svg", "scores.json", "data",
        "training",
    }  # fmt: skip
    text = (trained / "config.yaml").read_text()
    assert "  steps: 20                               # command" in text
    assert "  width: 16                               # command" in text
    assert "# default" in text
    assert "# transformer-tiny" in text


def test_translate_sentences_a_file_and_standard_input(regard, trained: Path, tmp_path: Path) -> None:
    lines = ["one two", "", "red cat sees dog", "one"]
    file = tmp_path / "in.txt"
    file.write_text("\n".join(lines) + "\n")
    from_arguments = regard("translate", trained, *lines).out.splitlines()
    assert len(from_arguments) == 4
    assert from_arguments[1] == "", "an empty line stays an empty line, in its place"
    assert regard("translate", trained, file).out.splitlines() == from_arguments
    assert regard("translate", trained, stdin=file.read_text()).out.splitlines() == from_arguments
    regard("translate", trained, file, "--out", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text().splitlines() == from_arguments
    rows = [json.loads(line) for line in regard("translate", trained, file, "--json").out.splitlines()]
    assert [row["text"] for row in rows] == from_arguments
    assert len(regard("translate", trained, "one two", "--n-best", "3").out.splitlines()) == 3
    aligned = tmp_path / "links.txt"
    assert regard("translate", trained, "--n-best", "2", "--alignment", aligned, stdin="one two\n\n").code == 0
    found = [line.split() for line in aligned.read_text().splitlines()]
    assert len(found) == 4, "a line for each output, of empty lines too"
    assert found[2:] == [[], []]
    (best,) = load(trained).translate("one two", n_best=2)
    assert found[:2] == [[f"{source}-{target}" for source, target in one.links()] for one in (best, *best.others)]
    begun = regard("translate", trained, "one", "--prefix", "chat").out
    assert begun.startswith("chat")
    assert regard("translate", trained, "one", "--prefix", "chat ").out == begun, "a space behind it says nothing"
    sampled = [regard("translate", trained, "one two", "--method", "sample", "--seed", "3").out for _ in range(2)]
    assert sampled[0] == sampled[1]


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf", ".json"])
def test_attention_is_drawn(regard, trained: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"look{ending}"
    result = regard("translate", trained, "red cat sees dog", "--attention", path)
    assert result.code == 0, result.err
    assert path.stat().st_size > 500
    if ending == ".svg":
        assert ">cat</text>" in path.read_text()
    regard("translate", trained, "one two", "--attention", path, "--grid", "--subwords")
    regard("translate", trained, "one", "two", "--attention", path, "--site", "decoder.0.cross", "--head", "1")
    assert path.with_name(f"look-2{ending}").exists()


def test_evaluate(regard, trained: Path, pairs_file: Path, tmp_path: Path) -> None:
    own = regard("evaluate", trained, "--by-length", "--int8")
    assert own.code == 0, own.err
    assert "words" in own.out, "BLEU by the length of the source"
    assert "BLEU" in own.out
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in own.out, "the signature is shown"
    read = regard(
        "evaluate", trained, pairs_file, "--json", "--tokenize", "none", "--lowercase", "--out", tmp_path / "s"
    )
    scores = json.loads(read.out)["pairs.tsv"]
    assert scores["sentences"] == 300
    assert "case:lc" in scores["signatures"]["bleu"]
    assert "tok:none" in scores["signatures"]["bleu"]
    rows = [json.loads(line) for line in (tmp_path / "s").read_text().splitlines()]
    assert len(rows) == 300
    assert {"source", "reference", "output", "bleu"} <= set(rows[0])


def test_lists(regard) -> None:
    assert "english-french" in regard("corpus").out
    assert "\t" in regard("corpus", "dates").out
    assert "transformer-big" in regard("models").out


def test_what_exists_is_not_replaced(regard, trained: Path, tmp_path: Path) -> None:
    found = regard("demo", "--out", trained)
    assert (found.code, "already holds a run" in found.err) == (2, True)
    assert (trained / "model.safetensors").is_file()
    mine = "red cat\tchat rouge\n"
    (tmp_path / "train.tsv").write_text(mine)
    assert "is there already" in regard("corpus", "dates", "--out", tmp_path).err
    assert (tmp_path / "train.tsv").read_text() == mine
    for place in (tmp_path / "train.tsv", tmp_path):
        found = regard("evaluate", trained, place, "--out", tmp_path / "train.tsv")
        assert "is read and cannot be written" in found.err


@pytest.mark.parametrize("name", ["a.jpg", "nowhere/a.svg", "nowhere/a.json"])
def test_a_picture_that_cannot_be_drawn_is_said_before_the_work(
    regard, trained: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "out.txt").write_text("old")
    found = regard("translate", trained, "red cat", "--out", tmp_path / "out.txt", "--attention", tmp_path / name)
    assert found.code == 2
    assert (tmp_path / "out.txt").read_text() == "old"


def test_names_that_begin_with_a_tilde_are_names(regard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = regard("train", "translate", "~nobody.tsv", "--out", tmp_path / "run")
    assert (found.code, "~nobody.tsv: there is no such file" in found.err) == (2, True)


def test_brackets_in_names_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_task_scores({"data[v2].tsv": {"accuracy": 50.0, "confusion": {"[neg]": {"[neg]": 1}, "[/b]": {"[neg]": 2}}}})
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("data[v2].tsv", "[neg]", "[/b]"))


def test_of_many_classes_the_commonest_confusions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"class {number}" for number in range(40)]
    rows = {truth: {f"as {said}": 0 for said in names} for truth in names}
    for number, truth in enumerate(names):
        rows[truth] |= {f"as {truth}": 900, f"as {names[number - 1]}": 100 + number}
    print_task_scores({"test": {"accuracy": 90.0, "confusion": rows}})
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert [line.split()[-1] for line in shown.splitlines() if "class" in line] == [str(139 - n) for n in range(20)]
    assert "and 20 other errors (all: --json)" in shown


def test_python_scores_pairs_as_they_are_and_nothing_else(trained: Path) -> None:
    run = load(trained)
    scores, results = run.evaluate([("red cat", "chat rouge"), Pair("one dog", "chien un")])
    assert (scores.sentences, [one.source for one in results]) == (2, ["red cat", "one dog"])
    for pairs in (["ab"], [("a", "b", "c")], [("a", None)]):
        with pytest.raises(UserError, match=r"pairs\[0\]"):
            run.evaluate(pairs)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="stride = 4: is for language models"):
        run.score(stride=4)
    with pytest.raises(UserError, match=r"texts\[1\] = None: must be a text"):
        run.translate(["red cat", None])  # type: ignore[list-item]


def test_write_a_corpus_and_read_it_back(regard, tmp_path: Path) -> None:
    assert regard("corpus", "copy", "--out", tmp_path / "copy").code == 0
    first = (tmp_path / "copy" / "test.tsv").read_text().splitlines()[0].split("\t")
    assert first[0] == first[1]
    assert first[2].startswith("0-0 1-1"), "the gold alignment"


BINARY = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 50

MISTAKES: dict[str, tuple[str, str]] = {
    # name: (what train is given, what the message must say)
    "missing file": ("nowhere.tsv", r"nowhere\.tsv"),
    "empty file": ("empty.tsv", r"empty\.tsv.*empty"),
    "one column": ("one.tsv", r"one\.tsv"),
    "binary file": ("binary.tsv", r"binary\.tsv.*not a text file"),
    "truncated gzip": ("cut.tsv.gz", r"cut\.tsv\.gz"),
    "unknown key": ("pairs.tsv --set train.stepz=5", r"train\.stepz: unknown key; did you mean 'steps'\?"),
    "unknown section": ("pairs.tsv --set training.steps=5", r"training: unknown key; did you mean 'train'\?"),
    "unknown model key": ("pairs.tsv --set model.widht=5", r"model\.widht: unknown key; did you mean 'width'\?"),
    "wrong type": ("pairs.tsv --set train.steps=many", r"train\.steps = 'many': must be a valid integer"),
    "wrong choice": ("pairs.tsv --set train.schedule=steep", r"train\.schedule = 'steep': must be 'inverse-sqrt'"),
    "heads": ("pairs.tsv --set model.heads=3", r"width = 16: must be a multiple of heads = 3"),
    "no equals sign": ("pairs.tsv --set train.steps", r"--set 'train\.steps': must be key=value"),
    "unknown model": ("pairs.tsv --model transformer-tyni", r"model = 'transformer-tyni': unknown; did you mean 'tran"),
    "too long for the model": (
        "pairs.tsv --set data.max_length=1024",
        r"data\.max_length = 1024: must be at most 1023",
    ),
    "impossible betas": ("pairs.tsv --set train.betas=[1.5,2]", r"train\.betas\.0 = 1\.5: must be less than 1"),
    "impossible seed": ("pairs.tsv --set train.seed=99999999999", r"train\.seed = 99999999999: must be less than"),
    "zero batch": ("pairs.tsv --set train.batch_tokens=0", r"train\.batch_tokens = 0: must be greater than or equal"),
    "unknown device": ("pairs.tsv --set train.device=gpu9", r"device = 'gpu9': cannot be used here"),
    "missing recipe": ("pairs.tsv --config none.yaml", r"none\.yaml: cannot be read"),
    "broken recipe": ("pairs.tsv --config broken.yaml", r"broken\.yaml: not valid YAML"),
    "unknown tokenizer": ("pairs.tsv --set tokenizer.file=none.json", r"none\.json: there is no such file"),
    "no files": ("", r"data\.train: no file given"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_training_is_one_clear_message(
    mistake: str, regard, pairs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_bytes(pairs_file.read_bytes())
    Path("empty.tsv").touch()
    Path("one.tsv").write_text("only one column\n" * 20)
    Path("binary.tsv").write_bytes(BINARY)
    Path("cut.tsv.gz").write_bytes(gzip.compress(pairs_file.read_bytes())[:-20])
    Path("broken.yaml").write_text("train: [steps\n")
    given, expected = MISTAKES[mistake]
    model = [] if "--model" in given else ["--model", "transformer-tiny"]
    result = regard("train", "translate", "--out", "run", *model, *QUICK, *given.split())
    _one_message(result, expected)


def _one_message(result: Result, expected: str) -> None:
    import re

    assert result.code == 2, result.out + result.err
    assert "Traceback" not in result.err
    assert re.search(expected, result.err), result.err
    assert result.err.count("error:") == 1


def test_mistakes_with_runs(regard, trained: Path, pairs_file: Path, tmp_path: Path) -> None:
    def train(*arguments: str | Path) -> Result:
        return regard("train", "translate", pairs_file, *QUICK, *arguments)

    _one_message(regard("train", "translate", pairs_file), "--out: missing")
    _one_message(regard("train"), "what to train")
    _one_message(regard("train", "paint", pairs_file, "--out", tmp_path / "x"), "task = 'paint': unknown")
    _one_message(train("--out", trained), "already holds a run. To go on with it: regard train --resume")
    _one_message(regard("train", "translate", "--resume", trained), "takes no task; the run knows its own")
    _one_message(regard("train", "--resume", trained, "--model", "rnn"), "takes no --model")
    _one_message(regard("train", "--resume", trained, "--set", "model.width=8"), "model.width: cannot be changed")
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "config.yaml").write_text("colour: blue\n")
    _one_message(train("--out", settings, "--overwrite"), "not a run of Regard")
    _one_message(regard("translate", settings, "a"), "not a run of Regard")
    assert (settings / "config.yaml").exists(), "somebody else's folder is not touched"
    _one_message(regard("train", "translate", "none.tsv", "--out", trained, "--overwrite", *QUICK), "none.tsv")
    large = ("--set", "model.width=400000", "--set", "model.heads=4")
    _one_message(
        train("--out", trained, "--overwrite", *large), "weights need .* GB to be trained, and this machine has"
    )
    assert (trained / "model.safetensors").exists(), "a mistake does not cost the run that was to be replaced"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "photo.jpg").touch()
    _one_message(train("--out", tmp_path / "other"), r"holds other files \(photo.jpg\) and is not a run")
    (tmp_path / "file").touch()
    _one_message(train("--out", tmp_path / "file"), "is a file, not a folder")
    _one_message(train("--out", "/proc/nowhere/run"), "cannot be written")
    _one_message(regard("translate", tmp_path / "none", "a"), "no such folder")
    _one_message(regard("translate", tmp_path / "other", "a"), r"not a run of Regard \(it has no config.yaml\)")
    _one_message(regard("train", "--resume", tmp_path / "other"), "not a run of Regard")
    _one_message(regard("translate", trained, "a", "--beam", "0"), "decode.beam = 0: must be greater")
    _one_message(regard("translate", trained, "a", "--method", "best"), "decode.method = 'best': must be")
    _one_message(regard("translate", trained, "a", "--method", "greedy", "--n-best", "2"), "n_best = 2: greedy search")
    _one_message(regard("translate", trained, "sentnces.txt"), "sentnces.txt: no such file")
    _one_message(regard("translate", trained, "a", "--attention", tmp_path / "a.gif"), r"\.gif")
    (tmp_path / "in.txt").write_text("one\n")
    _one_message(regard("translate", trained, tmp_path / "in.txt", "--out", tmp_path / "in.txt"), "is read and cannot")
    assert (tmp_path / "in.txt").read_text() == "one\n"
    (tmp_path / "latin.txt").write_bytes("é".encode("latin1"))
    _one_message(regard("translate", trained, tmp_path / "latin.txt"), r"invalid UTF-8 \(line 1 of latin.txt\)")
    _one_message(regard("translate", trained, "a", "--attention", tmp_path / "no" / "a.svg"), "a.svg")
    _one_message(regard("translate", trained, "a", "--attention", tmp_path / "a.svg", "--site", "x"), "site = 'x'")
    _one_message(regard("translate", trained, "a", "--attention", tmp_path / "a.svg", "--head", "9"), "head = 9")
    _one_message(regard("translate", trained, "a", "--site", "x"), "--site: says what to draw; .* --attention")
    _one_message(regard("translate", trained, "a", "--out", tmp_path / "no" / "x.txt"), "cannot be written")
    _one_message(regard("evaluate", trained, tmp_path / "none.tsv"), "none.tsv")
    _one_message(regard("evaluate", trained, "--tokenize", "klingon"), "tokenize = 'klingon'")
    _one_message(regard("corpus", "klingon"), "klingon")


def test_a_damaged_run_is_named(regard, trained: Path, tmp_path: Path) -> None:
    import shutil

    def hurt(name: str, content: bytes | None) -> Path:
        copy = tmp_path / name.replace("/", "-")
        shutil.copytree(trained, copy)
        if content is None:
            (copy / name).unlink()
        else:
            (copy / name).write_bytes(content)
        return copy

    weights = (trained / "model.safetensors").read_bytes()
    _one_message(regard("translate", hurt("model.safetensors", weights[:-9]), "a"), "damaged or cut short")
    shutil.rmtree(tmp_path / "model.safetensors")
    _one_message(regard("translate", hurt("model.safetensors", None), "a"), "no trained weights yet")
    _one_message(regard("translate", hurt("tokenizer.json", b"{}"), "a"), "not a readable tokenizer.json")
    _one_message(regard("translate", hurt("config.yaml", b"\xff\xfe"), "a"), "config.yaml: not valid YAML")
    shutil.rmtree(tmp_path / "config.yaml")
    changed = (trained / "config.yaml").read_bytes().replace(b"width: 16", b"width: 32")
    _one_message(regard("translate", hurt("config.yaml", changed), "a"), "the weights do not fit the model")
    _one_message(regard("train", "--resume", hurt("data/report.json", b"?")), "report.json: damaged")


def test_bad_lines_are_told_with_their_numbers(regard, pairs_file: Path, tmp_path: Path) -> None:
    lines = pairs_file.read_bytes().splitlines()
    lines[4], lines[16] = b"no tab here", b"\xff\xfe\tx"
    (tmp_path / "some.tsv").write_bytes(b"\n".join(lines))
    result = regard("train", "translate", tmp_path / "some.tsv", "--out", tmp_path / "run", *QUICK)
    assert result.code == 0, result.err
    assert "2 of 300 lines were left out" in result.out
    assert "line 5" in result.out
    assert "line 17" in result.out
    listed = (tmp_path / "run" / "data" / "bad_lines.tsv").read_text().splitlines()
    assert len(listed) >= 2


def test_several_translations_of_a_line_can_be_told_apart(regard, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes("The cat.\n\ncaf\u00e9\nThe cat.\n".encode("latin1"))
    found = regard("translate", trained, tmp_path / "in.txt", "--n-best", "2", "--beam", "2")
    assert found.code == 0, found.err
    assert len(found.out.splitlines()) == 8, "as many for an empty line, and for one that cannot be read"
    assert "1 invalid UTF-8 (line 3 of in.txt)" in found.err
    rows = regard("translate", trained, tmp_path / "in.txt", "--n-best", "2", "--beam", "2", "--json").out.splitlines()
    placed = [(json.loads(row)["line"], json.loads(row)["rank"]) for row in rows]
    assert placed == [(line, rank) for line in (1, 2, 3, 4) for rank in (1, 2)]


def test_a_first_line_that_is_a_language_code_is_a_sentence(regard, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("Hi\tSalut\nBye\tAu revoir\n", encoding="utf8")
    found = regard("translate", trained, tmp_path / "in.tsv", "--json")
    assert [json.loads(row)["source"] for row in found.out.splitlines()] == ["Hi", "Bye"]


def test_a_name_beside_files_is_one_that_is_missing(regard, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n", encoding="utf8")
    _one_message(regard("translate", trained, tmp_path / "in.txt", "extra.txtt"), "extra.txtt: no such file, beside")
    (tmp_path / "texts").mkdir()
    _one_message(regard("translate", trained, str(tmp_path / "texts")), "texts: is a folder; give its files")


def test_a_sentence_without_quotes_is_said_to_be_several(regard, trained: Path) -> None:
    found = regard("translate", trained, "the", "cat")
    assert len(found.out.splitlines()) == 2
    assert "2 texts of one word each; to have them read as one text, quote it" in found.err
    assert "quote" not in regard("translate", trained, "the cat", "the dog").err


def test_tables_are_scored_one_by_one_and_may_have_bad_lines(regard, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("the cat\tle chat\nalone\n", encoding="utf8")
    (tmp_path / "b.tsv").write_text("the dog\tle chien\n", encoding="utf8")
    both = ["evaluate", trained, tmp_path / "a.tsv", tmp_path / "b.tsv", "--json"]
    _one_message(regard(*both), "raise max_bad_share")
    found = regard(*both, "--max-bad-share", "0.9")
    assert {name: row["sentences"] for name, row in json.loads(found.out).items()} == {"a.tsv": 1, "b.tsv": 1}


def test_weights_may_be_read_by_whom_the_settings_may(trained: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in trained.iterdir() if path.is_file()}
    assert modes["model.safetensors"] == modes["config.yaml"]


def test_a_command_that_cannot_begin_leaves_its_file(regard, trained: Path, pairs_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "good.txt"
    out.write_text("one\ntwo\n", encoding="utf8")
    assert regard("evaluate", trained, pairs_file, "--out", out, "--tokenize", "zz").code == 2
    failed = regard("translate", trained, "one", "--out", out, "--prefix", "a b c d e", "--max-length", "2")
    assert failed.code == 2
    assert out.read_text(encoding="utf8") == "one\ntwo\n"
    (tmp_path / "empty.txt").write_text("", encoding="utf8")
    assert regard("translate", trained, tmp_path / "empty.txt", "--out", out).code == 0
    assert out.read_text(encoding="utf8") == ""


def test_ranks_are_not_made_up(regard, trained: Path) -> None:
    asked = ("translate", trained, "one", "--n-best", "3", "--prefix", "a", "--max-length", "1")
    rows = [json.loads(line) for line in regard(*asked, "--json").out.splitlines()]
    assert len({(row["text"], row["rank"]) for row in rows}) == len(rows) == len({row["text"] for row in rows})
    assert len(regard(*asked).out.splitlines()) == 3, "three lines for each source"


def test_case_is_ignored_by_all_scores(regard, trained: Path, pairs_file: Path, tmp_path: Path) -> None:
    sources = [line.split("\t")[0] for line in pairs_file.read_text(encoding="utf8").splitlines()[:20]]
    said = regard("translate", trained, *sources).out.splitlines()
    loud = tmp_path / "loud.tsv"
    pairs = [f"{source}\t{target.upper()}" for source, target in zip(sources, said, strict=True) if target]
    loud.write_text("\n".join(pairs) + "\n", encoding="utf8")
    assert "100.0%" in regard("evaluate", trained, loud, "--lowercase").out


def test_a_device_that_cannot_compute_is_refused(regard, pairs_file: Path, tmp_path: Path) -> None:
    arguments = ("--out", tmp_path / "run", "--set", "train.device=meta")
    result = regard("train", "translate", pairs_file, *arguments)
    assert (result.code, "device = 'meta': nothing can be trained there" in result.err) == (2, True)


@pytest.mark.parametrize(("kind", "drawn"), [("rnn", False), ("rnn-attention", True), ("transformer", True)])
def test_only_a_model_with_attention_is_said_to_draw_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, drawn: bool
) -> None:
    folder = RunFolder(tmp_path)
    folder.config.write_text(json.dumps({"task": "translate", "model": {"kind": kind}, "train": {}}))
    folder.scores.write_text("{}")
    show_scores(folder)
    out = capsys.readouterr().out
    assert "regard translate" in out
    assert ("--attention" in out) == drawn
