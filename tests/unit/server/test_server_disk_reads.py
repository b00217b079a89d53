"""The part of a fetch that runs in workers."""

import pytest

from ottla.log.partition_log import LogSlice
from ottla.server.connection import FileRegion
from ottla.server.disk_reads import ColdLookup, DiskReadError, look_up, read_slices


class Watched:
    """A file that records its calls."""

    path = "/data/t-0/0.log"

    def __init__(self, error=None):
        self.error, self.calls = error, []

    def prefetch(self, position, size):
        self.calls.append(("prefetch", position, size))
        if self.error is not None:
            raise self.error

    def read_at(self, position, size):
        self.calls.append(("read", position, size))
        return bytes(size)


def looked_up(*found):
    return look_up(
        [ColdLookup((b"t", index, True), "/data/t-0/", lambda one=one: one) for index, one in enumerate(found)]
    )


def test_look_up_prefetches_records():
    """So that a fetch needs one worker call only."""
    file = Watched()
    found = LogSlice(file, 100, 5000)
    assert looked_up(found, None, LogSlice(file, 9000, 0)) == {
        (b"t", 0, True): found,
        (b"t", 1, True): None,
        (b"t", 2, True): LogSlice(file, 9000, 0),
    }
    assert file.calls == [("prefetch", 100, 5000)]


def test_ranges_sent_from_their_file_are_only_prefetched():
    file = Watched()
    read, (index, sent) = read_slices([(3, LogSlice(file, 0, 10), False), (5, LogSlice(file, 10, 20), True)])
    assert read == (3, bytes(10))
    assert isinstance(sent, FileRegion)
    assert (index, sent.file, sent.position, sent.size) == (5, file, 10, 20)
    assert file.calls == [("prefetch", 0, 10), ("read", 0, 10), ("prefetch", 10, 20)]


def test_read_error_has_the_path():
    file = Watched(OSError(5, "broken"))
    with pytest.raises(DiskReadError) as failure:
        read_slices([(0, LogSlice(file, 0, 10), True)])
    assert (failure.value.path, failure.value.error) == (file.path, file.error)
    with pytest.raises(DiskReadError) as failure:
        looked_up(LogSlice(file, 0, 10))
    assert failure.value.path == "/data/t-0/"
