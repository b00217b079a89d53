"""`ottla demo`: a broker, traffic, and a group of consumers of which one is killed, watched while it happens.

Nothing is staged: the broker is a whole one on a free port, the consumers are processes, the one that dies gets SIGKILL, and everything
shown is asked of the broker with `ottla.client`.
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
"""When, as parts of the whole, somebody dies and somebody new comes."""
CYCLE_SECONDS = 30.0
"""How long a whole is where no end was set."""
REFRESH_SECONDS = 0.25
RATE_SECONDS = 2.0
"""Rates are averages over the last so many seconds."""
CATCH_UP_SECONDS_MAX = 10.0
BROKER = {
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "offsets.topic.num.partitions": "1",
}
NEXT = """\
Try next:
  ottla start --ephemeral        a broker of your own at 127.0.0.1:9092, for any Kafka client
  ottla --help                   all the words: topics, producing, consuming, groups and their lag
  docs/quick-start.md            the same by hand in five minutes: a group, a kill, a test\
"""


def register(root: typer.Typer) -> None:
    command(root, "demo")(demo)


class Scenario(StrEnum):
    GROUP = "group"
    PIPELINE = "pipeline"


def demo(
    scenario: Annotated[
        Scenario, typer.Argument(help="group: consumers of which one is killed; pipeline: Spark adds up orders.")
    ] = Scenario.GROUP,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, help="How long; 0 goes on until Ctrl-C.")
    ] = DEFAULT_SECONDS,
    plain: Annotated[
        bool, typer.Option("--plain", help="Lines of text instead of a picture, as where there is no terminal.")
    ] = False,
) -> None:
    """Watch a broker, traffic, and a group of consumers of which one is killed, or a pipeline on Spark. Nothing is left behind."""
    if scenario is Scenario.PIPELINE:
        from ottla.cli.demo_pipeline import pipeline

        with _stop_on_signal() as is_over:
            pipeline(seconds, is_plain=plain, is_over=is_over)
        return
    with ExitStack() as stack:
        is_over = stack.enter_context(_stop_on_signal())
        show = GroupDemo(stack, PlainView() if plain or not sys.stdout.isatty() else LiveView())
        show.run(seconds, is_over)
        show.end(is_interrupted=is_over.is_set())
    print(show.summary(), NEXT, sep="\n", flush=True)


@contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """Set by the first Ctrl-C or SIGTERM; a second one is as rude as ever."""
    asked = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class GroupDemo:
    """One performance; all that it starts is ended by the stack."""

    def __init__(self, stack: ExitStack, view: View) -> None:
        from ottla.client import Admin
        from ottla.testing import Broker

        broker = stack.enter_context(Broker(config=BROKER))
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
        self._taken_over_after_s: float | None = None
        view.title = f"Ottla {__version__} at {broker.bootstrap}"
        self._view = stack.enter_context(view)

    def run(self, seconds: float, is_over: threading.Event) -> None:
        for name in NAMES:
            self._start_consumer(name)
        self._producer.start()
        self._view.log(
            0, f"{len(NAMES)} consumers start, and {ORDERS_PER_SECOND} orders a second go into {PARTITIONS} partitions"
        )
        actions = _schedule(seconds)
        began_s = time.monotonic()
        due_s, action = next(actions)
        while not is_over.wait(REFRESH_SECONDS):
            self._now_s = time.monotonic() - began_s
            if seconds and self._now_s >= seconds:
                return
            self._take_snapshot()
            if self._now_s >= due_s and self._change_log.members:  # who is to be missed must have been there
                if action == "kill":
                    self._kill_one()
                else:
                    self._start_consumer(_next_name(self._consumers))
                due_s, action = next(actions)

    def end(self, *, is_interrupted: bool) -> None:
        """Stop the traffic and, if there is time, let the group catch up."""
        self._producer.stop()
        if not is_interrupted:
            self._view.log(self._now_s, "no more orders")
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
        lines = [
            f"\n{last.produced:,} orders were produced and {last.handled:,} handled, each at least once; {last.lag:,} are left."
        ]
        if killed:
            died = "One consumer was killed" if killed == 1 else f"{killed} consumers were killed"
            lines.append(f"{died}; partitions changed hands {self._change_log.moved} times.")
        if self._taken_over_after_s is not None:
            lines.append(f"The last one's work went on elsewhere after {self._taken_over_after_s:.1f} s.")
        return "\n".join(lines)

    def _take_snapshot(self, *, is_shown: bool = True) -> None:
        snapshot = take_snapshot(self._admin, TOPIC, GROUP, PARTITIONS, self._now_s)
        self._snapshots.append(snapshot)
        while self._snapshots[0].at_s < snapshot.at_s - RATE_SECONDS:
            self._snapshots.popleft()
        for sentence in self._change_log.follow(snapshot):
            self._view.log(snapshot.at_s, sentence)
            if "is no longer" in sentence and self._killed_at_s is not None:
                self._taken_over_after_s, self._killed_at_s = snapshot.at_s - self._killed_at_s, None
        if not is_shown:  # the last word is for the summary; the picture stays as it was while all were there
            return
        first = self._snapshots[0]
        passed_s = max(REFRESH_SECONDS, snapshot.at_s - first.at_s)
        self._view.show(
            snapshot, (snapshot.produced - first.produced) / passed_s, (snapshot.handled - first.handled) / passed_s
        )

    def _start_consumer(self, name: str) -> None:
        if len(self._consumers) >= len(NAMES):
            self._view.log(self._now_s, f"a new consumer starts: {name}")
        self._consumers.append(ConsumerProcess.start(name, self._bootstrap, TOPIC, GROUP))

    def _kill_one(self) -> None:
        victim = next((consumer for consumer in reversed(self._consumers) if not consumer.is_killed), None)
        if victim is not None:
            victim.kill()
            self._killed_at_s = self._now_s
            self._view.log(self._now_s, f"kill -9 {victim.pid}: {victim.name} dies without a word")

    def _stop_consumers(self) -> None:
        living = [consumer for consumer in self._consumers if consumer.process.poll() is None]
        for consumer in living:
            consumer.request_leave()
        for consumer in living:
            consumer.wait()


def _schedule(seconds: float) -> Iterator[tuple[float, str]]:
    """When somebody dies and when somebody comes: once where there is an end, again and again where there is none."""
    whole, began = seconds or CYCLE_SECONDS, 0.0
    while True:
        yield began + whole * KILL_AT, "kill"
        yield began + whole * REPLACE_AT, "replace"
        began += whole


def _next_name(consumers: list[ConsumerProcess]) -> str:
    names = ("dan", "eve", "fay", "gus", "hal", "ivy")
    number = len(consumers) - len(NAMES)
    return names[number % len(names)] + ("" if number < len(names) else str(number // len(names) + 1))
