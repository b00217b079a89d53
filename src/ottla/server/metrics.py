"""What a node tells of itself, in Prometheus' text form.

Everything is counted where it happens by an addition, and put together only when somebody asks.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.runtime.broker import Broker
from ottla.server.loop_lag import BOUNDS_SECONDS, LoopLag
from ottla.server.server import Server

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TOPICS_MAX = 100
"""Topics with lines of their own; the others are told as a sum."""


class ProcessFacts(NamedTuple):
    """What only the operating system knows."""

    resident_bytes: int
    cpu_seconds: float
    open_descriptors: int


Sample = tuple[str, int | float]
"""Labels, as they are written, and a value."""


class Metrics:
    """One node's metrics."""

    def __init__(self, server: Server, *, process_facts: Callable[[], ProcessFacts] | None = None) -> None:
        self._server = server
        self._broker = server.broker
        self._process_facts = process_facts
        self._started_ms = server.broker.clock.now_ms()

    def text(self) -> str:
        lines: list[str] = []
        for part in (
            self._process(),
            _loop_lag(self._server.lag),
            self._connections(),
            self._requests(),
            _storage(self._broker),
            _cleaner(self._broker),
            _groups(self._broker),
        ):
            lines += part
        return "\n".join(lines) + "\n"

    def _process(self) -> list[str]:
        lines = _metric(
            "process_start_time_seconds", "gauge", "When the node was started.", [("", self._started_ms / 1000)]
        )
        if self._process_facts is not None:
            facts = self._process_facts()
            lines += _metric("process_resident_memory_bytes", "gauge", "Memory in use.", [("", facts.resident_bytes)])
            lines += _metric("process_cpu_seconds_total", "counter", "Processor time used.", [("", facts.cpu_seconds)])
            lines += _metric("process_open_fds", "gauge", "Open files and sockets.", [("", facts.open_descriptors)])
        return lines

    def _connections(self) -> list[str]:
        server = self._server
        by_listener = [(_label("listener", name), count) for name, count in sorted(server.quotas.by_listener.items())]
        return [
            *_metric("ottla_connections", "gauge", "Open connections.", by_listener),
            *_metric(
                "ottla_connections_waiting", "gauge", "Connections that wait for a place.", [("", server.waiting_count)]
            ),
            *_metric(
                "ottla_connections_accepted_total", "counter", "Connections that were let in.", [("", server.accepted)]
            ),
            *_metric(
                "ottla_connections_closed_total",
                "counter",
                "Connections that the node has closed, by the reason.",
                [
                    (_label("reason", "limit"), server.rejected),
                    (_label("reason", "idle"), server.idle_closed),
                    (_label("reason", "malformed"), server.malformed),
                    (_label("reason", "failed"), server.failed),
                ],
            ),
            *_metric("ottla_received_bytes_total", "counter", "Bytes from clients.", [("", server.bytes_in)]),
            *_metric("ottla_sent_bytes_total", "counter", "Bytes to clients.", [("", server.bytes_out)]),
            *_metric(
                "ottla_request_buffer_bytes",
                "gauge",
                "Memory that unfinished requests hold.",
                [("", server.buffers.owned_bytes)],
            ),
            *_metric(
                "ottla_request_queued_bytes",
                "gauge",
                "What unfinished requests count in queued.max.request.bytes.",
                [("", server.buffers.reserved_bytes)],
            ),
            *_metric(
                "ottla_requests_waiting_for_memory",
                "gauge",
                "Requests that are not read because of queued.max.request.bytes.",
                [("", server.buffers.waiting_count)],
            ),
        ]

    def _requests(self) -> list[str]:
        apis = sorted(self._server.apis.values(), key=lambda api: api.module)
        return [
            *_metric(
                "ottla_requests_total",
                "counter",
                "Requests that were handled.",
                [(_label("api", api.module), api.requests) for api in apis],
            ),
            *_metric(
                "ottla_request_errors_total",
                "counter",
                "Error codes in answers.",
                [(_label("api", api.module), api.errors) for api in apis],
            ),
        ]


def _loop_lag(lag: LoopLag) -> list[str]:
    name, total, samples = "ottla_event_loop_lag_seconds", 0, []
    for bound, count in zip((*map(str, BOUNDS_SECONDS), "+Inf"), lag.counts, strict=True):
        total += count
        samples.append(f'{name}_bucket{{le="{bound}"}} {total}')
    return [
        f"# HELP {name} How late the event loop calls a timer.",
        f"# TYPE {name} histogram",
        *samples,
        f"{name}_sum {lag.sum_seconds:.6f}",
        f"{name}_count {total}",
    ]


def _storage(broker: Broker) -> list[str]:
    partitions = broker.all_partitions()
    ends: dict[str, int] = {}
    delayed_fetches: dict[object, None] = {}
    for partition in partitions:
        ends[partition.topic] = ends.get(partition.topic, 0) + partition.log.log_end_offset
        delayed_fetches.update(dict.fromkeys(partition.delayed_fetches))
    told = sorted(ends)[:TOPICS_MAX]
    return [
        *_metric("ottla_topics", "gauge", "Topics.", [("", len(broker.image.topics_by_name))]),
        *_metric("ottla_partitions", "gauge", "Partitions that are here.", [("", len(partitions))]),
        *_metric(
            "ottla_log_end_offset_sum",
            "counter",
            "The ends of all logs, added up: it grows by one with every record.",
            [("", sum(ends.values()))],
        ),
        *_metric(
            "ottla_topic_log_end_offset_sum",
            "counter",
            f"The same by topic, for the first {TOPICS_MAX} by name.",
            [(_label("topic", topic), ends[topic]) for topic in told],
        ),
        *_metric(
            "ottla_log_directories",
            "gauge",
            "Log directories, by what they can be used for.",
            [
                (
                    _label("state", "online"),
                    sum(each.is_online and not each.is_full for each in broker.log_directories),
                ),
                (_label("state", "full"), sum(each.is_online and each.is_full for each in broker.log_directories)),
            ],
        ),
        *_metric(
            "ottla_offline_log_directory_count",
            "gauge",
            "Log directories that have failed.",
            [("", sum(not each.is_online for each in broker.log_directories))],
        ),
        *_metric(
            "ottla_offline_partitions",
            "gauge",
            "Partitions that cannot be used, as their directory has failed.",
            [("", sum(map(len, broker.offline.values())))],
        ),
        *_metric("ottla_delayed_fetches", "gauge", "Fetches that wait for data.", [("", len(delayed_fetches))]),
    ]


def _cleaner(broker: Broker) -> list[str]:
    """Nothing where logs are not compacted."""
    cleaner = broker.log_cleaner
    if cleaner is None:
        return []
    counts = cleaner.metrics
    return [
        *_metric(
            "ottla_uncleanable_partitions",
            "gauge",
            "Partitions that are not compacted any more, as they could not be.",
            [("", cleaner.uncleanable_count)],
        ),
        *_metric(
            "ottla_cleaner_runs_total",
            "counter",
            "Logs that were compacted, each time that one was.",
            [("", counts.runs)],
        ),
        *_metric("ottla_cleaner_read_bytes_total", "counter", "What compaction has read.", [("", counts.read_bytes)]),
        *_metric(
            "ottla_cleaner_written_bytes_total", "counter", "What compaction has written.", [("", counts.written_bytes)]
        ),
        *_metric(
            "ottla_cleaner_max_dirty_ratio",
            "gauge",
            "The largest share of uncompacted bytes that a compacted log has.",
            [("", round(cleaner.max_dirty_ratio(), 4))],
        ),
    ]


def _groups(broker: Broker) -> list[str]:
    """Nothing while the node has no coordinator of groups."""
    groups = broker.coordinators.group_coordinator_if_loaded
    if groups is None:
        return []
    stats, counts = groups.stats(), groups.metrics
    return [
        *_metric(
            "ottla_group_coordinator_partitions",
            "gauge",
            "Partitions of __consumer_offsets that are led here, by what their groups can be asked.",
            [(_label("state", state), count) for state, count in groups.shard_states().items()],
        ),
        *_metric(
            "ottla_groups",
            "gauge",
            "Groups, by state.",
            [(_label("state", state), count) for state, count in stats.by_state.items()],
        ),
        *_metric("ottla_group_members", "gauge", "Members of all groups.", [("", stats.members)]),
        *_metric(
            "ottla_group_members_expired_total",
            "counter",
            "Members that were removed as nothing was heard of them.",
            [("", counts.expired_members)],
        ),
        *_metric("ottla_group_rebalances_total", "counter", "Rebalances that have begun.", [("", counts.rebalances)]),
        *_metric(
            "ottla_group_offset_commits_total", "counter", "Offsets that were committed.", [("", counts.offset_commits)]
        ),
        *_metric(
            "ottla_group_offsets_expired_total",
            "counter",
            "Committed offsets that were forgotten when their time was over.",
            [("", counts.expired_offsets)],
        ),
    ]


def _metric(name: str, kind: str, about: str, samples: Iterable[Sample]) -> list[str]:
    return [
        f"# HELP {name} {about}",
        f"# TYPE {name} {kind}",
        *(f"{name}{labels} {value}" for labels, value in samples),
    ]


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{{{name}="{escaped}"}}'
