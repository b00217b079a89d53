"""A controller with one active broker, and an Rng that counts."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.decision import Decision
from ottla.base.ids import Uuid
from ottla.controller.bootstrap import bootstrap_records
from ottla.controller.controller import Controller
from ottla.controller.requests import BrokerRegistered, RegisterBroker, UnfenceBroker
from ottla.controller.settings import ControllerSettings
from ottla.metadata.features import supported_features
from ottla.metadata.image import ClusterImage, Endpoint

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAg"


class CountingRng:
    """Returns 1, 2, 3... as ids, and always the first choice."""

    def __init__(self) -> None:
        self.count = 0

    def random_bytes(self, size: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(size, "big")

    def below(self, limit: int) -> int:
        return 0


class ControllerHarness:
    """A controller whose decisions are replayed immediately, as by its driver."""

    def __init__(self, **static_configs: str) -> None:
        settings = ControllerSettings(1, {name.replace("_", "."): value for name, value in static_configs.items()})
        self.rng = CountingRng()
        self.controller = Controller(ClusterImage(CLUSTER), settings, self.rng)
        self.next_offset = 1
        self.replay(self.controller.activate(1, bootstrap_records()))

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def decide(self, request: Any) -> Decision:
        """Decide without replaying."""
        return self.controller.decide(request, now_ms=0)

    def do(self, request: Any) -> Decision:
        decision = self.decide(request)
        self.replay(decision)
        return decision

    def replay(self, decision: Decision) -> None:
        for record in decision.records:
            self.controller.replay(self.next_offset, record)
            self.next_offset += 1

    def register(self, broker_id: int, **changes: Any) -> int:
        values: dict[str, Any] = {
            "cluster_id": CLUSTER,
            "incarnation_id": directory_id(1000 + self.next_offset),
            "endpoints": (Endpoint("PLAINTEXT", f"host{broker_id}", 9092, 0),),
            "log_dirs": (directory_id(broker_id),),
            "features": supported_features(),
        }
        response = self.do(RegisterBroker(broker_id=broker_id, **(values | changes))).response
        assert isinstance(response, BrokerRegistered), response
        return response.epoch

    def add_broker(self, broker_id: int, **changes: Any) -> int:
        """Register and unfence a broker."""
        epoch = self.register(broker_id, **changes)
        self.do(UnfenceBroker(broker_id, epoch))
        return epoch


def topic_id(number: int) -> Uuid:
    """Return the id that `CountingRng` gives to the nth topic."""
    raw = bytearray(number.to_bytes(16, "big"))
    raw[6] |= 0x40
    raw[8] |= 0x80
    return Uuid(bytes(raw))


def directory_id(number: int) -> Uuid:
    return Uuid((0xD1 << 64 | number).to_bytes(16, "big"))


@pytest.fixture
def new_controller() -> Callable[..., ControllerHarness]:
    return ControllerHarness


@pytest.fixture
def cluster() -> ControllerHarness:
    """One active broker."""
    harness = ControllerHarness()
    harness.add_broker(1)
    return harness


@pytest.fixture
def new_topic_id() -> Callable[[int], Uuid]:
    return topic_id


@pytest.fixture
def dir_id() -> Callable[[int], Uuid]:
    return directory_id
