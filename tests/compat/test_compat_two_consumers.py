"""The settings of docs/testing-with-ottla.md make a test with two consumers fast."""

import pytest

from tests.compat.clients.jvm import missing as missing_java
from tests.compat.two_consumers import CLIENTS, fast, measure

DEFAULTS_SECONDS = 6.0
"""With default settings every client waits for two heartbeats, 3 s each."""


@pytest.mark.parametrize("client", CLIENTS)
def test_two_consumers_wait_for_no_slow_heartbeat(client: str) -> None:
    reason = missing_java() if client == "java" else None
    if reason is not None:
        pytest.skip(reason)
    assert measure(client, fast(client)) < DEFAULTS_SECONDS
