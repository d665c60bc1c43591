"""Any written date to ISO 8601: "the fifth of March 2024" -> "2024-03-05".

Numbers with slashes, dots or hyphens that do not start with the year are day first, as in most of the world. Years
run from 1900 to 2099; a year of two digits, as in '24, is 1970 to 2069.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache
from random import Random
from string import Formatter

from regard.data.corpora.splits import home
from regard.data.pairs import Pair
from regard.data.words import split_words

SIZES = {"train": 20_000, "valid": 500, "test": 1_000}

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth", "twenty-first", "twenty-second", "twenty-third", "twenty-fourth", "twenty-fifth", "twenty-sixth",
    "twenty-seventh", "twenty-eighth", "twenty-ninth", "thirtieth", "thirty-first",
)  # fmt: skip

YEAR, MONTH, DAY = 0, 2, 4
"""Where each part stands among the words of "2024-03-05"."""

FORMATS = (
    "{B} {d}, {Y}", "{B} {o}, {Y}", "{d} {B} {Y}", "{o} of {B}, {Y}", "{o} of {B} {Y}", "{b} {d}, {Y}", "{d} {b} {Y}",
    "{d}-{b}-{Y}", "{b} {d} '{y}", "{d} {b} '{y}", "{A}, {d} {B} {Y}", "{A}, {B} {d}, {Y}", "{A}, {B} {o}, {Y}",
    "{a} {d} {b} {Y}", "{a}, {b} {d}, {Y}", "{A} the {o} of {B} {Y}", "the {t} of {B} {Y}", "the {t} of {B}, {Y}",
    "{B} the {t}, {Y}", "{D}/{m}/{Y}", "{d}/{n}/{Y}", "{D}.{m}.{Y}", "{d}.{n}.{Y}", "{D}-{m}-{Y}", "{Y}/{m}/{D}",
    "{Y}.{m}.{D}", "{Y} {B} {d}", "on {d} {B} {Y}", "the {o} of {B} '{y}",
)  # fmt: skip
"""Y year, y its last two digits; B month, b shortened, m in two digits, n in one or two;
D day in two digits, d in one or two, o as 5th, t as fifth; A weekday, a shortened."""

_PARTS = {**dict.fromkeys("Yy", YEAR), **dict.fromkeys("Bbmn", MONTH), **dict.fromkeys("Ddot", DAY)}


def dates(split: str, size: int | None = None, seed: int = 0) -> Iterator[Pair]:
    """Distinct written dates."""
    wanted = SIZES[split] if size is None else size
    random = Random(f"{seed} {split}")
    seen: set[str] = set()
    start, days = date(1900, 1, 1), (date(2100, 1, 1) - date(1900, 1, 1)).days
    while wanted:
        pattern, day = random.choice(FORMATS), start + timedelta(days=random.randrange(days))
        if "{y}" in pattern and not 1970 <= day.year <= 2069:
            continue
        pair = write(day, pattern)
        if pair.source in seen or home(pair.source) != split:
            continue
        seen.add(pair.source)
        wanted -= 1
        yield pair


def write(day: date, pattern: str) -> Pair:
    """One date in one of the formats. The year links to the year, the month to the month, the day to the day."""
    fields = {
        "Y": str(day.year), "y": f"{day.year % 100:02}",
        "B": _MONTHS[day.month - 1], "b": _MONTHS[day.month - 1][:3], "m": f"{day.month:02}", "n": str(day.month),
        "D": f"{day.day:02}", "d": str(day.day), "o": _ordinal(day.day), "t": _ORDINALS[day.day - 1],
        "A": _DAYS[day.weekday()], "a": _DAYS[day.weekday()][:3],
    }  # fmt: skip
    links: list[tuple[int, int]] = []
    index = 0
    for literal, field in _parse(pattern):
        index += literal
        for _ in fields[field].split("-"):
            if field in _PARTS:
                links.append((index, _PARTS[field]))
            index += 2
        index -= 1
    return Pair(pattern.format(**fields), day.isoformat(), tuple(links))


@cache
def _parse(pattern: str) -> tuple[tuple[int, str], ...]:
    """For each field, how many words stand between it and the one before."""
    return tuple((len(split_words(text)), field or "") for text, field, _, _ in Formatter().parse(pattern))


def _ordinal(number: int) -> str:
    ending = "th" if number in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
