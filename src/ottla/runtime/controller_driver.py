"""Drives the controller: a request is decided, its records are replayed and committed, and only then is it answered."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from ottla.base.decision import Decision
from ottla.base.ports import Clock
from ottla.controller.controller import Controller
from ottla.controller.requests import AllocateProducerIds, ProducerIdBlock
from ottla.runtime.metadata_log import MetadataLog


class QuorumProgress(NamedTuple):
    """How far the metadata log has come, as its leader knows it."""

    epoch: int
    high_watermark: int
    end_offset: int


class ControllerDriver:
    """The active controller of this node, and the log that its decisions go through."""

    def __init__(self, controller: Controller, log: MetadataLog, clock: Clock) -> None:
        self._controller = controller
        self._log = log
        self._clock = clock
        self.wait_until_open: Callable[[], Awaitable[None]] | None = None
        """Waits until the new partitions of this node are open: who creates a topic here may use it once that is answered."""

    async def activate(self, bootstrap: Sequence[Any]) -> None:
        """Take over: an empty log gets its first records."""
        await self._commit(self._controller.activate(self._log.end_offset, bootstrap))

    async def submit(self, request: Any) -> Any:
        """The response, once what the request changes is committed and published. ApiError where it is refused as a whole."""
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
                return await committed  # it was refused: nothing has changed
            for at, record in enumerate(decision.records):
                self._controller.replay(first_offset + at, record)  # before anybody else decides
            await committed
            if self.wait_until_open is not None:
                await self.wait_until_open()
        else:
            await self._log.wait_committed()  # the answer may tell of what others have changed and is not committed yet
        return decision.response
