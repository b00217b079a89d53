"""The real ports. Only this module of `client` imports `io`."""

import asyncio
from dataclasses import dataclass

from ottla.base.ports import Clock, Network, Rng
from ottla.io.clock import RealClock
from ottla.io.rng import RealRng
from ottla.io.tcp import TcpNetwork
from ottla.io.workers import ThreadWorkers

WORKER_THREADS_MAX = 2


@dataclass(frozen=True, slots=True)
class RealClientPorts:
    clock: Clock
    rng: Rng
    workers: ThreadWorkers
    network: Network


def real_client_ports(loop: asyncio.AbstractEventLoop) -> RealClientPorts:
    return RealClientPorts(RealClock(), RealRng(), ThreadWorkers(loop, WORKER_THREADS_MAX), TcpNetwork())
