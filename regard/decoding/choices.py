"""Outputs from a given list only: a tree of their tokens says what may follow."""

from __future__ import annotations

from collections.abc import Sequence

from regard.errors import UserError

Tree = dict[int, "Tree"]


class Choices:
    """Called with an output so far, answers with the tokens that may follow: `Limits.allowed`.

    Where there is no end mark (-1), an output is complete with the last token of the first choice that it becomes.
    """

    def __init__(self, outputs: Sequence[Sequence[int]], end: int) -> None:
        if not all(outputs):
            raise UserError("choices: an empty one cannot be chosen")
        self.root: Tree = {}
        for output in outputs:
            branch = self.root
            for token in (*output, end) if end >= 0 else output:
                branch = branch.setdefault(token, {})
        self.outputs = {tuple(output) for output in outputs}

    def __call__(self, history: Sequence[int]) -> list[int]:
        branch = self.root
        for token in history:
            branch = branch.get(token, {})  # a beam that nobody follows any more may have left the tree
        return list(branch)

    def complete(self, history: Sequence[int]) -> bool:
        return tuple(history) in self.outputs
