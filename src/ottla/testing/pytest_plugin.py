"""The fixtures `ottla_broker` (a new broker per test) and `ottla_session_broker` (one per session).

pytest loads this module in every project where Ottla is installed, so it imports nothing else until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


@pytest.fixture
def ottla_broker() -> Iterator[Broker]:
    """A new broker for this test, on a free port, with its data in memory."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_session_broker() -> Iterator[Broker]:
    """A broker shared by all tests of the session: faster, but tests share its topics."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker
