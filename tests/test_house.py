"""The house stays as it was drawn: imports point one way, and importing the package is cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "regard"

# Each room with the rooms it may use. `config` and `errors` belong to all.
MAY_USE = {
    "nn": set(),
    "data": set(),
    "decoding": {"nn"},
    "models": {"nn"},
    "inference": {"nn", "models"},
    "tasks": {"nn", "models", "data", "decoding", "inference"},
    "hub": {"nn", "models", "data", "tasks"},
    "training": {"nn", "models", "data", "decoding", "inference", "tasks", "hub"},
    "run": {"nn", "models", "data", "decoding", "inference", "tasks", "hub", "training"},
}
for _room, _next in (("run", "serving"), ("serving", "explorer"), ("explorer", "api"), ("api", "cli")):
    MAY_USE[_next] = {*MAY_USE[_room], _room}


def imported(path: Path) -> set[str]:
    """The rooms of the package that a file imports from, anywhere in it."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports would not be seen here"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("regard.")}
    return rooms - {"config", "errors", "__version__"}


@pytest.mark.parametrize("room", MAY_USE)
def test_imports_point_one_way(room: str) -> None:
    files = [PACKAGE / f"{room}.py"] if (PACKAGE / f"{room}.py").exists() else list((PACKAGE / room).rglob("*.py"))
    assert files, f"there is no room {room}"
    for file in files:
        wrong = imported(file) - MAY_USE[room] - {room}
        assert not wrong, f"{file.relative_to(PACKAGE)} reaches into {wrong}"


def test_every_room_is_in_the_plan() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py") and not path.name.startswith("_")}
    assert rooms == set(MAY_USE) | {"config", "errors"}


def test_no_file_opens_pickles() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf8")
        assert "import pickle" not in text, path
        assert "torch.load" not in text, path


def test_no_drawer_for_everything() -> None:
    names = {path.stem for path in PACKAGE.rglob("*.py")}
    assert not names & {"utils", "util", "helpers", "common", "misc", "manager"}


def test_importing_the_package_does_not_import_torch() -> None:
    code = (
        "import sys, regard; assert 'torch' not in sys.modules; regard.SearchConfig; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
