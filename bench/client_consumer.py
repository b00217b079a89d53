"""Consuming records of 100 bytes from one partition: `ottla.client`, by record and in columns, beside kafka-python,
aiokafka and confluent-kafka. All read the same topic of the same broker in one run, each in its own process after a
warm-up.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.client_comparison import HEAD, Rates, Work, alternate_rounds, reference_rate, rows, run_client
from bench.comparison import Log
from bench.fill_topic import fill
from bench.peers import BrokerProcess
from bench.report import Goal, Report, RunSize, quotient

RECORD_SIZE = 100
VALUE = bytes(index * 31 & 0xFF for index in range(RECORD_SIZE))
RECORDS_MIN = 100_000
"""Fewer are read too quickly to measure."""
OURS = ("ottla, for", "ottla, async for", "ottla, poll", "ottla, columns", "ottla, async columns")


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - cpu


def read_kafka_python(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    import kafka

    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    next(consumer)
    consumer.seek(partition, 0)

    def work() -> None:
        for index, _ in enumerate(consumer, 1):
            if index == records:
                return

    found = _timed(work)
    consumer.close()
    return found


def read_confluent(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.consume(1, 10)
    consumer.seek(TopicPartition(topic, 0, 0))

    def work() -> None:
        count = 0
        while count < records:
            for message in consumer.consume(500, 5):
                message.value()
                count += 1

    found = _timed(work)
    consumer.close()
    return found


def _run_async(work: "Callable[[], Any]") -> Any:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())


def read_aiokafka(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    import aiokafka

    async def work() -> tuple[float, float]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        partition = aiokafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.getone()
        consumer.seek(partition, 0)
        started, cpu, count = time.perf_counter(), time.process_time(), 0
        async for _ in consumer:
            count += 1
            if count == records:
                break
        found = time.perf_counter() - started, time.process_time() - cpu
        await consumer.stop()
        return found

    found: tuple[float, float] = _run_async(work)
    return found


def read_ottla(method: str) -> Work:
    def read(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
        from ottla.client import Consumer, TopicPartition

        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.poll(10, max_records=1)
            consumer.seek(partition, 0)

            def work() -> None:
                count = 0
                if method == "columns":
                    for batch in consumer.batches():
                        count += len(batch.values)
                        if count >= records:
                            return
                elif method == "poll":
                    while count < records:
                        count += len(consumer.poll(5))
                else:
                    for _ in consumer:
                        count += 1
                        if count == records:
                            return

            return _timed(work)

    return read


def read_ottla_async(method: str) -> Work:
    async def work(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
        from ottla.client import AsyncConsumer, TopicPartition

        async with AsyncConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.poll(10, max_records=1)
            consumer.seek(partition, 0)
            started, cpu, count = time.perf_counter(), time.process_time(), 0
            if method == "columns":
                async for batch in consumer.batches():
                    count += len(batch.values)
                    if count >= records:
                        break
            else:
                async for _ in consumer:
                    count += 1
                    if count == records:
                        break
            return time.perf_counter() - started, time.process_time() - cpu

    def read(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
        found: tuple[float, float] = _run_async(lambda: work(bootstrap, topic, records))
        return found

    return read


READERS: dict[str, Work] = {
    "kafka-python": read_kafka_python,
    "aiokafka": read_aiokafka,
    "confluent-kafka": read_confluent,
    "ottla, for": read_ottla("for"),
    "ottla, async for": read_ottla_async("for"),
    "ottla, poll": read_ottla("poll"),
    "ottla, columns": read_ottla("columns"),
    "ottla, async columns": read_ottla_async("columns"),
}


def run(brokers: Sequence[BrokerProcess], run_size: RunSize, log: Log) -> Report:
    """Measure all clients against each broker, alternating."""
    records = max(run_size.perf_records // 3, RECORDS_MIN)
    rates: Rates = {}
    for broker in brokers:
        topic = f"consumed-{time.time_ns()}"
        fill(broker.bootstrap, topic, 1, itertools.repeat({"value": VALUE, "partition": 0}, records))
        rates[broker.name] = alternate_rounds(
            "bench.client_consumer", list(READERS), broker, topic, records, run_size, log
        )
    return _report(rates, records)


def _report(rates: Rates, records: int) -> Report:
    goals = []
    for broker, clients in rates.items():
        reference = reference_rate(clients)
        by_record = max(clients[client]["records_per_second"] for client in OURS[:2])
        columns = max(clients[client]["records_per_second"] for client in OURS[3:])
        goals += [
            Goal(f"consuming record by record ({broker})", quotient(by_record, reference), 1.0, at_most=False),
            Goal(f"consuming as columns ({broker})", quotient(columns, reference), 5.0, at_most=False),
        ]
    measurements = {"records": records, "record_bytes": RECORD_SIZE, "clients": rates}
    note = (
        "One partition, records of 100 bytes in batches of 16 kB; each client in its own process, medians of all "
        "rounds. The last column is relative to the faster of kafka-python and aiokafka."
    )
    return Report("Consuming", HEAD, rows(rates), note, measurements, goals=goals)


if __name__ == "__main__":
    run_client(READERS)
