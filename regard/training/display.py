"""What a person sees while a model trains: a live panel in a terminal, plain lines everywhere else."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from regard.tasks.base import Validation


@dataclass
class Report:
    """The steps since the last report; the loss also counts those before an interruption."""

    step: int
    steps: int
    unit: str = "tokens"  # what the loss is divided by
    losses: float = 0.0
    tokens: int = 0
    rate: float = 0.0
    _count: int = 0
    _speed_tokens: int = 0
    _began: float = field(default_factory=time.monotonic)

    def add(self, step: int, loss: float, tokens: int, rate: float) -> None:
        self.step, self.rate = step, rate
        self.losses += loss * tokens
        self.tokens += tokens
        self._speed_tokens += tokens
        self._count += 1

    @property
    def loss(self) -> float:
        return self.losses / self.tokens

    @property
    def tokens_per_second(self) -> float:
        return self._speed_tokens / max(1e-9, time.monotonic() - self._began)

    @property
    def seconds_left(self) -> float:
        return (self.steps - self.step) * (time.monotonic() - self._began) / self._count

    def row(self) -> dict[str, float]:
        return {
            "step": self.step,
            "loss": self.loss,
            "learning_rate": self.rate,
            "tokens_per_second": round(self.tokens_per_second),
        }


class Display:
    """What a training and the preparation of its data tell; this one shows nothing."""

    def start(self, description: str, total: int | None = None) -> None: ...
    def advance(self, count: int = 1) -> None: ...
    def finish(self) -> None: ...
    def note(self, text: str) -> None: ...
    def step(self, report: Report) -> None: ...
    def validation(self, step: int, validation: Validation, *, better: bool) -> None: ...
    def close(self) -> None: ...


class PlainDisplay(Display):
    """One line at a time, for logs and pipes: a line about training every few seconds."""

    def __init__(self, console: Console, every_seconds: float = 10.0) -> None:
        self.console, self.every, self._last, self._gone = console, every_seconds, 0.0, False

    def start(self, description: str, total: int | None = None) -> None:
        self.note(f"{description} ...")

    def note(self, text: str) -> None:
        if self._gone:
            return
        try:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        except OSError:  # nobody reads any more (`| head`, a closed terminal): the training goes on
            self._gone = True

    def step(self, report: Report) -> None:
        if time.monotonic() - self._last >= self.every or report.step == report.steps:
            self._last = time.monotonic()
            self.note(training_line(report))

    def validation(self, step: int, validation: Validation, *, better: bool) -> None:
        self.note(validation_line(step, validation, better=better))
        for sample in validation.samples[:2]:
            self.note(f"    {sample.source}\n    -> {sample.output}")


class LiveDisplay(Display):
    """A bar that moves, the numbers of now, the last validations and what the model says today."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bars = Bars(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        )
        self._bar = self._bars.add_task("starting", total=None)
        self._line = Text()
        self._samples = Table.grid(padding=(0, 2))
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._render)

    def start(self, description: str, total: int | None = None) -> None:
        self._live.start()  # not before there is something to show: of several processes only the first has
        self._bars.remove_task(self._bar)
        self._bar = self._bars.add_task(description, total=total)

    def advance(self, count: int = 1) -> None:
        self._bars.advance(self._bar, count)

    def note(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)

    def step(self, report: Report) -> None:
        self._live.start()
        self._bars.update(self._bar, description="training", total=report.steps, completed=report.step)
        self._line = Text(training_line(report), style="dim")

    def validation(self, step: int, validation: Validation, *, better: bool) -> None:
        self.note(validation_line(step, validation, better=better))
        self._samples = Table.grid(padding=(0, 2))
        for sample in validation.samples[:3]:
            right = sample.output == sample.reference
            self._samples.add_row(Text(sample.source, style="dim"))
            self._samples.add_row(Text(f"  {sample.output}", style="green" if right else "yellow"))

    def close(self) -> None:
        self._bars.remove_task(self._bar)
        self._line, self._samples = Text(), Table.grid()
        self._live.stop()

    def _render(self) -> Group:
        return Group(self._bars, self._line, self._samples)


def training_line(report: Report) -> str:
    return (
        f"step {report.step:,} of {report.steps:,}   loss {report.loss:.3f}   "
        f"{report.tokens_per_second:,.0f} {report.unit}/s   {clock(report.seconds_left)} left"
    )


def validation_line(step: int, validation: Validation, *, better: bool) -> str:
    numbers = "   ".join(f"{name.removeprefix('token_')} {value:.1f}" for name, value in validation.metrics.items())
    return f"step {step:,}   validation loss {validation.loss:.3f}   {numbers}{'   best so far' if better else ''}"


def clock(seconds: float) -> str:
    """`75` -> `1 min 15 s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def display_for(console: Console | None = None) -> Display:
    console = console or Console()
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)
