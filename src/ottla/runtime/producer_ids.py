"""Producer ids are handed out from a block that the controller gave to this broker."""

import asyncio

from ottla.runtime.controller_driver import ControllerDriver


class ProducerIdAllocator:
    """Each id is given out once, over all restarts: a block is written to the metadata log before its first id is used."""

    def __init__(self, controller: ControllerDriver, node_id: int, broker_epoch: int) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def take(self) -> int:
        async with self._lock:
            if self._next >= self._end:
                block = await self._controller.allocate_producer_ids(self._node_id, self._broker_epoch)
                self._next, self._end = block.first, block.first + block.size
            self._next += 1
            return self._next - 1
