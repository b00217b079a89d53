"""Start offsets of leader epochs, by which followers truncate, and their checkpoint file.

Batches carry their epochs too: entries that a crash loses are restored from the batches when the log is opened.
"""

from bisect import bisect_right

from ottla.base.ports import Disk

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochCache:
    """Epochs and their start offsets; both increase. `latest` is the last epoch, which every append compares."""

    __slots__ = ("_epochs", "_starts", "is_dirty", "latest")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs = [epoch for epoch, _ in entries or ()]
        self._starts = [start for _, start in entries or ()]
        self.is_dirty = False
        self.latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that a leader of this epoch writes at this offset. Remove conflicting entries of truncated leaders."""
        if epoch < 0 or (self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]):
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        self.is_dirty = True

    def epoch_for(self, offset: int) -> int:
        """Return the epoch of the leader that wrote an offset, or -1 if unknown."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else UNDEFINED_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int, leader_epoch: int = UNDEFINED_EPOCH) -> tuple[int, int]:
        """Return the largest known epoch up to the requested one and its end offset, or (-1, -1) if unknown.

        An epoch of the current leader in which nothing was written yet starts at the log end offset.
        """
        epochs, starts = self._epochs, self._starts
        if leader_epoch > self.latest:
            count = sum(start < log_end_offset for start in starts)
            epochs, starts = [*epochs[:count], leader_epoch], [*starts[:count], log_end_offset]
        if epoch == UNDEFINED_EPOCH or not epochs:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == epochs[-1]:
            return epoch, log_end_offset
        index = bisect_right(epochs, epoch)
        if index == len(epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET  # an epoch that this log has not seen yet
        if index == 0:
            return epoch, starts[0]
        return epochs[index - 1], starts[index]

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that start at or after the new log end offset."""
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
            self.is_dirty = True
        self.latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that ended before the new log start offset. The epoch that contains it starts there now."""
        index = bisect_right(self._starts, start_offset) - 1
        if index < 0 or (index == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:index]
        del self._starts[:index]
        self._starts[0] = start_offset
        self.is_dirty = True

    def encode(self) -> bytes:
        lines = [f"{epoch} {start}\n" for epoch, start in self.entries()]
        return f"0\n{len(lines)}\n{''.join(lines)}".encode()


def decode(data: bytes, path: str) -> LeaderEpochCache:
    """Raises ValueError if the text is not a complete checkpoint of version 0."""
    lines = data.decode().splitlines()
    if len(lines) < 2 or lines[0].strip() != "0" or len(lines) - 2 != int(lines[1]):
        raise ValueError(f"{path}: not a complete checkpoint of version 0")
    entries = []
    for line in lines[2:]:
        epoch, start = line.split()
        entries.append((int(epoch), int(start)))
    return LeaderEpochCache(entries)


def read_checkpoint(disk: Disk, directory: str) -> LeaderEpochCache:
    path = f"{directory}/{FILE_NAME}"
    return decode(disk.read(path), path) if disk.exists(path) else LeaderEpochCache()
