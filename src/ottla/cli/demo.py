"""`ottla demo`: a broker, a producer and a consumer group that loses a member, shown live.

Everything is real: a complete broker on a free port, consumers in their own processes, one killed with SIGKILL, and
all figures read from the broker with `ottla.client`.
"""

import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from types import FrameType
from typing import Annotated

import typer

from ottla import __version__
from ottla.cli.command import command
from ottla.cli.demo_clients import SESSION_TIMEOUT_MS, ConsumerProcess, OrderProducer
from ottla.cli.demo_view import ChangeLog, GroupSnapshot, LiveView, PlainView, View, take_snapshot

DEFAULT_SECONDS = 30.0
TOPIC, GROUP = "orders", "warehouse"
PARTITIONS = 6
NAMES = ("ada", "bob", "cleo")
ORDERS_PER_SECOND = 600
KILL_AT, REPLACE_AT = 0.3, 0.65
"""Fractions of the duration after which a consumer is killed and a new one is started."""
CYCLE_SECONDS = 30.0
"""Duration of a kill-and-replace cycle if the demo runs until Ctrl-C."""
REFRESH_SECONDS = 0.25
RATE_SECONDS = 2.0
"""Rates are averages over this window."""
CATCH_UP_SECONDS_MAX = 10.0
BROKER = {
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "offsets.topic.num.partitions": "1",
}
NEXT = """\
Try next:
  ottla start --ephemeral        a broker on 127.0.0.1:9092 for any Kafka client
  ottla --help                   all commands: topics, producing, consuming, groups and lag
  docs/quick-start.md            the same by hand in five minutes, and a test\
"""


def register(root: typer.Typer) -> None:
    command(root, "demo")(demo)


class Scenario(StrEnum):
    GROUP = "group"
    PIPELINE = "pipeline"


def demo(
    scenario: Annotated[
        Scenario,
        typer.Argument(
            metavar="SCENARIO", help="group: one of three consumers is killed; pipeline: Spark aggregates orders."
        ),
    ] = Scenario.GROUP,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, help="Duration; 0 runs until Ctrl-C.")
    ] = DEFAULT_SECONDS,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print lines of text instead of a live view, as without a terminal.")
    ] = False,
) -> None:
    """Watch a consumer group lose a member and rebalance, or a Spark pipeline. All data is deleted at the end."""
    if scenario is Scenario.PIPELINE:
        from ottla.cli.demo_pipeline import pipeline

        with _stop_on_signal() as is_over:
            pipeline(seconds, is_plain=plain, is_over=is_over)
        return
    with ExitStack() as stack:
        is_over = stack.enter_context(_stop_on_signal())
        group_demo = GroupDemo(stack, PlainView() if plain or not sys.stdout.isatty() else LiveView())
        group_demo.run(seconds, is_over)
        group_demo.end(is_interrupted=is_over.is_set())
    print(group_demo.summary(), NEXT, sep="\n", flush=True)


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """Provide an event that the first Ctrl-C or SIGTERM sets; the second has its usual effect."""
    is_over = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        is_over.set()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield is_over
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class GroupDemo:
    """One run of the demo. The exit stack ends everything it starts."""

    def __init__(self, stack: ExitStack, view: View) -> None:
        from ottla.client import Admin
        from ottla.testing import Broker

        broker = stack.enter_context(Broker(configs=BROKER))
        broker.create_topic(TOPIC, PARTITIONS)
        self._bootstrap = broker.bootstrap
        self._admin = stack.enter_context(Admin(bootstrap_servers=broker.bootstrap))
        self._consumers: list[ConsumerProcess] = []
        stack.callback(self._stop_consumers)
        self._producer = OrderProducer(broker.bootstrap, TOPIC, ORDERS_PER_SECOND)
        stack.callback(self._producer.stop)
        self._change_log = ChangeLog()
        self._snapshots: deque[GroupSnapshot] = deque()
        self._now_s = 0.0
        self._killed_at_s: float | None = None
        self._reassigned_after_s: float | None = None
        view.title = f"Ottla {__version__} at {broker.bootstrap}"
        self._view = stack.enter_context(view)

    def run(self, seconds: float, is_over: threading.Event) -> None:
        for name in NAMES:
            self._start_consumer(name)
        self._producer.start()
        self._view.log(
            0, f"starting {len(NAMES)} consumers and producing {ORDERS_PER_SECOND} orders/s to {PARTITIONS} partitions"
        )
        actions = _schedule(seconds)
        started_at_s = time.monotonic()
        due_s, action = next(actions)
        while not is_over.wait(REFRESH_SECONDS):
            self._now_s = time.monotonic() - started_at_s
            if seconds and self._now_s >= seconds:
                return
            self._take_snapshot()
            if self._now_s >= due_s and self._change_log.members:  # after the first rebalance
                if action == "kill":
                    self._kill_one()
                else:
                    self._start_consumer(_next_name(self._consumers))
                due_s, action = next(actions)

    def end(self, *, is_interrupted: bool) -> None:
        """Stop producing and, unless interrupted, wait until the group has caught up."""
        self._producer.stop()
        if not is_interrupted:
            self._view.log(self._now_s, "producer stopped")
            pause = threading.Event()
            for _ in range(int(CATCH_UP_SECONDS_MAX / REFRESH_SECONDS)):
                self._now_s += REFRESH_SECONDS
                self._take_snapshot()
                if self._snapshots[-1].lag == 0 and self._snapshots[-1].state == "Stable":
                    break
                pause.wait(REFRESH_SECONDS)
        self._stop_consumers()
        self._take_snapshot(is_shown=False)

    def summary(self) -> str:
        last = self._snapshots[-1]
        killed = sum(consumer.is_killed for consumer in self._consumers)
        lines = [f"\n{last.produced:,} orders produced, {last.processed:,} processed at least once, {last.lag:,} left."]
        if killed:
            consumers = "One consumer was killed" if killed == 1 else f"{killed} consumers were killed"
            lines.append(f"{consumers}; partitions were reassigned {self._change_log.moved} times.")
        if self._reassigned_after_s is not None:
            lines.append(
                f"The partitions of the last one killed were reassigned after {self._reassigned_after_s:.1f} s."
            )
        return "\n".join(lines)

    def _take_snapshot(self, *, is_shown: bool = True) -> None:
        snapshot = take_snapshot(self._admin, TOPIC, GROUP, PARTITIONS, self._now_s)
        self._snapshots.append(snapshot)
        while self._snapshots[0].at_s < snapshot.at_s - RATE_SECONDS:
            self._snapshots.popleft()
        for sentence in self._change_log.update(snapshot):
            self._view.log(snapshot.at_s, sentence)
            if " is no longer in the group" in sentence and self._killed_at_s is not None:
                self._reassigned_after_s, self._killed_at_s = snapshot.at_s - self._killed_at_s, None
        if not is_shown:  # keep the view as it was before the consumers were stopped
            return
        first = self._snapshots[0]
        passed_s = max(REFRESH_SECONDS, snapshot.at_s - first.at_s)
        self._view.show(
            snapshot, (snapshot.produced - first.produced) / passed_s, (snapshot.processed - first.processed) / passed_s
        )

    def _start_consumer(self, name: str) -> None:
        if len(self._consumers) >= len(NAMES):
            self._view.log(self._now_s, f"starting a new consumer: {name}")
        self._consumers.append(ConsumerProcess.start(name, self._bootstrap, TOPIC, GROUP))

    def _kill_one(self) -> None:
        victim = next((consumer for consumer in reversed(self._consumers) if not consumer.is_killed), None)
        if victim is not None:
            victim.kill()
            self._killed_at_s = self._now_s
            self._view.log(self._now_s, f"kill -9 {victim.pid}: killed {victim.name}")

    def _stop_consumers(self) -> None:
        running = [consumer for consumer in self._consumers if consumer.process.poll() is None]
        for consumer in running:
            consumer.request_leave()
        for consumer in running:
            consumer.wait()


def _schedule(seconds: float) -> Iterator[tuple[float, str]]:
    """Yield times and actions: kill and replace a consumer. Repeats every cycle."""
    duration, start = seconds or CYCLE_SECONDS, 0.0
    while True:
        yield start + duration * KILL_AT, "kill"
        yield start + duration * REPLACE_AT, "replace"
        start += duration


def _next_name(consumers: list[ConsumerProcess]) -> str:
    names = ("dan", "eve", "fay", "gus", "hal", "ivy")
    number = len(consumers) - len(NAMES)
    return names[number % len(names)] + ("" if number < len(names) else str(number // len(names) + 1))
