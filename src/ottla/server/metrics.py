"""The node's metrics in Prometheus' text format.

Counters are plain integers, incremented where things happen and collected when the page is requested.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.runtime.broker import Broker
from ottla.server.loop_lag import BOUNDS_SECONDS, LoopLag
from ottla.server.server import Server

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TOPICS_MAX = 100
"""Upper limit of topics with samples of their own; the total covers all."""


class ProcessFacts(NamedTuple):
    """Process metrics from the operating system."""

    resident_bytes: int
    cpu_seconds: float
    open_descriptors: int


Sample = tuple[str, int | float]
"""Formatted labels and a value."""


class Metrics:
    """The metrics of one node."""

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
            "process_start_time_seconds",
            "gauge",
            "Start time of the node, in seconds since the epoch.",
            [("", self._started_ms / 1000)],
        )
        if self._process_facts is not None:
            facts = self._process_facts()
            lines += _metric("process_resident_memory_bytes", "gauge", "Resident memory.", [("", facts.resident_bytes)])
            lines += _metric("process_cpu_seconds_total", "counter", "CPU time used.", [("", facts.cpu_seconds)])
            lines += _metric("process_open_fds", "gauge", "Open files and sockets.", [("", facts.open_descriptors)])
        return lines

    def _connections(self) -> list[str]:
        server = self._server
        by_listener = [(_label("listener", name), count) for name, count in sorted(server.quotas.by_listener.items())]
        return [
            *_metric("ottla_connections", "gauge", "Open connections.", by_listener),
            *_metric(
                "ottla_connections_waiting",
                "gauge",
                "Connections waiting to be admitted.",
                [("", server.waiting_count)],
            ),
            *_metric("ottla_connections_accepted_total", "counter", "Connections admitted.", [("", server.accepted)]),
            *_metric(
                "ottla_connections_closed_total",
                "counter",
                "Connections closed by the broker, by reason.",
                [
                    (_label("reason", "limit"), server.rejected),
                    (_label("reason", "idle"), server.idle_closed),
                    (_label("reason", "malformed"), server.malformed),
                    (_label("reason", "failed"), server.failed),
                ],
            ),
            *_metric("ottla_received_bytes_total", "counter", "Bytes received from clients.", [("", server.bytes_in)]),
            *_metric("ottla_sent_bytes_total", "counter", "Bytes sent to clients.", [("", server.bytes_out)]),
            *_metric(
                "ottla_request_buffer_bytes",
                "gauge",
                "Memory used by incomplete requests.",
                [("", server.buffers.owned_bytes)],
            ),
            *_metric(
                "ottla_request_queued_bytes",
                "gauge",
                "Bytes reserved by incomplete requests under queued.max.request.bytes.",
                [("", server.buffers.reserved_bytes)],
            ),
            *_metric(
                "ottla_requests_waiting_for_memory",
                "gauge",
                "Requests not read because queued.max.request.bytes is used up.",
                [("", server.buffers.waiting_count)],
            ),
        ]

    def _requests(self) -> list[str]:
        apis = sorted(self._server.apis.values(), key=lambda api: api.module)
        return [
            *_metric(
                "ottla_requests_total",
                "counter",
                "Requests handled, by API.",
                [(_label("api", api.module), api.requests) for api in apis],
            ),
            *_metric(
                "ottla_request_errors_total",
                "counter",
                "Error codes in responses, by API.",
                [(_label("api", api.module), api.errors) for api in apis],
            ),
        ]


def _loop_lag(lag: LoopLag) -> list[str]:
    name, total, samples = "ottla_event_loop_lag_seconds", 0, []
    for bound, count in zip((*map(str, BOUNDS_SECONDS), "+Inf"), lag.counts, strict=True):
        total += count
        samples.append(f'{name}_bucket{{le="{bound}"}} {total}')
    return [
        f"# HELP {name} Event loop lag, measured by a timer.",
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
    listed = sorted(ends)[:TOPICS_MAX]
    return [
        *_metric("ottla_topics", "gauge", "Topics.", [("", len(broker.image.topics_by_name))]),
        *_metric("ottla_partitions", "gauge", "Partitions on this node.", [("", len(partitions))]),
        *_metric(
            "ottla_log_end_offset_sum",
            "counter",
            "Sum of all log end offsets; grows by one with every record.",
            [("", sum(ends.values()))],
        ),
        *_metric(
            "ottla_topic_log_end_offset_sum",
            "counter",
            f"Sum of log end offsets per topic, for the first {TOPICS_MAX} topics by name.",
            [(_label("topic", topic), ends[topic]) for topic in listed],
        ),
        *_metric(
            "ottla_log_directories",
            "gauge",
            "Usable log directories, by state.",
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
            "Partitions whose log directory has failed.",
            [("", sum(map(len, broker.offline.values())))],
        ),
        *_metric("ottla_delayed_fetches", "gauge", "Fetch requests waiting for data.", [("", len(delayed_fetches))]),
    ]


def _cleaner(broker: Broker) -> list[str]:
    """Return no lines if the log cleaner is disabled."""
    cleaner = broker.log_cleaner
    if cleaner is None:
        return []
    counts = cleaner.metrics
    return [
        *_metric(
            "ottla_uncleanable_partitions",
            "gauge",
            "Partitions excluded from compaction after a failure.",
            [("", cleaner.uncleanable_count)],
        ),
        *_metric(
            "ottla_cleaner_runs_total",
            "counter",
            "Completed compactions of a log.",
            [("", counts.runs)],
        ),
        *_metric("ottla_cleaner_read_bytes_total", "counter", "Bytes read by compaction.", [("", counts.read_bytes)]),
        *_metric(
            "ottla_cleaner_written_bytes_total", "counter", "Bytes written by compaction.", [("", counts.written_bytes)]
        ),
        *_metric(
            "ottla_cleaner_max_dirty_ratio",
            "gauge",
            "Largest dirty ratio of the compacted logs.",
            [("", round(cleaner.max_dirty_ratio(), 4))],
        ),
    ]


def _groups(broker: Broker) -> list[str]:
    """Return no lines until there is a group coordinator."""
    groups = broker.coordinators.group_coordinator_if_loaded
    if groups is None:
        return []
    stats, counts = groups.stats(), groups.metrics
    return [
        *_metric(
            "ottla_group_coordinator_partitions",
            "gauge",
            "Partitions of __consumer_offsets led by this node, by state.",
            [(_label("state", state), count) for state, count in groups.shard_states().items()],
        ),
        *_metric(
            "ottla_groups",
            "gauge",
            "Groups, by state.",
            [(_label("state", state), count) for state, count in stats.by_state.items()],
        ),
        *_metric("ottla_group_members", "gauge", "Group members.", [("", stats.members)]),
        *_metric(
            "ottla_group_members_expired_total",
            "counter",
            "Members removed after their session timed out.",
            [("", counts.expired_members)],
        ),
        *_metric("ottla_group_rebalances_total", "counter", "Rebalances started.", [("", counts.rebalances)]),
        *_metric("ottla_group_offset_commits_total", "counter", "Offsets committed.", [("", counts.offset_commits)]),
        *_metric(
            "ottla_group_offsets_expired_total",
            "counter",
            "Committed offsets removed after their retention time.",
            [("", counts.expired_offsets)],
        ),
    ]


def _metric(name: str, metric_type: str, description: str, samples: Iterable[Sample]) -> list[str]:
    return [
        f"# HELP {name} {description}",
        f"# TYPE {name} {metric_type}",
        *(f"{name}{labels} {value}" for labels, value in samples),
    ]


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{{{name}="{escaped}"}}'
