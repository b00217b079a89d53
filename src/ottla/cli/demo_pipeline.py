"""`ottla demo pipeline`: a Spark query aggregates a topic of orders by window and item into a topic of sums.

Everything is real: a complete broker on a free port, a streaming query from the data source `ottla` into its sink, and
a consumer that reads the sums. The demo fails unless every order is in the sums at the end.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ottla import __version__
from ottla.cli.demo_clients import ITEMS, OrderProducer
from ottla.cli.errors import CliError

ORDERS, SALES = "orders", "sales"
PARTITIONS = 2
ORDERS_PER_SECOND = 600
WINDOW_SECONDS = 5
TRIGGER = "1 second"
REFRESH_SECONDS = 0.25
CATCH_UP_SECONDS_MAX = 120.0
ORDER_COLUMNS = "order bigint, customer int, item string, cents bigint"
BAR_WIDTH = 30
FIRST_RESULT_SECONDS_MAX = 120.0
"""Upper limit of the wait for the first sums: the first micro-batch of a session warms up the JVM."""
LOG4J_CONFIG = """status = off
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
rootLogger.level = off
rootLogger.appenderRef.console.ref = console
"""
"""Turns Spark's log off: the demo reports errors itself. Without an appender Spark would use its own config."""
NEXT = """\
Try next:
  docs/spark.md                         the data source: options, formats, benchmarks
  docs/notebooks/spark/pipeline.ipynb   the same step by step, as a notebook\
"""


@dataclass(slots=True)
class Sales:
    """Sums by window and item, from the topic; the latest value of each counts."""

    cells: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    updates: int = 0

    def add(self, value: bytes) -> None:
        fields = json.loads(value)
        self.cells[fields["start"], fields["item"]] = (fields["orders"], fields["cents"])
        self.updates += 1

    @property
    def orders(self) -> int:
        return sum(orders for orders, _ in self.cells.values())

    def latest(self) -> tuple[str, dict[str, tuple[int, int]]]:
        """Return the newest window and the sums of its items."""
        start = max((start for start, _ in self.cells), default="")
        return start, {item: self.cells.get((start, item), (0, 0)) for item in ITEMS}


def pipeline(seconds: float, *, is_plain: bool, is_over: threading.Event) -> None:
    """Run the demo for `seconds`, or until interrupted if 0."""
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError:
        raise CliError(
            "the pipeline demo needs Spark, which is not installed",
            advice="Install it with: pip install 'ottla[spark]'",
        ) from None
    with ExitStack() as stack:
        pipeline_demo = PipelineDemo(stack, _print_plain if is_plain or not sys.stdout.isatty() else _live(stack))
        pipeline_demo.run(seconds, is_over)
        print(pipeline_demo.end(), NEXT, sep="\n", flush=True)


class PipelineDemo:
    """One run of the demo. The exit stack ends everything it starts."""

    def __init__(self, stack: ExitStack, show: Any) -> None:
        from ottla.client import Consumer, TopicPartition
        from ottla.testing import Broker

        self._show = show
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="ottla-demo-")))
        broker = stack.enter_context(Broker())
        self._bootstrap = broker.bootstrap
        for topic in (ORDERS, SALES):
            broker.create_topic(topic, PARTITIONS)
        print(f"Ottla {__version__} at {broker.bootstrap}; starting Spark, which takes some seconds", flush=True)
        self._spark = _session(directory)
        stack.callback(self._spark.stop)
        self._consumer = stack.enter_context(Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"))
        self._consumer.assign([TopicPartition(SALES, partition) for partition in range(PARTITIONS)])
        self._producer = OrderProducer(broker.bootstrap, ORDERS, ORDERS_PER_SECOND)
        stack.callback(self._producer.stop)
        self._query = start_query(self._spark, broker.bootstrap, str(directory / "checkpoint"))
        stack.callback(self._query.stop)
        self._sales = Sales()

    def run(self, seconds: float, is_over: threading.Event) -> None:
        self._producer.start()
        started_at_s = first_s = time.monotonic()
        while not is_over.wait(REFRESH_SECONDS):
            self._read()
            error = self._query.exception()
            if error is not None:
                raise CliError(f"the query failed: {str(error).splitlines()[0]}")
            now_s = time.monotonic()
            if not self._sales.updates:
                first_s = now_s  # the duration starts with the first sums
                if now_s - started_at_s > FIRST_RESULT_SECONDS_MAX:
                    raise CliError(f"Spark produced no sums within {FIRST_RESULT_SECONDS_MAX:g} s")
            self._show(self._producer.produced, self._sales, now_s - started_at_s, _batch_ms(self._query))
            if seconds and now_s - first_s >= seconds:
                return

    def _read(self) -> None:
        while records := self._consumer.poll(0):
            for record in records:
                self._sales.add(record.value)

    def end(self) -> str:
        """Stop producing, wait until every order is in the sums, and return a summary."""
        self._producer.stop()
        produced = self._producer.produced
        deadline_s = time.monotonic() + CATCH_UP_SECONDS_MAX
        while self._sales.orders < produced and time.monotonic() < deadline_s and self._query.isActive:
            self._read()
            time.sleep(REFRESH_SECONDS)
        self._show(produced, self._sales, -1.0, None)
        if self._sales.orders != produced:
            raise CliError(f"{produced:,} orders were produced, but {self._sales.orders:,} are in the sums")
        windows = len({start for start, _ in self._sales.cells})
        return (
            f"\n{produced:,} orders in topic {ORDERS!r} became {self._sales.updates:,} sums of {windows} windows "
            f"in topic {SALES!r}: every order was counted exactly once."
        )


def start_query(spark: Any, bootstrap: str, checkpoint: str) -> Any:
    """Start the query: orders and cents by window and item. Every micro-batch writes all sums again."""
    from pyspark.sql import functions as f

    orders = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", ORDERS)
        .option("startingOffsets", "earliest")
        .option("valueFormat", "json")
        .option("valueSchema", ORDER_COLUMNS)
        .load()
    )
    sums = (
        orders.groupBy(f.window("timestamp", f"{WINDOW_SECONDS} seconds"), "value.item")
        .agg(f.count("*").alias("orders"), f.sum("value.cents").alias("cents"))
        .select(
            f.col("item").alias("key"),
            f.date_format("window.start", "HH:mm:ss").alias("start"),
            "item",
            "orders",
            "cents",
        )
    )
    return (
        sums.writeStream.format("ottla")
        .outputMode("complete")
        .trigger(processingTime=TRIGGER)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", SALES)
        .option("valueFormat", "json")
        .option("checkpointLocation", checkpoint)
        .start()
    )


def _session(directory: Path) -> Any:
    import ottla.spark

    log = directory / "log4j2.properties"
    log.write_text(LOG4J_CONFIG)
    config = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log}",
    }
    return ottla.spark.session("ottla-demo", master="local[2]", config=config)


def _batch_ms(query: Any) -> int | None:
    """Return the duration of the last micro-batch."""
    progress = query.lastProgress
    if progress is None:
        return None
    took = progress["durationMs"].get("triggerExecution")
    return None if took is None else int(took)


def _print_plain(produced: int, sales: Sales, at_s: float, batch_ms: int | None) -> None:
    """Print a line every two seconds."""
    if at_s < 0 or round(at_s / REFRESH_SECONDS) % round(2 / REFRESH_SECONDS):
        return
    start, items = sales.latest()
    sums = "  ".join(f"{item} {cents / 100:,.0f}" for item, (_, cents) in items.items())
    took = "" if batch_ms is None else f"  micro-batch {batch_ms} ms"
    print(f"{at_s:5.1f} s  in {produced:,}  in sums {sales.orders:,}{took}  window {start or '-'}: {sums}", flush=True)


def _live(stack: ExitStack) -> Any:
    from rich.live import Live

    live = stack.enter_context(Live(refresh_per_second=8))

    def show(produced: int, sales: Sales, at_s: float, batch_ms: int | None) -> None:
        live.update(_render(produced, sales, batch_ms))

    return show


def _render(produced: int, sales: Sales, batch_ms: int | None) -> Any:
    from rich.table import Table

    start, items = sales.latest()
    most = max((cents for _, cents in items.values()), default=0) or 1
    table = Table(
        title=f"window of {WINDOW_SECONDS} s from {start or '-'}", title_justify="left", caption_justify="left"
    )
    for name in ("item", "orders", "sum", ""):
        table.add_column(name, justify="right" if name in ("orders", "sum") else "left")
    for row in _rows(items, most):
        table.add_row(*row)
    took = "" if batch_ms is None else f" · micro-batch {batch_ms} ms"
    table.caption = f"{produced:,} orders in · {sales.orders:,} in sums · {sales.updates:,} updates{took}"
    return table


def _rows(items: dict[str, tuple[int, int]], most: int) -> Iterator[tuple[str, str, str, str]]:
    for item, (orders, cents) in items.items():
        yield item, f"{orders:,}", f"{cents / 100:,.2f}", "█" * (BAR_WIDTH * cents // most)
