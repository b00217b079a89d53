"""ListOffsets over a socket, in the versions of older clients."""

import struct

import pytest

from bench.peers import send_request

LATEST = -1


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_end_offset_at_every_version(ottla_broker, version):
    """Responses have a leader epoch from version 4 on."""
    ottla_broker.create_topic("events")
    partition = struct.pack(">i", 0) + (struct.pack(">i", -1) if version >= 4 else b"") + struct.pack(">q", LATEST)
    isolation = b"\0" if version >= 2 else b""
    body = struct.pack(">i", -1) + isolation + struct.pack(">ih6si", 1, 6, b"events", 1) + partition
    throttle = struct.pack(">i", 0) if version >= 2 else b""
    found = struct.pack(">ihqq", 0, 0, -1, 0) + (struct.pack(">i", 0) if version >= 4 else b"")
    answer = send_request(int(ottla_broker.bootstrap.rpartition(":")[2]), 2, version, body)
    assert answer == throttle + struct.pack(">ih6si", 1, 6, b"events", 1) + found
