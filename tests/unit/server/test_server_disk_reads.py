"""What workers do for a fetch."""

import pytest

from ottla.log.partition_log import LogSlice
from ottla.server.connection import FileRegion
from ottla.server.disk_reads import ColdLookup, DiskReadError, look_up, read_slices


class Watched:
    """A file that says what was asked of it."""

    path = "/data/t-0/0.log"

    def __init__(self, error=None):
        self.error, self.asked = error, []

    def prefetch(self, position, size):
        self.asked.append(("bring in", position, size))
        if self.error is not None:
            raise self.error

    def read_at(self, position, size):
        self.asked.append(("read", position, size))
        return bytes(size)


def looked_up(*found):
    return look_up(
        [ColdLookup((b"t", index, True), "/data/t-0/", lambda one=one: one) for index, one in enumerate(found)]
    )


def test_what_is_found_is_brought_in_at_once():
    """So that nobody goes to a worker twice for it."""
    file = Watched()
    found = LogSlice(file, 100, 5000)
    assert looked_up(found, None, LogSlice(file, 9000, 0)) == {
        (b"t", 0, True): found,
        (b"t", 1, True): None,
        (b"t", 2, True): LogSlice(file, 9000, 0),
    }
    assert file.asked == [("bring in", 100, 5000)]


def test_what_is_sent_is_only_brought_in():
    file = Watched()
    read, (index, sent) = read_slices([(3, LogSlice(file, 0, 10), False), (5, LogSlice(file, 10, 20), True)])
    assert read == (3, bytes(10))
    assert isinstance(sent, FileRegion)
    assert (index, sent.file, sent.position, sent.size) == (5, file, 10, 20)
    assert file.asked == [("bring in", 0, 10), ("read", 0, 10), ("bring in", 10, 20)]


def test_it_is_said_which_path_is_not_read():
    file = Watched(OSError(5, "broken"))
    with pytest.raises(DiskReadError) as refused:
        read_slices([(0, LogSlice(file, 0, 10), True)])
    assert (refused.value.path, refused.value.error) == (file.path, file.error)
    with pytest.raises(DiskReadError) as refused:
        looked_up(LogSlice(file, 0, 10))
    assert refused.value.path == "/data/t-0/"
