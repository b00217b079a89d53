"""Run the controller state machine: decide a request, append and replay its records, respond after the commit."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from ottla.base.decision import Decision
from ottla.base.ports import Clock
from ottla.controller.controller import Controller
from ottla.controller.requests import AllocateProducerIds, ProducerIdBlock
from ottla.runtime.metadata_log import MetadataLog


class QuorumProgress(NamedTuple):
    """Epoch and offsets of the metadata log, as its leader knows them."""

    epoch: int
    high_watermark: int
    end_offset: int


async def _return_at_once() -> None:
    """Wait for nothing: no partitions are opened before the publisher exists."""


class ControllerDriver:
    """The active controller of this node and the log that its records are written to."""

    def __init__(self, controller: Controller, log: MetadataLog, clock: Clock) -> None:
        self._controller = controller
        self._log = log
        self._clock = clock
        self.wait_until_open: Callable[[], Awaitable[None]] = _return_at_once
        """Returns once all published partitions are open. Awaited before a response, so that a client can use a topic
        as soon as CreateTopics returns."""

    async def activate(self, bootstrap: Sequence[Any]) -> None:
        """Become the active controller. In an empty log, write the `bootstrap` records first."""
        await self._commit(self._controller.activate(self._log.end_offset, bootstrap))

    async def submit(self, request: Any) -> Any:
        """Return the response once all changes are committed and published. Raises ApiError if it is rejected."""
        return await self._commit(self._controller.decide(request, self._clock.now_ms()))

    def quorum(self) -> QuorumProgress:
        return QuorumProgress(self._log.epoch, self._log.high_watermark, self._log.end_offset)

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> ProducerIdBlock:
        block = await self.submit(AllocateProducerIds(broker_id, broker_epoch))
        assert isinstance(block, ProducerIdBlock), block
        return block

    async def _commit(self, decision: Decision) -> Any:
        if decision.records:
            first_offset = self._log.end_offset
            committed = self._log.append(decision.records)
            if committed.done():
                return await committed  # the append failed and nothing has changed
            for position, record in enumerate(decision.records):
                self._controller.replay(first_offset + position, record)  # before the next request is decided
            await committed
            await self.wait_until_open()
        else:
            await self._log.wait_committed()  # the response may depend on changes that are not committed yet
        return decision.response


class ProducerIdAllocator:
    """Producer ids, taken from blocks that the controller allocates.

    No id is used twice, even across restarts: a block is committed to the metadata log before its first id is used.
    """

    def __init__(self, controller: ControllerDriver, node_id: int, broker_epoch: int) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next_id(self) -> int:
        async with self._lock:
            if self._next >= self._end:
                block = await self._controller.allocate_producer_ids(self._node_id, self._broker_epoch)
                self._next, self._end = block.first, block.first + block.size
            self._next += 1
            return self._next - 1
