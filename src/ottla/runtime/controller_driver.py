"""Drives the controller: a request is decided, its records are replayed and committed, and only then is it answered."""

from collections.abc import Sequence
from typing import Any, Protocol

from ottla.base.decision import Decision
from ottla.base.ports import Clock
from ottla.controller.controller import Controller
from ottla.runtime.metadata_log import MetadataLog


class ControllerDriver:
    """The active controller of this node, and the log that its decisions go through."""

    def __init__(self, controller: Controller, log: MetadataLog, clock: Clock) -> None:
        self._controller = controller
        self._log = log
        self._clock = clock

    async def submit(self, request: Any) -> Any:
        """The response to a request, once what it changed is committed and published."""
        decision: Decision = self._controller.decide(request, self._clock.now_ms())
        if decision.records:
            await self._log.append(decision.records)
        return decision.response
