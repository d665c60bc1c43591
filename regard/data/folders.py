"""Files and folders that appear whole or not at all: made beside their place, written to the disk, then renamed."""

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DAY = 24 * 60 * 60


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Gives a temporary path to write a file to; it becomes `path` when the block ends well, and is removed else."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        sync(temporary, deep=False)
        temporary.replace(path)
        sync(path.parent, deep=False)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def building(place: Path) -> Iterator[Path]:
    """Gives a temporary folder that becomes `place` when the block ends well, and is removed when it does not.

    If another process has made `place` meanwhile, its folder stays: both were built from the same inputs.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    sweep(place.parent)
    temporary = place.parent / f".{place.name}~{socket.gethostname()}~{os.getpid()}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        sync(temporary)
        try:
            temporary.rename(place)
        except OSError:
            if not place.is_dir():
                raise
        sync(place.parent, deep=False)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove(path: Path) -> None:
    """A file, or a folder and all that is in it."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sweep(parent: Path) -> None:
    """Removes what killed builds left behind: their process is gone, or (on another machine) a day has passed."""
    for path in parent.glob(".*~*~*.tmp"):
        _, host, pid = path.name.removesuffix(".tmp").rsplit("~", 2)
        try:
            old = time.time() - path.stat().st_mtime > _DAY
        except OSError:
            continue  # its own process has just removed it
        if old or (host == socket.gethostname() and pid.isdecimal() and not _alive(int(pid))):
            shutil.rmtree(path, ignore_errors=True)


def sync(place: Path, *, deep: bool = True) -> None:
    """Makes a file, or a folder's entries and if `deep` all files in it, survive a power cut."""
    for path in (*(place.rglob("*") if deep else ()), place):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def link_or_copy(folder: Path, to: Path) -> None:
    """Makes the files of `folder` also appear in `to`: as hard links, which cost nothing, or else as copies.

    The files are never written to again, so sharing them is safe, and the one folder can be deleted without harm to
    the other.
    """
    shutil.copytree(folder, to, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it exists and belongs to someone else
    return True
