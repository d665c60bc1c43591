"""`--set train.steps=2000`: settings given on the command line."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from regard.errors import UserError


def parse_settings(pairs: Sequence[str]) -> dict[str, object]:
    """Values are read as YAML: numbers, true/false, null and [lists] mean themselves, anything else is text."""
    import yaml

    settings: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UserError(f"--set {pair!r}: must be key=value (try --set train.steps=2000)")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        if isinstance(value, dict):  # "summarize:" is text
            value = text
        if isinstance(value, str):  # YAML 1.1 reads 1e-3 as text
            with contextlib.suppress(ValueError):
                value = float(value)
        settings[key] = value
    return settings
