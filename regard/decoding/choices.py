"""Outputs from a given list only: a tree of their tokens says what may follow."""

from __future__ import annotations

from collections.abc import Sequence

from regard.errors import UserError

Tree = dict[int, "Tree"]


class Choices:
    """Called with an output so far, answers with the tokens that may follow: `Limits.allowed`."""

    def __init__(self, outputs: Sequence[Sequence[int]], end: int) -> None:
        if not all(outputs):
            raise UserError("choices: an empty one cannot be chosen")
        self.root: Tree = {}
        for output in outputs:
            branch = self.root
            for token in (*output, end):
                branch = branch.setdefault(token, {})

    def __call__(self, history: Sequence[int]) -> list[int]:
        branch = self.root
        for token in history:
            branch = branch.get(token, {})  # a beam that nobody follows any more may have left the tree
        return list(branch)
