"""Ctrl-C, SIGTERM and a closed terminal ask a training to stop after its step; asking twice stops it at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """While entered, the first signal sets `wanted`; a second one is handled as if this were not here."""

    def __init__(self) -> None:
        self.wanted = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
            for each in (signal.SIGINT, signal.SIGTERM, *hangup):
                self._before[each] = signal.signal(each, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.wanted = True
        self._restore()

    def _restore(self) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        self._before = {}
