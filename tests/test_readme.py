"""Every command and every Python block that the README and the guide show is run, in order, in an empty folder.

Trainings are shortened; nothing else is changed. `make demo` and `make test` are run from a fresh clone by hand and
by CI, not from within a test.
"""

import json
import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from PIL import Image

from regard.data.corpora import corpus

ROOT = Path(__file__).parent.parent
TINY = " --set model.width=16 --set model.inner=16"
ONCE = " --overwrite --set train.validate_every=4 --set train.validate_sentences=3" + TINY
SHORT = {
    "translate": ONCE + " --set train.steps=4 --set model.encoder_layers=1 --set model.decoder_layers=1",
    "language": ONCE + " --set train.steps=4 --set options.block=32",
    "summarize": ONCE + " --set train.steps=4",
    "denoise": ONCE + " --set train.steps=4 --set tokenizer.vocabulary=300 --set options.block=16",
    "masked": ONCE + " --set train.steps=4 --set tokenizer.vocabulary=200",
    "image": ONCE + " --set train.steps=2 --set model.layers=1 --set model.heads=2",
}
FINE_TUNED = " --overwrite --set train.epochs=0.1"


def commands(text: str) -> list[str]:
    """Shell lines of fenced and indented blocks that call regard, without their comments."""
    lines = [line.strip() for line in text.splitlines() if re.match(r"( {4})?(regard|cat) ", line)]
    return [re.sub(r"\s+#.*", "", line) for line in lines]


def python_blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def shortened(command: str) -> str:
    if not (training := re.match(r"regard train (\w+)", command)):
        return command
    if "--model gpt" in command and training[1] == "translate":
        return command + ONCE + " --set train.steps=4 --set model.layers=1"
    return command + SHORT.get(training[1], FINE_TUNED)


def write_examples(folder: Path) -> None:
    """The files that the pages speak of."""
    splits = corpus("english-french").splits
    for name, count in (("pairs.tsv", 400), ("test.tsv", 20)):
        rows = islice(splits["test"](), count)
        (folder / name).write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in rows), encoding="utf8")
    texts = [pair.source for pair in islice(splits["test"](), 60)]
    files = {
        "sentences.txt": ["The cat sleeps.", "The dogs see a white cat."],
        "text.txt": [line for number, text in enumerate(texts) for line in (text, *([""] if number % 6 == 5 else []))],
        "article.txt": texts[:4],
        "articles.jsonl": [json.dumps({"source": texts[n : n + 3], "target": texts[n]}) for n in range(57)],
        "reviews.csv": ["text,label", *(f'"{text}",{number % 2}' for number, text in enumerate(texts))],
        "names.conll": [line for text in texts for line in (*(f"{word}\tO" for word in text.split()), "")],
        "choices.jsonl": [json.dumps({"context": text, "options": ["Yes.", "No."], "label": 0}) for text in texts],
        "questions.json": [json.dumps({"data": [_article(number, text) for number, text in enumerate(texts)]})],
    }
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf8")
    for place, colour in enumerate(("red", "green")):
        (folder / "photos" / colour).mkdir(parents=True)
        for number in range(20):
            pixels = tuple(200 if channel == place else 9 * number for channel in range(3))
            Image.new("RGB", (32, 32), pixels).save(folder / "photos" / colour / f"{number}.png")
    Image.new("RGB", (40, 30), "grey").save(folder / "cat.jpg")


def _article(number: int, text: str) -> dict[str, object]:
    answer = {"text": text.split(maxsplit=1)[0], "answer_start": 0}
    questions = [{"id": str(number), "question": "Which?", "answers": [answer]}]
    return {"title": str(number), "paragraphs": [{"context": text, "qas": questions}]}


SLOW = ("docs/encoders.md", "docs/gpt.md", "docs/seq2seq.md", "docs/vit.md")  # a minute each: `make test-all`
PAGES = ["README.md", "docs/guide.md", *(pytest.param(page, marks=pytest.mark.slow) for page in SLOW)]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_runs(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf8")
    write_examples(tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    found = [*map(shortened, commands(text)), *(f"python - <<'END'\n{block}END" for block in python_blocks(text))]
    assert len(found) >= (3 if page == "docs/vit.md" else 5), "the page shows how it is done"
    for command in found:
        command = command.replace('"train.steps": 500', '"train.steps": 4, "train.validate_every": 4')  # noqa: PLW2901
        done = subprocess.run(
            ["sh", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"
    for picture in set(re.findall(r"--attention (\S+)", text)):
        assert (tmp_path / picture).exists(), "the picture that the page promises"


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))])
def test_every_link_leads_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf8")):
        assert (path.parent / target).exists(), f"{page} points to {target}"
