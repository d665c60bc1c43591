"""The one exception for what a user can cause.

Its message names the field or file, the value received, what is allowed and what to try. The command line prints it
without a traceback and exits with code 2; anything else that escapes is our own defect and keeps its traceback.
"""

import difflib
from collections.abc import Iterable, Sequence


class UserError(ValueError):
    """Something the user gave cannot be used; the message says what and how to mend it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Ends an error about an unknown name: `"; did you mean 'dot'? (known: cosine, dot)"`."""
    known = sorted(known)
    if not known:
        return "; there is nothing to choose here"
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{hint} (known: {', '.join(known)})"


def listed(names: Sequence[str], most: int = 6) -> str:
    """The first of several names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
