"""Tokens in, text out, piece by piece: no piece ends within a character, or hides the start of a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from regard.data.tokenizers import Tokenizer

UNFINISHED = "\ufffd"


class Writer:
    """The text after a prompt, as its tokens arrive. `ids` are all tokens, the prompt's first.

    Tokens may be parts of characters, and some tokenizers treat the first token of a text differently. So the last few
    tokens that are settled are decoded again together with the new ones, and what is more is the new text.
    """

    def __init__(self, tokenizer: Tokenizer, ids: list[int], stop: Sequence[str] = ()) -> None:
        self.tokenizer, self.ids, self.stop = tokenizer, ids, list(stop)
        self.stopped = False
        self._settled = len(ids)  # tokens whose text is known
        self._again = max(0, len(ids) - 6)  # the first token that is decoded again
        self._held = ""  # text that may be the beginning of a stop string
        self._whole, self._since = "", len(ids)  # new text without what is unfinished, and when that last grew

    def add(self, token: int) -> str:
        """The text that is certain now; empty while a character or a stop string may be unfinished."""
        self.ids.append(token)
        text = self._fresh()
        if (whole := text.rstrip(UNFINISHED)) != self._whole:  # a token may end one character and begin the next
            self._whole, self._since = whole, len(self.ids) - 1
        if text.endswith(UNFINISHED) and len(self.ids) - self._since < 4:  # no character has more than four bytes
            return ""
        self._again, self._settled = self._settled, len(self.ids)
        self._whole, self._since = "", len(self.ids)
        return self._until_stop(text)

    def rest(self) -> str:
        """What was held back, when nothing follows."""
        text, self._settled = self._fresh(), len(self.ids)
        return self._held + text

    def _fresh(self) -> str:
        known = self.tokenizer.decode(self.ids[self._again : self._settled])
        return self.tokenizer.decode(self.ids[self._again :])[len(known) :]

    def _until_stop(self, text: str) -> str:
        text = self._held + text
        places = [place for one in self.stop if (place := text.find(one)) >= 0]
        if places:
            self.stopped, self._held = True, ""
            return text[: min(places)]
        kept = max((_overlap(text, one) for one in self.stop), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]


def _overlap(text: str, stop: str) -> int:
    """How many of the last characters of a text could be the first of a stop string."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)
