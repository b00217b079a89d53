"""Consumer groups: commits on one connection, a rebalance of a large group, and loading many groups after a restart."""

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence

from bench import frames, group_frames
from bench.comparison import Log, Results, times
from bench.frames import BrokerError, Connection
from bench.loads import Measurements, median_measurements, percentile
from bench.peers import BrokerProcess, cpu_seconds
from bench.plot import Plot
from bench.report import HEAD, Goal, Report, RunSize, by_broker, quotient, row, rows_of

SETTINGS = {"group.initial.rebalance.delay.ms": "1000"}
"""Long enough for all members to join before the first rebalance, which is not measured."""
IN_FLIGHT = 5
MEMBERS, PARTITIONS = 200, 1000
OFFSETS_PER_GROUP = 10
FILLERS = 100
READY_SECONDS_MAX = 60.0
COMMIT_RATE_MIN, COMMIT_CPU_MAX, REBALANCE_MAX, LOAD_SECONDS_MAX = 3.0, 0.4, 1.0, 2.0


def wait_until(is_ready: Callable[[], bool], failure: str) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not is_ready():
        if time.monotonic() > deadline:
            raise BrokerError(failure)
        time.sleep(0.02)


def create_coordinator(broker: BrokerProcess, group: str, topic: str) -> None:
    """Create the offsets topic, which a broker does on the first request for a coordinator."""
    connection = Connection(broker.port)
    frames.create_topic(connection, topic, partitions=OFFSETS_PER_GROUP)

    def accepts_commits() -> bool:
        found = group_frames.find_coordinator_error(connection.request(group_frames.find_coordinator(group)))
        commit = group_frames.offset_commit(group, topic, 1)
        return found == 0 and group_frames.offset_commit_error(connection.request(commit), topic) == 0

    wait_until(accepts_commits, f"{broker.name} accepts no commits")
    connection.close()


def commit(broker: BrokerProcess, group: str, topic: str, seconds: float, in_flight: int) -> Measurements:
    connection, before, request = (
        Connection(broker.port),
        cpu_seconds(broker.pid),
        group_frames.offset_commit(group, topic, 7),
    )
    latencies: list[float] = []
    sent: list[float] = []
    started = time.perf_counter()
    while (now := time.perf_counter()) < started + seconds:
        while len(sent) < in_flight:
            sent.append(time.perf_counter())
            connection.send(request)
        response = connection.receive()
        latencies.append(time.perf_counter() - sent.pop(0))
        if group_frames.offset_commit_error(response, topic):
            raise BrokerError(f"{broker.name} rejected a commit")
    took = now - started
    for _ in sent:
        connection.receive()
    connection.close()
    latencies.sort()
    count = len(latencies)
    return {
        "per_second": count / took,
        "p50_us": percentile(latencies, 0.5),
        "p99_us": percentile(latencies, 0.99),
        "cpu_us": (cpu_seconds(broker.pid) - before) / count * 1e6,
    }


class Members:
    """A group of raw members, each with its own connection, that rejoin together."""

    def __init__(self, broker: BrokerProcess, group: str, topic: str) -> None:
        self._group, self._topic = group, topic
        self._connections = [Connection(broker.port) for _ in range(MEMBERS)]
        self._names = [""] * MEMBERS

    def rebalance(self, user_data: bytes) -> float:
        """Return the seconds from the first JoinGroup to the last SyncGroup response. New `user_data` makes all
        rejoin."""
        started = time.perf_counter()
        metadata = group_frames.subscription(self._topic, user_data)
        joined = self._join(metadata)
        if any(one.error == group_frames.MEMBER_ID_REQUIRED for one in joined):
            self._names = [one.member for one in joined]
            joined = self._join(metadata)
        if any(one.error for one in joined) or len({one.generation for one in joined}) > 1:
            raise BrokerError(f"JoinGroup failed: {joined[0]}")
        self._names = [one.member for one in joined]
        each = PARTITIONS // MEMBERS
        parts = {
            name: group_frames.assignment(self._topic, index * each, each) for index, name in enumerate(self._names)
        }
        for connection, one in zip(self._connections, joined, strict=True):
            connection.send(
                group_frames.sync_group(
                    self._group, one.generation, one.member, parts if one.member == one.leader else {}
                )
            )
        for connection in self._connections:
            error = group_frames.sync_error(connection.receive())
            if error:
                raise BrokerError(f"SyncGroup failed with error {error}")
        return time.perf_counter() - started

    def _join(self, metadata: bytes) -> list[group_frames.Joined]:
        for connection, name in zip(self._connections, self._names, strict=True):
            connection.send(group_frames.join_group(self._group, name, metadata))
        return [group_frames.read_joined(connection.receive()) for connection in self._connections]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def fill_groups(broker: BrokerProcess, topic: str, count: int) -> None:
    """Commit from many connections, as a broker may process the commits of one connection one by one."""
    connections = [Connection(broker.port) for _ in range(FILLERS)]
    for first in range(0, count, FILLERS):
        active = connections[: min(FILLERS, count - first)]
        for index, connection in enumerate(active):
            connection.send(
                group_frames.offset_commit(
                    f"loaded-{first + index}", topic, first + index, partitions=OFFSETS_PER_GROUP
                )
            )
        if any(group_frames.offset_commit_error(connection.receive(), topic) for connection in active):
            raise BrokerError(f"{broker.name} rejected a commit")
    for connection in connections:
        connection.close()


def load_seconds(broker: BrokerProcess, count: int) -> tuple[float, float]:
    """Restart the broker. Return the seconds until all offsets are loaded, and the slowest other response."""
    broker.stop()
    broker.start()
    started, slowest = time.perf_counter(), 0.0
    connection, other = Connection(broker.port), Connection(broker.port)
    for number in range(0, count, max(count // 500, 1)):
        while True:
            sent = time.perf_counter()
            other.request(frames.api_versions())
            slowest = max(slowest, time.perf_counter() - sent)
            error = group_frames.offset_fetch_error(
                *connection.request_sized(group_frames.offset_fetch(f"loaded-{number}"))
            )
            if not error:
                break
            if error != group_frames.LOADING and time.perf_counter() - started > READY_SECONDS_MAX:
                raise BrokerError(f"{broker.name} did not load its groups: error {error}")
    connection.close()
    other.close()
    return time.perf_counter() - started, slowest


def run(broker_types: Sequence[type[BrokerProcess]], run_size: RunSize, log: Log) -> Report:
    rounds: dict[str, dict[str, list[Measurements]]] = {"1": {}, "5": {}}
    rebalances: dict[str, list[float]] = {}
    loading: dict[str, tuple[float, float]] = {}
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(broker_type(settings=SETTINGS)) for broker_type in broker_types]
        members = {
            broker.name: stack.enter_context(contextlib.closing(Members(broker, "large", "spread")))
            for broker in brokers
        }
        for broker in brokers:
            create_coordinator(broker, "committer", "committed")
            for in_flight in (1, IN_FLIGHT):
                commit(broker, "committer", "committed", run_size.warm_seconds, in_flight)
            members[broker.name].rebalance(b"first")
        for turn in range(run_size.rounds):
            for broker in brokers:
                for in_flight in (1, IN_FLIGHT):
                    measurements = commit(broker, "committer", "committed", run_size.round_seconds, in_flight)
                    rounds[str(in_flight)].setdefault(broker.name, []).append(measurements)
                rebalances.setdefault(broker.name, []).append(members[broker.name].rebalance(b"round %d" % turn))
    for broker_type in broker_types:
        with broker_type(settings=SETTINGS) as broker:  # a fresh broker, without other commits to load
            create_coordinator(broker, "committer", "committed")
            fill_groups(broker, "committed", run_size.loaded_groups)
            loading[broker.name] = load_seconds(broker, run_size.loaded_groups)
    medians: dict[str, Results] = {
        in_flight: {name: median_measurements(runs) for name, runs in by_name.items()}
        for in_flight, by_name in rounds.items()
    }
    rebalance = {name: statistics.median(seconds) * 1e3 for name, seconds in rebalances.items()}
    for name, measurements in medians[str(IN_FLIGHT)].items():
        log(
            f"{name}: {measurements['per_second']:,.0f} commits/s, CPU {measurements['cpu_us']:.0f} µs; "
            f"rebalance of {MEMBERS} members {rebalance[name]:,.0f} ms; "
            f"{run_size.loaded_groups:,} groups loaded in {loading[name][0]:.2f} s"
        )
    return report(medians, rebalance, loading, run_size)


def report(
    medians: dict[str, Results], rebalance: dict[str, float], loading: dict[str, tuple[float, float]], run_size: RunSize
) -> Report:
    rows = []
    for in_flight, results in medians.items():
        label = f"OffsetCommit, {in_flight} in flight"
        columns = (
            (f"{label}: commits/s", "per_second", ",.0f", ""),
            (f"{label}: p99", "p99_us", ",.0f", " µs"),
            (f"{label}: broker CPU", "cpu_us", ",.0f", " µs"),
        )
        rows += rows_of(columns, results)
    rows.append(row(f"Rebalance of {MEMBERS} members, {PARTITIONS:,} partitions", rebalance, ",.0f", " ms"))
    groups = f"{run_size.loaded_groups:,} groups × {OFFSETS_PER_GROUP} offsets"
    rows.append(row(f"{groups} loaded after a restart", {name: one[0] for name, one in loading.items()}, ".2f", " s"))
    slowest = {name: one[1] * 1e3 for name, one in loading.items()}
    rows.append(row("slowest response to another client meanwhile", slowest, ".1f", " ms"))
    note = (
        f"One connection commits one partition's offset repeatedly: medians of {run_size.rounds} rounds of "
        f"{run_size.round_seconds:g} s, alternating, after {run_size.warm_seconds:g} s to warm up. The rebalance is "
        "eager, with raw members in one process, from the first JoinGroup to the last SyncGroup response, medians of "
        "as many rounds. Loading is from the first response of the restarted broker until one in twenty of the groups "
        "has returned its offsets."
    )
    fast = medians[str(IN_FLIGHT)]
    ours = loading.get("ottla")
    rebalance_ratio = quotient(rebalance.get("ottla"), rebalance.get("kafka"))
    goals = [
        Goal("OffsetCommit, 5 in flight: rate relative to Kafka", times(fast, "per_second"), COMMIT_RATE_MIN, False),
        Goal("OffsetCommit, 5 in flight: CPU relative to Kafka", times(fast, "cpu_us"), COMMIT_CPU_MAX),
        Goal(f"Rebalance of {MEMBERS} members, relative to Kafka", rebalance_ratio, REBALANCE_MAX),
        Goal(f"{groups} loaded", ours[0] if ours else None, LOAD_SECONDS_MAX, unit=" s"),
    ]
    return Report(
        "Consumer groups",
        HEAD,
        rows,
        note,
        {"commits": medians, "rebalance_ms": rebalance, "loading_seconds": loading},
        [rows[3], rows[6], rows[7]],
        goals,
        Plot("bars", "OffsetCommit on one connection", "commits/s", [f"{in_flight} in flight" for in_flight in medians],
             by_broker({name: [medians[in_flight][name]["per_second"] for in_flight in medians] for name in fast})),
    )  # fmt: skip
