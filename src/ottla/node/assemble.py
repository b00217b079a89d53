"""Assemble a node from its ports. Simulation and production use the same code, with different ports."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ApiError
from ottla.base.ids import random_uuid
from ottla.base.ports import Ports
from ottla.controller.controller import Controller
from ottla.controller.requests import (
    BrokerRegistered,
    FenceBroker,
    RegisterBroker,
    RegisterController,
    StartControlledShutdown,
    UnfenceBroker,
)
from ottla.controller.settings import ControllerSettings
from ottla.log.config import LogConfig
from ottla.metadata.features import supported_features, unsupported_features
from ottla.metadata.image import ClusterImage, Endpoint
from ottla.node.config import NodeConfig
from ottla.node.errors import StartError, listen_error
from ottla.node.listeners import ListenerConfig, bracketed
from ottla.node.storage import Storage, prepare_storage
from ottla.runtime.broker import Broker, BrokerSettings
from ottla.runtime.controller_driver import ControllerDriver, ProducerIdAllocator
from ottla.runtime.coordinators import Coordinators
from ottla.runtime.log_cleaner import LogCleaner
from ottla.runtime.log_directories import LogDirectory
from ottla.runtime.log_maintenance import LogMaintenance, MaintenanceIntervals
from ottla.runtime.log_recovery import LogRecovery, RecoveryProgress, Work, run_all
from ottla.runtime.metadata_log import CorruptMetadataLog, MetadataLog
from ottla.runtime.publisher import MetadataPublisher
from ottla.runtime.retention import LogRetention
from ottla.server.server import Server

if TYPE_CHECKING:
    from ottla.server.metrics import ProcessFacts
    from ottla.server.metrics_http import MetricsServer

log = logging.getLogger("ottla.node")

CLOSING_THREADS = 3
"""Threads per directory that close logs, which waits for the disk."""
SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class Node:
    """A running node. `failed` is set when it cannot continue because memory and disk may differ."""

    def __init__(
        self,
        *,
        bootstrap: str,
        storage: Storage,
        broker: Broker,
        broker_epoch: int,
        server: Server,
        publisher: MetadataPublisher,
        metadata_log: MetadataLog,
        log_maintenance: LogMaintenance,
        retention: LogRetention,
        ports: Ports,
        failed: "asyncio.Future[None]",
        metrics_server: "MetricsServer | None",
    ) -> None:
        self.bootstrap = bootstrap
        self.cluster_id = storage.cluster_id
        self.broker = broker
        self.failed = failed
        self._storage = storage
        self._broker_epoch = broker_epoch
        self._server = server
        self._publisher = publisher
        self.flusher = publisher.flusher
        self._metadata_log = metadata_log
        self.log_maintenance = log_maintenance
        self.retention = retention
        self._ports = ports
        self._metrics_server = metrics_server

    @property
    def metrics_port(self) -> int | None:
        return None if self._metrics_server is None else self._metrics_server.port

    def _stop_listening(self) -> None:
        self._server.stop_listening()
        if self._metrics_server is not None:
            self._metrics_server.close()

    async def stop(self) -> None:
        """Close the connections, write everything to disk, and mark the directories as clean."""
        self._stop_listening()
        await self._server.close_connections()
        self.broker.coordinators.close()
        await self.retention.stop()
        if self.broker.log_cleaner is not None:
            await self.broker.log_cleaner.stop()
        await self._publisher.replica_mover.stop()
        await self.log_maintenance.stop()
        try:
            await self._leave()
            await self._publisher.partition_opener.wait_until_open()
            unclean = await self._close_logs()
            await self._metadata_log.close()
            if not self.failed.done():
                self._storage.mark_clean(self._ports.disk, self._broker_epoch, without=unclean)
        finally:
            self._storage.release()

    async def _close_logs(self) -> list[str]:
        """Close all logs. Return the directories with failures, whose logs the next start recovers."""
        directories = self.broker.log_directories
        unclean = [directory.path for directory in directories if not directory.is_online]
        works = [Work(directories.of(each.directory).path, False, each.close) for each in self._publisher.logs()]
        closed = await run_all(self._ports.workers, works, threads_per_directory=CLOSING_THREADS)
        for (path, _, _), error in zip(works, closed, strict=True):
            if error is not None and path not in unclean:
                log.error("could not close all logs in %s; they will be recovered on the next start: %s", path, error)
                unclean.append(path)
        await self.log_maintenance.write_checkpoints()
        return unclean

    async def _leave(self) -> None:
        """Shut down and fence this broker in the metadata log, so that its next reader does not wait for it."""
        if not self.failed.done():
            node_id, controller = self.broker.settings.node_id, self.broker.controller
            await asyncio.gather(
                controller.submit(StartControlledShutdown(node_id, self._broker_epoch)),
                controller.submit(FenceBroker(node_id, self._broker_epoch)),
            )

    def abort(self) -> None:
        """Stop as in a crash: flush nothing, and mark no directory as clean."""
        self._stop_listening()
        self._server.abort_connections()
        self.broker.coordinators.close()
        self.broker.cancel_background()
        self.retention.abort()
        self.log_maintenance.abort()
        if self.broker.log_cleaner is not None:
            self.broker.log_cleaner.abort()
        self._publisher.partition_opener.close()
        self._publisher.replica_mover.close()
        self._storage.release()


async def assemble(
    ports: Ports,
    config: NodeConfig,
    *,
    process_facts: "Callable[[], ProcessFacts] | None" = None,
    on_recovery_progress: Callable[[RecoveryProgress], None] | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Node:
    """Start a node. Raises StartError with a message for the user.

    Raises RecoveryInterrupted if `is_stopping` returns True while logs are opened; the next start then recovers them.
    """
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_failed(error: BaseException) -> None:
        log.critical("stopping the node: %s", error)
        if not failed.done():
            failed.set_exception(error)
            failed.exception()  # avoid asyncio's warning about an exception that was never retrieved

    storage = prepare_storage(
        ports.disk,
        ports.rng,
        config.log_dirs,
        config.metadata_log_dir,
        config.node_id,
        config.cluster_id,
        now_ms=ports.clock.now_ms(),
    )
    log_recovery = LogRecovery(
        ports.workers,
        threads_per_directory=config.integer("num.recovery.threads.per.data.dir"),
        on_progress=on_recovery_progress,
        is_stopping=is_stopping,
    )
    try:
        return await _start(ports, config, storage, failed, on_failed, process_facts, log_recovery)
    except CorruptMetadataLog as error:
        storage.release()
        raise StartError(str(error)) from error
    except ApiError as error:
        storage.release()
        raise StartError(f"could not register the node: {error.args[-1]}") from error
    except BaseException:
        storage.release()
        raise


async def _start(
    ports: Ports,
    config: NodeConfig,
    storage: Storage,
    failed: "asyncio.Future[None]",
    on_failed: Callable[[BaseException], None],
    process_facts: "Callable[[], ProcessFacts] | None",
    log_recovery: LogRecovery,
) -> Node:
    metadata_log = _open_metadata_log(ports, config, storage, on_failed)
    broker = _create_broker(ports, config, metadata_log, metadata_log.load(storage.cluster_id))
    directories = _log_directories(storage, config)
    publisher = MetadataPublisher(broker, ports.disk, ports.rng, directories, on_failed)
    controller = broker.controller
    controller.wait_until_open = publisher.partition_opener.wait_until_open
    server = Server(broker, ports.network, ports.rng, protected_listener=config.inter_broker_listener)
    metrics_server: MetricsServer | None = None
    try:
        endpoints = await _listen(server, config.listeners)
        if config.metrics_address is not None:
            metrics_server = await _serve_metrics(ports, server, config.metrics_address, process_facts)
        await publisher.start(broker.image, log_recovery)
        metadata_log.follow(publisher.publish, lambda: broker.image)
        await controller.activate(storage.read_bootstrap_records(ports.disk) if not broker.image.features else [])
        broker_epoch = await _register(ports, config, storage, controller, endpoints, directories)
        await publisher.assign_directories(broker_epoch)
    except BaseException:
        server.stop_listening()
        if metrics_server is not None:
            metrics_server.close()
        raise
    broker.producer_ids = ProducerIdAllocator(controller, config.node_id, broker_epoch)
    broker.supported_features = supported_features()
    _warn_unsupported(broker.image)
    log_maintenance, retention = _start_log_maintenance(ports, config, broker, publisher, on_failed)
    server.open()
    return Node(
        bootstrap=f"{bracketed(endpoints[0].host)}:{endpoints[0].port}",
        storage=storage,
        broker=broker,
        broker_epoch=broker_epoch,
        server=server,
        publisher=publisher,
        metadata_log=metadata_log,
        log_maintenance=log_maintenance,
        retention=retention,
        ports=ports,
        failed=failed,
        metrics_server=metrics_server,
    )


def _open_metadata_log(
    ports: Ports, config: NodeConfig, storage: Storage, on_failed: Callable[[BaseException], None]
) -> MetadataLog:
    return MetadataLog.open(
        ports.disk,
        ports.clock,
        ports.workers,
        storage.metadata_log_path,
        node_id=config.node_id,
        clean=storage.metadata_directory.is_clean,
        config=LogConfig(segment_bytes=config.integer("metadata.log.segment.bytes")),
        on_failed=on_failed,
        snapshot_bytes_max=config.integer("metadata.log.max.record.bytes.between.snapshots"),
        snapshot_interval_max_ms=config.integer("metadata.log.max.snapshot.interval.ms"),
    )


def _create_broker(ports: Ports, config: NodeConfig, metadata_log: MetadataLog, image: ClusterImage) -> Broker:
    controller = Controller(image, ControllerSettings(config.node_id, config.static), ports.rng)
    settings = BrokerSettings(
        node_id=config.node_id,
        request_bytes_max=config.integer("socket.request.max.bytes"),
        fetch_bytes_max=config.integer("fetch.max.bytes"),
        is_auto_create_enabled=config.flag("auto.create.topics.enable"),
        auto_created_topics_max=config.integer("ottla.auto.create.topics.max"),
        static_configs=config.static,
    )
    broker = Broker(
        settings=settings,
        image=image,
        clock=ports.clock,
        workers=ports.workers,
        processes=ports.processes,
        controller=ControllerDriver(controller, metadata_log, ports.clock),
    )
    broker.coordinators = Coordinators(broker, ports.rng)
    return broker


def _start_log_maintenance(
    ports: Ports,
    config: NodeConfig,
    broker: Broker,
    publisher: MetadataPublisher,
    on_failed: Callable[[BaseException], None],
) -> tuple[LogMaintenance, LogRetention]:
    """Start the periodic tasks that work on the logs."""
    log_maintenance = LogMaintenance(
        broker,
        publisher.flusher,
        publisher.checkpoints,
        on_failed,
        MaintenanceIntervals(
            flush_check_ms=config.integer("log.flush.scheduler.interval.ms"),
            recovery_points_ms=config.integer("log.flush.offset.checkpoint.interval.ms"),
            high_watermarks_ms=config.integer("replica.high.watermark.checkpoint.interval.ms"),
            expiry_ms=config.integer("producer.id.expiration.check.interval.ms"),
        ),
    )
    log_maintenance.start()
    retention = LogRetention(
        broker,
        on_failed,
        initial_delay_ms=config.integer("log.initial.task.delay.ms"),
        interval_ms=config.integer("log.retention.check.interval.ms"),
    )
    retention.start()
    if config.flag("log.cleaner.enable"):
        broker.log_cleaner = LogCleaner(broker, ports.disk, ports.processes, ports.rng, on_failed)
        broker.log_cleaner.start()
    return log_maintenance, retention


def _log_directories(storage: Storage, config: NodeConfig) -> list[LogDirectory]:
    """Return the directories of `log.dirs` in order, including failed ones."""
    found = {directory.path: directory for directory in storage.directories}
    directories = []
    for path in dict.fromkeys(config.log_dirs):
        error = storage.failed.get(path)
        if error is None:
            directory = found[path]
            directories.append(
                LogDirectory(
                    directory.directory_id,
                    path,
                    is_clean=directory.is_clean,
                    holds_metadata=path == storage.metadata_directory.path,
                )
            )
        else:
            log.error(
                "log directory %s failed, all its partitions are offline: %s. "
                "Repair or mount it and restart the node, or remove it from log.dirs",
                path,
                error,
            )
            directories.append(LogDirectory(None, path, is_clean=False, failure=error))
    if not any(directory.is_online for directory in directories):
        errors = ", ".join(f"{path} ({error})" for path, error in storage.failed.items())
        raise StartError(f"all log directories failed: {errors}")
    return directories


async def _listen(server: Server, listeners: tuple[ListenerConfig, ...]) -> list[Endpoint]:
    """Bind the addresses, so that an address error precedes log recovery. Connections wait for `Server.open`."""
    endpoints = []
    for listener in listeners:
        try:
            port = await server.listen(listener.name, listener.host, listener.port)
        except OSError as error:
            raise listen_error(listener, error) from error
        endpoints.append(
            Endpoint(
                listener.name,
                listener.advertised_host,
                listener.advertised_port or port,
                SECURITY_PROTOCOLS[listener.security_protocol],
            )
        )
    return endpoints


async def _serve_metrics(
    ports: Ports, server: Server, address: tuple[str, int], process_facts: "Callable[[], ProcessFacts] | None"
) -> "MetricsServer":
    from ottla.server.metrics import Metrics  # not loaded by nodes without a metrics endpoint
    from ottla.server.metrics_http import MetricsServer

    metrics_server = MetricsServer(ports.network, Metrics(server, process_facts=process_facts).text, server.broker.loop)
    host, port = address
    try:
        await metrics_server.listen(host, port)
    except OSError as error:
        raise StartError(
            f"ottla.metrics.listener: cannot listen on {bracketed(host)}:{port}: {error.strerror or error}"
        ) from error
    return metrics_server


async def _register(
    ports: Ports,
    config: NodeConfig,
    storage: Storage,
    controller: ControllerDriver,
    endpoints: list[Endpoint],
    directories: list[LogDirectory],
) -> int:
    """Register controller and broker, unfence the broker, and return its epoch."""
    incarnation_id = random_uuid(ports.rng)
    controller_endpoints = tuple(
        Endpoint(
            listener.name, listener.host or "localhost", listener.port, SECURITY_PROTOCOLS[listener.security_protocol]
        )
        for listener in config.controller_listeners
    )
    await controller.submit(
        RegisterController(config.node_id, incarnation_id, controller_endpoints, supported_features())
    )
    online = tuple(
        directory.directory_id
        for directory in directories
        if directory.is_online and directory.directory_id is not None
    )
    registered: Any = await controller.submit(
        RegisterBroker(
            config.node_id,
            storage.cluster_id,
            incarnation_id,
            tuple(endpoints),
            online,
            supported_features(),
            config.rack,
            storage.previous_broker_epoch,
        )
    )
    if not isinstance(registered, BrokerRegistered):
        raise StartError(f"the controller rejected the registration of this broker: {registered.message}")
    await controller.submit(UnfenceBroker(config.node_id, registered.epoch))
    return registered.epoch


def _warn_unsupported(image: ClusterImage) -> None:
    """Warn about metadata that this version does not support, written by Apache Kafka or a later version."""
    features = unsupported_features(dict(image.features))
    if features:
        log.warning(
            "unsupported finalized features: %s",
            ", ".join(f"{name}={level}" for name, level in features.items()),
        )
    passthrough = image.passthrough_counts()
    if passthrough:
        log.warning(
            "metadata records that are retained but not supported: %s",
            ", ".join(f"{count} {name}" for name, count in passthrough.items()),
        )
