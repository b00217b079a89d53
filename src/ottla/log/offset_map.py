"""Which offset each key was last seen at: a hash table in NumPy's columns, so that no key becomes an object of
Python's.

A window of records is put into it at once: each round, every row that has no place yet looks at one slot. Rows of one
key go the same way and so arrive together; of those that want an empty slot the last one gets it, which is the latest.
Hashes only lead to a slot: what says that two keys are one are their bytes. Keys that are long, and those that many
others of one hash stand in the way of, are kept in a dictionary.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]
Octets = NDArray[np.uint8]
Words = NDArray[np.uint64]
Item = TypeVar("Item", bound=np.generic)

WORD = 8
PADDING = bytes(WORD)
"""Behind the bytes that keys are read from: a key is read in whole words."""
KEY_BYTES_MAX = 256
"""Longer keys are kept in a dictionary."""
PROBES_MAX = 64
"""Who has not found a place after so many slots goes to the dictionary: keys may have been chosen so that their hashes
meet."""
SLOTS_MIN = 1 << 12
NO_ENTRY = -1
NO_OFFSET = -1
ENTRY_BYTES = 8 + 8 + 8 + 4
DICTIONARY_ENTRY_BYTES = 150

_FACTOR = 0x9E37_79B9_7F4A_7C15
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(WORD)] + [(1 << 64) - 1], np.uint64)


class Keys(NamedTuple):
    """The keys of some rows of a buffer: short ones as words that are filled up with zeros."""

    sizes: Column
    words: list[Words]
    """The first words of all keys, the second ones, and so on; zeros behind the end of a key."""
    hashes: Words
    long_rows: list[int]
    long_keys: list[bytes]


class OffsetMap:
    """Keys and the latest offset of each. `seed` keeps others from choosing keys that meet."""

    def __init__(self, seed: int = 0) -> None:
        self._multiplier = np.uint64((_FACTOR ^ seed << 1) & 0xFFFF_FFFF_FFFF_FFFF | 1)
        self._slots: NDArray[np.int32] = np.full(SLOTS_MIN, NO_ENTRY, np.int32)
        self._count = 0
        self._hashes: Words = np.empty(SLOTS_MIN, np.uint64)
        self._latest: Column = np.empty(SLOTS_MIN, np.int64)
        self._word_at: Column = np.empty(SLOTS_MIN, np.int64)
        self._sizes: NDArray[np.int32] = np.empty(SLOTS_MIN, np.int32)
        self._words: Words = np.empty(SLOTS_MIN * 2, np.uint64)
        self._word_count = 0
        self._others: dict[bytes, int] = {}
        self._other_bytes = 0
        self._has_crowded_out = False
        """Whether there are short keys among the others."""

    def __len__(self) -> int:
        return self._count + len(self._others)

    @property
    def memory_bytes(self) -> int:
        """What the keys take, and the slots that lead to them."""
        return (
            self._count * ENTRY_BYTES
            + self._word_count * WORD
            + self._slots.nbytes
            + len(self._others) * DICTIONARY_ENTRY_BYTES
            + self._other_bytes
        )

    def read_keys(self, octets: Octets, starts: Column, sizes: Column) -> Keys:
        """Keys where they stand in a buffer, behind which there are at least eight bytes more. None of them is null."""
        long = sizes > KEY_BYTES_MAX
        long_rows: list[int] = []
        long_keys: list[bytes] = []
        if long.any():
            long_rows = np.flatnonzero(long).tolist()
            long_keys = [octets[int(starts[row]) : int(starts[row] + sizes[row])].tobytes() for row in long_rows]
            sizes = np.where(long, 0, sizes)
        longest = int(sizes.max(initial=0))
        shortest = int(sizes.min(initial=0)) if len(sizes) else 0
        every_word = np.ndarray((len(octets) - WORD + 1,), "<u8", octets, 0, (1,))
        hashes = sizes.astype(np.uint64) * self._multiplier
        words = []
        for index in range((longest + WORD - 1) // WORD):
            first = WORD * index
            if shortest >= first + WORD:
                word = every_word[starts + first]
                hashes = self._mixed(hashes, word)
            else:
                left = np.clip(sizes - first, 0, WORD)
                reaches = left > 0
                word = every_word[np.where(reaches, starts + first, 0)] & _MASKS[left]
                hashes = np.where(
                    reaches, self._mixed(hashes, word), hashes
                )  # a hash does not depend on other keys of the window
            words.append(word)
        hashes *= np.uint64(_FACTOR)
        hashes ^= hashes >> np.uint64(29)
        return Keys(sizes, words, hashes, long_rows, long_keys)

    def _mixed(self, hashes: Words, words: Words) -> Words:
        mixed: Words = (hashes ^ words) * self._multiplier
        mixed ^= mixed >> np.uint64(32)
        return mixed

    def put(self, keys: Keys, offsets: Column) -> None:
        """The rows are in the order of their offsets, and come after all that were put before."""
        for row, key in zip(keys.long_rows, keys.long_keys, strict=True):
            self._put_other(key, int(offsets[row]))
        rows = _short_rows(keys)
        self._make_room(len(rows), len(keys.words))
        slots, latest, mask = self._slots, self._latest, np.uint64(len(self._slots) - 1)
        for probe in range(PROBES_MAX):
            if not len(rows):
                return
            slot = ((keys.hashes[rows] + np.uint64(probe)) & mask).astype(np.int64)
            entries = slots[slot]
            is_free = entries < 0
            wanting, wanted = rows[is_free], slot[is_free]
            taken = ~is_free
            meeting, met = rows[taken], entries[taken]
            same = self._are_same(keys, meeting, met)
            latest[met[same]] = offsets[meeting[same]]  # of several rows the last one counts
            left = meeting[~same]
            if len(wanting):
                slots[wanted] = np.arange(len(wanting), dtype=np.int32)  # the same here
                winner = slots[wanted]
                has_won = winner == np.arange(len(wanting))
                first_entry = self._count
                self._add(keys, wanting[has_won], offsets)
                slots[wanted[has_won]] = np.arange(first_entry, self._count, dtype=np.int32)
                beaten = wanting[~has_won]
                unlike = beaten[~self._are_same(keys, beaten, slots[wanted[~has_won]])]
                left = np.sort(np.concatenate((left, unlike))) if len(unlike) else left
            rows = left
        for row in rows.tolist():
            self._has_crowded_out = True
            self._put_other(_bytes_of(keys, row), int(offsets[row]))

    def latest(self, keys: Keys) -> Column:
        """The latest offset of each row's key; -1 where the key is not here."""
        found = np.full(len(keys.sizes), NO_OFFSET, np.int64)
        rows = _short_rows(keys)
        mask = np.uint64(len(self._slots) - 1)
        for probe in range(PROBES_MAX):
            if not len(rows):
                break
            entries = self._slots[((keys.hashes[rows] + np.uint64(probe)) & mask).astype(np.int64)]
            is_taken = entries >= 0
            rows, entries = rows[is_taken], entries[is_taken]
            same = self._are_same(keys, rows, entries)
            found[rows[same]] = self._latest[entries[same]]
            rows = rows[~same]
        if self._others:
            for row in rows.tolist():
                found[row] = self._others.get(_bytes_of(keys, row), NO_OFFSET)
            for row, key in zip(keys.long_rows, keys.long_keys, strict=True):
                found[row] = self._others.get(key, NO_OFFSET)
        return found

    def all_latest(self) -> Column:
        """The latest offsets of all keys, in no order."""
        return np.concatenate(
            (self._latest[: self._count], np.fromiter(self._others.values(), np.int64, len(self._others)))
        )

    def _put_other(self, key: bytes, offset: int) -> None:
        if key not in self._others:
            self._other_bytes += len(key)
        self._others[key] = offset

    def _are_same(self, keys: Keys, rows: Column, entries: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether rows have the keys of entries, by all their bytes."""
        same: NDArray[np.bool_] = (self._hashes[entries] == keys.hashes[rows]) & (
            self._sizes[entries] == keys.sizes[rows]
        )
        places = self._word_at[entries]
        for index, words in enumerate(keys.words):
            reaches = keys.sizes[rows] > WORD * index
            stored = self._words.take(places + index, mode="clip")
            same &= (stored == words[rows]) | ~reaches
        return same

    def _add(self, keys: Keys, rows: Column, offsets: Column) -> None:
        first, behind = self._count, self._count + len(rows)
        counts = (keys.sizes[rows] + WORD - 1) // WORD
        places = self._word_count + np.cumsum(counts) - counts
        self._hashes[first:behind] = keys.hashes[rows]
        self._latest[first:behind] = offsets[rows]
        self._sizes[first:behind] = keys.sizes[rows]
        self._word_at[first:behind] = places
        for index, words in enumerate(keys.words):
            reaches = counts > index
            self._words[places[reaches] + index] = words[rows[reaches]]
        self._count = behind
        self._word_count += int(counts.sum())
        if self._has_crowded_out:
            for row in rows.tolist():  # there is room for it now, where there was none before
                self._others.pop(_bytes_of(keys, row), None)

    def _make_room(self, more: int, words_each: int) -> None:
        """For so many keys more, at most: each column is large enough, and half of the slots stay free."""
        needed = self._count + more
        if needed > len(self._latest):
            size = max(needed, 2 * len(self._latest))
            self._hashes, self._latest = _grown(self._hashes, size), _grown(self._latest, size)
            self._word_at, self._sizes = _grown(self._word_at, size), _grown(self._sizes, size)
        words_needed = self._word_count + more * words_each
        if words_needed > len(self._words):
            self._words = _grown(self._words, max(words_needed, 2 * len(self._words)))
        slot_count = len(self._slots)
        while slot_count < 2 * needed:
            slot_count *= 2
        if slot_count > len(self._slots):
            self._fill_slots(slot_count)

    def _fill_slots(self, slot_count: int) -> None:
        slots = self._slots = np.full(slot_count, NO_ENTRY, np.int32)
        entries = np.arange(self._count, dtype=np.int32)
        hashes, mask = self._hashes, np.uint64(slot_count - 1)
        for probe in range(PROBES_MAX):
            if not len(entries):
                return
            slot = ((hashes[entries] + np.uint64(probe)) & mask).astype(np.int64)
            is_free = slots[slot] < 0
            slots[slot[is_free]] = entries[is_free]
            entries = entries[slots[slot] != entries]
        for entry in entries.tolist():  # reached by nobody any more, and counted by none
            self._has_crowded_out = True
            at, size = int(self._word_at[entry]), int(self._sizes[entry])
            self._put_other(
                self._words[at : at + (size + WORD - 1) // WORD].astype("<u8").tobytes()[:size],
                int(self._latest[entry]),
            )
            self._latest[entry] = NO_OFFSET


def _short_rows(keys: Keys) -> Column:
    rows = np.arange(len(keys.sizes))
    if not keys.long_rows:
        return rows
    return np.delete(rows, keys.long_rows)


def _bytes_of(keys: Keys, row: int) -> bytes:
    return b"".join(int(words[row]).to_bytes(WORD, "little") for words in keys.words)[: int(keys.sizes[row])]


def _grown(column: NDArray[Item], size: int) -> NDArray[Item]:
    grown = np.empty(size, column.dtype)
    grown[: len(column)] = column
    return grown
