"""How often each of very many keys occurs, counted as they come."""

import numpy as np

# Keys that wait before they are counted: to sort them in among all others costs the same for one or many.
_WAITING = 1 << 20


class Tally:
    """Counts keys that come a part at a time, in a memory that grows with the number of distinct ones."""

    def __init__(self) -> None:
        self._keys: np.ndarray | None = None
        self._counts = np.zeros(0, np.int64)
        self._waiting: list[np.ndarray] = []
        self._size = 0

    def add(self, keys: np.ndarray) -> None:
        """Counts each key once for each time that it stands here."""
        self._waiting.append(keys)
        self._size += len(keys)
        if self._size > max(_WAITING, len(self._counts)):
            self._count()

    def _count(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        keys, counts = np.unique(np.concatenate(waiting), return_counts=True)
        if self._keys is not None:
            both = np.concatenate([self._keys, keys])
            amounts = np.concatenate([self._counts, counts])
            keys, place = np.unique(both, return_inverse=True)
            counts = np.bincount(place, amounts, len(keys)).astype(np.int64)
        self._keys, self._counts = keys, counts

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct keys, ascending, and how often each came."""
        if self._waiting:
            self._count()
        keys = np.zeros(0, np.uint64) if self._keys is None else self._keys
        return keys, self._counts
