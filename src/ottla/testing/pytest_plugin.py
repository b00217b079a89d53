"""The fixtures `ottla_broker` (a fresh broker for each test) and `ottla_session_broker` (one for the whole run).

pytest loads this module in every run of every project that has Ottla installed, so nothing else is imported until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


@pytest.fixture
def ottla_broker() -> Iterator[Broker]:
    """A broker of this test's own, on a free port, with its data in memory."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_session_broker() -> Iterator[Broker]:
    """A broker for the whole run: faster than one for each test, but topics are shared."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker
