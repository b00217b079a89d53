"""Consumer groups: commits on one connection, the rebalance of a large group, and a coordinator that loads many groups."""

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence

from bench import frames, group_frames
from bench.comparison import Log, Results, times
from bench.frames import BrokerError, Connection
from bench.loads import Figures, median_figures, percentile
from bench.peers import BrokerProcess, cpu_seconds
from bench.plot import Plot
from bench.report import HEAD, Goal, Report, RunSize, by_broker, row, rows_of

SETTINGS = {"group.initial.rebalance.delay.ms": "1000"}
"""Long enough for all members to come before the first rebalance, which is not the one that is measured."""
IN_FLIGHT = 5
MEMBERS, PARTITIONS = 200, 1000
OFFSETS_A_GROUP = 10
FILLERS = 100
READY_SECONDS_MAX = 60.0
COMMIT_RATE_MIN, COMMIT_CPU_MAX, REBALANCE_MAX, LOAD_SECONDS_MAX = 3.0, 0.4, 1.0, 2.0


def until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not ready():
        if time.monotonic() > deadline:
            raise BrokerError(what)
        time.sleep(0.02)


def make_coordinator(broker: BrokerProcess, group: str, topic: str) -> None:
    """The coordinators' topic is made when somebody first asks."""
    connection = Connection(broker.port)
    frames.create_topic(connection, topic, partitions=OFFSETS_A_GROUP)

    def commits() -> bool:
        found = group_frames.find_coordinator_error(connection.request(group_frames.find_coordinator(group)))
        commit = group_frames.offset_commit(group, topic, 1)
        return found == 0 and group_frames.offset_commit_error(connection.request(commit), topic) == 0

    until(commits, f"{broker.name} takes no commits")
    connection.close()


def commit(broker: BrokerProcess, group: str, topic: str, seconds: float, in_flight: int) -> Figures:
    connection, before, request = (
        Connection(broker.port),
        cpu_seconds(broker.pid),
        group_frames.offset_commit(group, topic, 7),
    )
    latencies: list[float] = []
    sent: list[float] = []
    began = time.perf_counter()
    while (now := time.perf_counter()) < began + seconds:
        while len(sent) < in_flight:
            sent.append(time.perf_counter())
            connection.send(request)
        response = connection.receive()
        latencies.append(time.perf_counter() - sent.pop(0))
        if group_frames.offset_commit_error(response, topic):
            raise BrokerError(f"{broker.name} refused a commit")
    took = now - began
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
    """A group of raw members, each with its own connection, which rejoin together as often as they are told to."""

    def __init__(self, broker: BrokerProcess, group: str, topic: str) -> None:
        self._group, self._topic = group, topic
        self._connections = [Connection(broker.port) for _ in range(MEMBERS)]
        self._names = [""] * MEMBERS

    def rebalance(self, note: bytes) -> float:
        """Seconds from the first JoinGroup to the last response to a SyncGroup. `note` is what is new, so that all must join again."""
        began = time.perf_counter()
        metadata = group_frames.subscription(self._topic, note)
        joined = self._join(metadata)
        if any(one.error == group_frames.MEMBER_ID_REQUIRED for one in joined):
            self._names = [one.member for one in joined]
            joined = self._join(metadata)
        if any(one.error for one in joined) or len({one.generation for one in joined}) > 1:
            raise BrokerError(f"members could not join: {joined[0]}")
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
                raise BrokerError(f"a member could not sync: error {error}")
        return time.perf_counter() - began

    def _join(self, metadata: bytes) -> list[group_frames.Joined]:
        for connection, name in zip(self._connections, self._names, strict=True):
            connection.send(group_frames.join_group(self._group, name, metadata))
        return [group_frames.read_joined(connection.receive()) for connection in self._connections]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def fill_groups(broker: BrokerProcess, topic: str, count: int) -> None:
    """From many connections, as a broker may response a connection's commits one by one and take its time for each."""
    connections = [Connection(broker.port) for _ in range(FILLERS)]
    for first in range(0, count, FILLERS):
        using = connections[: min(FILLERS, count - first)]
        for index, connection in enumerate(using):
            connection.send(
                group_frames.offset_commit(f"loaded-{first + index}", topic, first + index, partitions=OFFSETS_A_GROUP)
            )
        if any(group_frames.offset_commit_error(connection.receive(), topic) for connection in using):
            raise BrokerError(f"{broker.name} refused a commit")
    for connection in connections:
        connection.close()


def load_seconds(broker: BrokerProcess, count: int) -> tuple[float, float]:
    """After a restart: until every group's offsets are answered, and the slowest response to somebody else meanwhile, in seconds."""
    broker.stop()
    broker.start()
    began, slowest = time.perf_counter(), 0.0
    connection, other = Connection(broker.port), Connection(broker.port)
    for number in range(0, count, max(count // 500, 1)):
        while True:
            asked = time.perf_counter()
            other.request(frames.api_versions())
            slowest = max(slowest, time.perf_counter() - asked)
            error = group_frames.offset_fetch_error(
                *connection.request_sized(group_frames.offset_fetch(f"loaded-{number}"))
            )
            if not error:
                break
            if error != group_frames.LOADING and time.perf_counter() - began > READY_SECONDS_MAX:
                raise BrokerError(f"{broker.name} does not load its groups: error {error}")
    connection.close()
    other.close()
    return time.perf_counter() - began, slowest


def run(broker_types: Sequence[type[BrokerProcess]], run_size: RunSize, log: Log) -> Report:
    rounds: dict[str, dict[str, list[Figures]]] = {"1": {}, "5": {}}
    rebalances: dict[str, list[float]] = {}
    loading: dict[str, tuple[float, float]] = {}
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(kind(settings=SETTINGS)) for kind in broker_types]
        members = {
            broker.name: stack.enter_context(contextlib.closing(Members(broker, "large", "spread")))
            for broker in brokers
        }
        for broker in brokers:
            make_coordinator(broker, "committer", "committed")
            for in_flight in (1, IN_FLIGHT):
                commit(broker, "committer", "committed", run_size.warm_seconds, in_flight)
            members[broker.name].rebalance(b"first")
        for turn in range(run_size.rounds):
            for broker in brokers:
                for in_flight in (1, IN_FLIGHT):
                    figures = commit(broker, "committer", "committed", run_size.round_seconds, in_flight)
                    rounds[str(in_flight)].setdefault(broker.name, []).append(figures)
                rebalances.setdefault(broker.name, []).append(members[broker.name].rebalance(b"round %d" % turn))
    for kind in broker_types:
        with kind(settings=SETTINGS) as broker:  # a fresh one, which has no other commits to read
            make_coordinator(broker, "committer", "committed")
            fill_groups(broker, "committed", run_size.loaded_groups)
            loading[broker.name] = load_seconds(broker, run_size.loaded_groups)
    medians: dict[str, Results] = {
        kind: {name: median_figures(runs) for name, runs in by_name.items()} for kind, by_name in rounds.items()
    }
    rebalance = {name: statistics.median(seconds) * 1e3 for name, seconds in rebalances.items()}
    for name, figures in medians[str(IN_FLIGHT)].items():
        log(
            f"{name}: {figures['per_second']:,.0f} commits/s, CPU {figures['cpu_us']:.0f} µs; rebalance of {MEMBERS} members "
            f"{rebalance[name]:,.0f} ms; {run_size.loaded_groups:,} groups loaded in {loading[name][0]:.2f} s"
        )
    return report(medians, rebalance, loading, run_size)


def report(
    medians: dict[str, Results], rebalance: dict[str, float], loading: dict[str, tuple[float, float]], run_size: RunSize
) -> Report:
    rows = []
    for kind, results in medians.items():
        what = f"OffsetCommit, {kind} in flight"
        rows += rows_of([(f"{what}: commits/s", "per_second", ",.0f", ""), (f"{what}: p99", "p99_us", ",.0f", " µs"),
                         (f"{what}: broker's CPU", "cpu_us", ",.0f", " µs")], results)  # fmt: skip
    rows.append(row(f"Rebalance of {MEMBERS} members, {PARTITIONS:,} partitions", rebalance, ",.0f", " ms"))
    groups = f"{run_size.loaded_groups:,} groups × {OFFSETS_A_GROUP} offsets"
    rows.append(row(f"{groups} loaded after a restart", {name: one[0] for name, one in loading.items()}, ".2f", " s"))
    rows.append(
        row(
            "the slowest response to somebody else meanwhile",
            {name: one[1] * 1e3 for name, one in loading.items()},
            ".1f",
            " ms",
        )
    )
    note = (
        f"One connection commits one partition's offset, over and over: medians of {run_size.rounds} rounds of {run_size.round_seconds:g} s, "
        f"alternating, after {run_size.warm_seconds:g} s to warm up. The rebalance is eager, by raw members in one process, from the first "
        "JoinGroup to the last response to a SyncGroup, medians of as many. Loading is from the first response of the restarted broker until "
        "one in twenty of the groups was asked for its offsets and has told them."
    )
    fast = medians[str(IN_FLIGHT)]
    ours = loading.get("ottla")
    both = rebalance.get("kafka"), rebalance.get("ottla")
    return Report(
        "Consumer groups",
        HEAD,
        rows,
        note,
        {"commits": medians, "rebalance_ms": rebalance, "loading_seconds": loading},
        [rows[3], rows[6], rows[7]],
        [
            Goal("OffsetCommit, 5 in flight: rate to Kafka's", times(fast, "per_second"), COMMIT_RATE_MIN, at_most=False),
            Goal("OffsetCommit, 5 in flight: CPU to Kafka's", times(fast, "cpu_us"), COMMIT_CPU_MAX),
            Goal(f"Rebalance of {MEMBERS} members to Kafka's", both[1] / both[0] if both[0] and both[1] else None, REBALANCE_MAX),
            Goal(f"{groups} loaded", ours[0] if ours else None, LOAD_SECONDS_MAX, unit=" s"),
        ],
        Plot("bars", "OffsetCommit on one connection", "commits/s", [f"{kind} in flight" for kind in medians],
             by_broker({name: [medians[kind][name]["per_second"] for kind in medians] for name in fast})),
    )  # fmt: skip
