"""Offset map of compaction: the latest offset of each key, in a hash table of NumPy columns, without Python objects for
keys.

A window of records is inserted at once. In each round, every row that is not inserted yet probes one slot. Rows with
equal keys probe the same slots, so they arrive together; of the rows at an empty slot, the last, and so the latest,
gets it. Hashes only select slots; keys are compared by all their bytes. Long keys, and keys that find no slot after 64
probes, are stored in a dictionary.
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
"""Appended to the buffer that keys are read from: keys are read in complete words."""
KEY_BYTES_MAX = 256
"""Longer keys are stored in the dictionary."""
PROBES_MAX = 64
"""Keys without a slot after so many probes go to the dictionary: clients may choose keys with colliding hashes."""
SLOTS_MIN = 1 << 12
NO_ENTRY = -1
NO_OFFSET = -1
ENTRY_BYTES = 8 + 8 + 8 + 4
DICTIONARY_ENTRY_BYTES = 150

_FACTOR = 0x9E37_79B9_7F4A_7C15
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(WORD)] + [(1 << 64) - 1], np.uint64)


class Keys(NamedTuple):
    """The keys of some rows: short ones as words, padded with zeros."""

    sizes: Column
    words: list[Words]
    """The first words of all keys, the second words, and so on; zeros after the end of a key."""
    hashes: Words
    long_rows: list[int]
    long_keys: list[bytes]


class OffsetMap:
    """Keys and the latest offset of each. A secret `seed` prevents clients from choosing keys with colliding hashes."""

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
        self._overflow: dict[bytes, int] = {}
        self._overflow_bytes = 0
        self._has_short_overflow = False
        """Whether the dictionary contains short keys."""

    def __len__(self) -> int:
        return self._count + len(self._overflow)

    @property
    def memory_bytes(self) -> int:
        """Memory used by keys and slots."""
        return (
            self._count * ENTRY_BYTES
            + self._word_count * WORD
            + self._slots.nbytes
            + len(self._overflow) * DICTIONARY_ENTRY_BYTES
            + self._overflow_bytes
        )

    def read_keys(self, octets: Octets, starts: Column, sizes: Column) -> Keys:
        """Read keys from a buffer that ends in eight bytes of padding. No key is null."""
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
        """Insert rows in the order of their offsets, which are higher than those inserted before."""
        for row, key in zip(keys.long_rows, keys.long_keys, strict=True):
            self._put_overflow(key, int(offsets[row]))
        rows = _short_rows(keys)
        self._reserve(len(rows), len(keys.words))
        slots, latest, mask = self._slots, self._latest, np.uint64(len(self._slots) - 1)
        for probe in range(PROBES_MAX):
            if not len(rows):
                return
            slot = ((keys.hashes[rows] + np.uint64(probe)) & mask).astype(np.int64)
            entries = slots[slot]
            is_free = entries < 0
            new_rows, new_slots = rows[is_free], slot[is_free]
            is_taken = ~is_free
            taken_rows, taken_entries = rows[is_taken], entries[is_taken]
            is_same = self._are_same(keys, taken_rows, taken_entries)
            latest[taken_entries[is_same]] = offsets[taken_rows[is_same]]  # of several rows, the last assignment wins
            remaining = taken_rows[~is_same]
            if len(new_rows):
                slots[new_slots] = np.arange(len(new_rows), dtype=np.int32)  # here too
                is_winner = slots[new_slots] == np.arange(len(new_rows))
                first_entry = self._count
                self._add(keys, new_rows[is_winner], offsets)
                slots[new_slots[is_winner]] = np.arange(first_entry, self._count, dtype=np.int32)
                losers = new_rows[~is_winner]
                different = losers[~self._are_same(keys, losers, slots[new_slots[~is_winner]])]
                remaining = np.sort(np.concatenate((remaining, different))) if len(different) else remaining
            rows = remaining
        for row in rows.tolist():
            self._has_short_overflow = True
            self._put_overflow(_bytes_of(keys, row), int(offsets[row]))

    def latest(self, keys: Keys) -> Column:
        """Return the latest offset of each row's key, or -1 for an unknown key."""
        found = np.full(len(keys.sizes), NO_OFFSET, np.int64)
        rows = _short_rows(keys)
        mask = np.uint64(len(self._slots) - 1)
        for probe in range(PROBES_MAX):
            if not len(rows):
                break
            entries = self._slots[((keys.hashes[rows] + np.uint64(probe)) & mask).astype(np.int64)]
            is_taken = entries >= 0
            rows, entries = rows[is_taken], entries[is_taken]
            is_same = self._are_same(keys, rows, entries)
            found[rows[is_same]] = self._latest[entries[is_same]]
            rows = rows[~is_same]
        if self._overflow:
            for row in rows.tolist():
                found[row] = self._overflow.get(_bytes_of(keys, row), NO_OFFSET)
            for row, key in zip(keys.long_rows, keys.long_keys, strict=True):
                found[row] = self._overflow.get(key, NO_OFFSET)
        return found

    def latest_offsets(self) -> Column:
        """Return the latest offsets of all keys, in arbitrary order."""
        return np.concatenate(
            (self._latest[: self._count], np.fromiter(self._overflow.values(), np.int64, len(self._overflow)))
        )

    def _put_overflow(self, key: bytes, offset: int) -> None:
        if key not in self._overflow:
            self._overflow_bytes += len(key)
        self._overflow[key] = offset

    def _are_same(self, keys: Keys, rows: Column, entries: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether rows have the same keys as entries, comparing all bytes."""
        same: NDArray[np.bool_] = (self._hashes[entries] == keys.hashes[rows]) & (
            self._sizes[entries] == keys.sizes[rows]
        )
        positions = self._word_at[entries]
        for index, words in enumerate(keys.words):
            reaches = keys.sizes[rows] > WORD * index
            stored = self._words.take(positions + index, mode="clip")
            same &= (stored == words[rows]) | ~reaches
        return same

    def _add(self, keys: Keys, rows: Column, offsets: Column) -> None:
        first, end = self._count, self._count + len(rows)
        counts = (keys.sizes[rows] + WORD - 1) // WORD
        positions = self._word_count + np.cumsum(counts) - counts
        self._hashes[first:end] = keys.hashes[rows]
        self._latest[first:end] = offsets[rows]
        self._sizes[first:end] = keys.sizes[rows]
        self._word_at[first:end] = positions
        for index, words in enumerate(keys.words):
            reaches = counts > index
            self._words[positions[reaches] + index] = words[rows[reaches]]
        self._count = end
        self._word_count += int(counts.sum())
        if self._has_short_overflow:
            for row in rows.tolist():  # a key may get a slot that it did not find before
                self._overflow.pop(_bytes_of(keys, row), None)

    def _reserve(self, more: int, words_each: int) -> None:
        """Grow the columns for up to `more` keys, and the slots so that half of them stay free."""
        needed = self._count + more
        if needed > len(self._latest):
            size = max(needed, 2 * len(self._latest))
            self._hashes, self._latest = _resized(self._hashes, size), _resized(self._latest, size)
            self._word_at, self._sizes = _resized(self._word_at, size), _resized(self._sizes, size)
        words_needed = self._word_count + more * words_each
        if words_needed > len(self._words):
            self._words = _resized(self._words, max(words_needed, 2 * len(self._words)))
        slot_count = len(self._slots)
        while slot_count < 2 * needed:
            slot_count *= 2
        if slot_count > len(self._slots):
            self._rehash(slot_count)

    def _rehash(self, slot_count: int) -> None:
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
        for entry in entries.tolist():  # without a slot: moved to the dictionary, and its entry ignored from now on
            self._has_short_overflow = True
            at, size = int(self._word_at[entry]), int(self._sizes[entry])
            self._put_overflow(
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


def _resized(column: NDArray[Item], size: int) -> NDArray[Item]:
    resized = np.empty(size, column.dtype)
    resized[: len(column)] = column
    return resized
