"""A real broker in the test's process: `Broker` runs in its own thread, `AsyncBroker` in the running event loop.

    with Broker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

It listens on a free port of 127.0.0.1 and keeps its data in a temporary directory, in shared memory if available,
which is deleted at the end. `configs` takes Kafka's broker configs; `data` sets a permanent directory instead. All
defaults are Kafka's, except group.initial.rebalance.delay.ms=0.
"""

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Coroutine, Mapping
from typing import Any, Self, TypeVar

from ottla.base.config_text import ConfigScalar, config_text
from ottla.base.errors import ApiError, ErrorCode
from ottla.node.assemble import Node, assemble
from ottla.node.config import node_config
from ottla.node.main import RealPorts, real_ports
from ottla.node.temporary import remove_directory, temporary_directory
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

T = TypeVar("T")
Configs = Mapping[str, ConfigScalar]

HOST = "127.0.0.1"
START_SECONDS_MAX = 60.0
DEFAULTS = {"group.initial.rebalance.delay.ms": "0"}
"""Defaults that differ from Kafka's: with a delay of 3 s, every test with a new group would take 3 s longer."""


class AsyncBroker:
    """A broker in the running event loop: `async with AsyncBroker() as broker`."""

    def __init__(
        self,
        *,
        configs: Configs | None = None,
        data: str | os.PathLike[str] | None = None,
        config: Configs | None = None,
    ) -> None:
        """`configs` are Kafka's broker configs; `config` is the parameter's old name."""
        self._configs = _texts(configs, config)
        self._directory = os.path.abspath(data) if data is not None else None
        self._removal: weakref.finalize[[int, str], AsyncBroker] | None = None
        self._node: Node | None = None
        self._ports: RealPorts | None = None
        self._port = 0

    @property
    def bootstrap(self) -> str:
        """Address for clients, as host:port; stays the same after a restart."""
        if not self._port:
            raise RuntimeError("the broker has no address yet; start it first")
        return f"{HOST}:{self._port}"

    @property
    def data(self) -> str:
        """The data directory."""
        if self._directory is None:
            self._directory = temporary_directory()
            # Also delete it if the broker is never stopped: shared memory uses RAM.
            self._removal = weakref.finalize(self, _remove_in_process, os.getpid(), self._directory)
        return self._directory

    @property
    def node(self) -> Node:
        """The node, for tests that inspect internals."""
        if self._node is None:
            raise RuntimeError("the broker is not running")
        return self._node

    async def start(self) -> Self:
        if self._node is not None:
            raise RuntimeError("the broker is already running")
        listener = {"listeners": f"PLAINTEXT://{HOST}:{self._port}", "log.dirs": self.data}
        config = node_config(listener | DEFAULTS | self._configs)
        ports = real_ports(asyncio.get_running_loop())
        try:
            self._node = await assemble(ports, config)
        except BaseException:
            ports.processes.close()
            ports.workers.close()
            raise
        self._ports = ports
        self._port = int(self._node.bootstrap.rpartition(":")[2])
        return self

    async def stop(self) -> None:
        """Stop cleanly. The data is kept until the end of the `with` block, or permanently if `data` was given."""
        node, self._node = self._node, None
        if node is not None:
            await node.stop()
            self._close_workers()

    async def kill(self) -> None:
        """Simulate a crash: connections break, nothing is flushed, and no clean-shutdown marker is written."""
        node, self._node = self._node, None
        if node is not None:
            node.abort()
            self._close_workers()

    async def restart(self) -> None:
        """Stop cleanly if running, and start on the same port with the same data."""
        await self.stop()
        await self.start()

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: Configs | None = None,
        config: Configs | None = None,
    ) -> None:
        """Create a topic and wait until it exists; -1 means the broker's default. Raises `ApiError` if rejected."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(*each) for each in _texts(configs, config).items()],
        )
        response = await self.node.broker.controller.submit(CreateTopicsRequest(topics=[topic]))
        assert isinstance(response, CreateTopicsResponse), response
        (result,) = response.topics
        if result.error_code:
            raise ApiError(ErrorCode(result.error_code), result.error_message)

    def remove_data(self) -> None:
        """Delete the data if the directory is temporary."""
        if self._removal is not None:
            self._removal()
            self._removal = self._directory = None

    async def __aenter__(self) -> Self:
        try:
            return await self.start()
        except BaseException:
            self.remove_data()
            raise

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self.stop()
        finally:
            self.remove_data()

    def _close_workers(self) -> None:
        assert self._ports is not None
        self._ports.processes.close()
        self._ports.workers.close()
        self._ports = None


class Broker:
    """A broker in its own thread, for blocking tests: `with Broker() as broker`."""

    def __init__(
        self,
        *,
        configs: Configs | None = None,
        data: str | os.PathLike[str] | None = None,
        config: Configs | None = None,
    ) -> None:
        """`configs` are Kafka's broker configs; `config` is the parameter's old name."""
        self._broker = AsyncBroker(configs=configs, data=data, config=config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def bootstrap(self) -> str:
        """Address for clients, as host:port; stays the same after a restart."""
        return self._broker.bootstrap

    @property
    def data(self) -> str:
        """The data directory."""
        return self._broker.data

    def start(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("the broker is already running")
        import uvloop

        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="ottla-broker", daemon=True)
        self._thread.start()
        try:
            self._run(self._broker.start())
        except BaseException:
            self._end_thread()
            raise
        atexit.register(self._stop_at_exit)  # callbacks run in reverse order: this one before the removal of the data
        return self

    def stop(self) -> None:
        """Stop cleanly. The data is kept until the end of the `with` block, or permanently if `data` was given."""
        if self._thread is not None:
            try:
                self._run(self._broker.stop())
            finally:
                self._end_thread()

    def kill(self) -> None:
        """Simulate a crash: connections break, nothing is flushed, and no clean-shutdown marker is written."""
        if self._thread is not None:
            try:
                self._run(self._broker.kill())
            finally:
                self._end_thread()

    def restart(self) -> None:
        """Stop cleanly if running, and start on the same port with the same data."""
        self.stop()
        self.start()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: Configs | None = None,
        config: Configs | None = None,
    ) -> None:
        """Create a topic and wait until it exists; -1 means the broker's default. Raises `ApiError` if rejected."""
        if self._thread is None:
            raise RuntimeError("the broker is not running")
        texts = _texts(configs, config)
        self._run(self._broker.create_topic(name, partitions, replication_factor=replication_factor, configs=texts))

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._broker.remove_data()
            raise

    def __exit__(self, *raised: object) -> None:
        try:
            self.stop()
        finally:
            self._broker.remove_data()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_SECONDS_MAX)

    def _stop_at_exit(self) -> None:
        """Stop before the interpreter is finalized: a thread that still runs then may crash the process."""
        if self._thread is not None and self._thread.is_alive():  # not alive in a forked child
            self.stop()

    def _end_thread(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        atexit.unregister(self._stop_at_exit)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped; then cancel its tasks and close it."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


def _texts(configs: Configs | None, config: Configs | None) -> dict[str, str]:
    """Return configs as text, given under the parameter's new or old name."""
    if configs is not None and config is not None:
        raise TypeError("configs and config are the same parameter; pass only configs")
    given = configs if configs is not None else config
    return {name: config_text(name, value) for name, value in (given or {}).items()}


def _remove_in_process(pid: int, directory: str) -> None:
    """Remove a directory, unless this is a forked child whose parent uses it."""
    if os.getpid() == pid:
        remove_directory(directory)
