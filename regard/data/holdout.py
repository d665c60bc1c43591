"""Which pairs are kept from training: chosen by a hash of the source sentence, so that copies never straddle a split.

A sentence that occurs twice, with one translation in training and one in test, would make the test a memory exercise.
"""

import hashlib
import heapq
from collections.abc import Collection, Sequence


def key_of(source: str, seed: int) -> int:
    """A random but repeatable number for a sentence: all its copies have the same."""
    digest = hashlib.blake2b(
        source.encode(errors="surrogatepass"), digest_size=8, key=seed.to_bytes(8, "little", signed=True)
    )
    return int.from_bytes(digest.digest())


class Holdout:
    """Sees every key once, keeps the smallest, and deals them out at the end: exact sizes, one pass, little memory.

    The smallest keys are a random sample of the sentences whatever the order and number of the lines. A key that falls
    out of the sample never comes back in (the bar only sinks), so the counts of those kept are complete.
    """

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._keep = keep
        self._counts: dict[int, int] = {}
        self._heap: list[int] = []

    def see(self, key: int) -> None:
        self.total += 1
        if key in self._counts:
            self._counts[key] += 1
        elif len(self._heap) <= self._keep:
            heapq.heappush(self._heap, -key)
            self._counts[key] = 1
        elif self._heap and key < -self._heap[0]:
            del self._counts[-heapq.heapreplace(self._heap, -key)]
            self._counts[key] = 1

    def choose(self, counts: Sequence[int], share: float, stay: Collection[int] = ()) -> list[set[int]]:
        """The keys of each held-out set, at most `counts[n]` and `share` of the pairs, but one sentence if any can be.

        Those that `stay`, or else at least one sentence, are left to train on, so with too few of them the later sets
        stay empty.
        """
        keys = sorted(key for key in self._counts if key not in stay)
        spare = len(keys) - (not stay)
        chosen: list[set[int]] = []
        for count in counts:
            room = min(count, max(1, int(share * self.total)))
            most = max(4, room // 10)  # copies of one sentence: a set of little else would measure nothing
            taken: set[int] = set()
            for key in keys:
                if room < 1 or spare < 1:
                    break
                if self._counts[key] <= min(room, most):
                    taken.add(key)
                    room -= self._counts[key]
                    spare -= 1
            if not taken and count and spare > 0:  # each has more pairs than there is room for
                taken.add(min(keys, key=lambda key: self._counts[key]))
                spare -= 1
            keys = [key for key in keys if key not in taken]
            chosen.append(taken)
        return chosen
