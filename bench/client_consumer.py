"""Consuming records of 100 bytes from one partition: `ottla.client` record by record and as columns, beside kafka-python, aiokafka and
confluent-kafka, on the same topic of the same broker in one run. Each client has a process of its own, warm before it is measured.
"""

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.peers import BrokerProcess
from bench.report import Effort, Goal, Report, quotient, ratio

RECORD_SIZE = 100
RECORDS_MIN = 100_000
"""Fewer are read before the first of them can be told from the last."""
FILL_SECONDS_MAX = 300
CLIENT_SECONDS_MAX = 120
OURS = ("ottla, for", "ottla, async for", "ottla, poll", "ottla, columns", "ottla, async columns")
JUDGES = ("kafka-python", "aiokafka")
"""The bars are to the better of these: they are written in Python too."""

Read = Callable[[str, str, int], tuple[float, float]]
"""Bootstrap address, topic and how many records; returned are seconds and CPU seconds."""


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - cpu


def read_kafka_python(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    import kafka  # type: ignore[import-untyped]

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
    import aiokafka  # type: ignore[import-untyped]

    async def work() -> tuple[float, float]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
        await consumer.start()
        partition = aiokafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.getone()
        consumer.seek(partition, 0)
        began, cpu, count = time.perf_counter(), time.process_time(), 0
        async for _ in consumer:
            count += 1
            if count == records:
                break
        found = time.perf_counter() - began, time.process_time() - cpu
        await consumer.stop()
        return found

    found: tuple[float, float] = _run_async(work)
    return found


def read_ottla(kind: str) -> Read:
    def read(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
        from ottla.client import Consumer, TopicPartition

        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.poll(10, max_records=1)
            consumer.seek(partition, 0)

            def work() -> None:
                count = 0
                if kind == "columns":
                    for batch in consumer.batches():
                        count += len(batch.values)
                        if count >= records:
                            return
                elif kind == "poll":
                    while count < records:
                        count += len(consumer.poll(5))
                else:
                    for _ in consumer:
                        count += 1
                        if count == records:
                            return

            return _timed(work)

    return read


def read_ottla_async(kind: str) -> Read:
    async def work(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
        from ottla.client import AsyncConsumer, TopicPartition

        async with AsyncConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.poll(10, max_records=1)
            consumer.seek(partition, 0)
            began, cpu, count = time.perf_counter(), time.process_time(), 0
            if kind == "columns":
                async for batch in consumer.batches():
                    count += len(batch.values)
                    if count >= records:
                        break
            else:
                async for _ in consumer:
                    count += 1
                    if count == records:
                        break
            return time.perf_counter() - began, time.process_time() - cpu

    def read(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
        found: tuple[float, float] = _run_async(lambda: work(bootstrap, topic, records))
        return found

    return read


READERS: dict[str, Read] = {
    "kafka-python": read_kafka_python,
    "aiokafka": read_aiokafka,
    "confluent-kafka": read_confluent,
    "ottla, for": read_ottla("for"),
    "ottla, async for": read_ottla_async("for"),
    "ottla, poll": read_ottla("poll"),
    "ottla, columns": read_ottla("columns"),
    "ottla, async columns": read_ottla_async("columns"),
}


def fill(bootstrap: str, topic: str, records: int) -> None:
    """Values of 100 bytes, no keys, in batches of 16 kB as Kafka's producer makes them."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "batch.size": 16_384, "queue.buffering.max.messages": 100_000})
    value = bytes(index * 31 & 0xFF for index in range(RECORD_SIZE))
    deadline = time.monotonic() + FILL_SECONDS_MAX
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
                if time.monotonic() > deadline:
                    raise
    if producer.flush(FILL_SECONDS_MAX):
        raise RuntimeError(f"the topic could not be filled within {FILL_SECONDS_MAX} s")


def measure(client: str, bootstrap: str, topic: str, records: int) -> dict[str, float]:
    """In a process of its own: records a second, CPU of the client for each, and its peak of memory."""
    command = [sys.executable, "-m", "bench.client_consumer", client, bootstrap, topic, str(records)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CLIENT_SECONDS_MAX)
    if done.returncode:
        raise RuntimeError(f"{client}: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(brokers: Sequence[BrokerProcess], effort: Effort, say: Callable[[str], None]) -> Report:
    """All clients against each broker, alternating."""
    records = max(effort.perf_records // 3, RECORDS_MIN)
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for broker in brokers:
        topic = f"consumed-{time.time_ns()}"
        fill(broker.bootstrap, topic, records)
        rounds: dict[str, list[dict[str, float]]] = {client: [] for client in READERS}
        for number in range(effort.perf_rounds):
            for client, found in rounds.items():
                found.append(measure(client, broker.bootstrap, topic, records))
                say(f"{broker.name}: {client}, round {number + 1}: {found[-1]['records_per_second']:,.0f} records/s")
        rates[broker.name] = {client: {name: statistics.median(each[name] for each in found) for name in found[0]}
                              for client, found in rounds.items()}
    return _report(rates, records)


def _report(rates: dict[str, dict[str, dict[str, float]]], records: int) -> Report:
    rows, goals, figures = [], [], {"records": records, "record_bytes": RECORD_SIZE, "clients": rates}
    for broker, clients in rates.items():
        judge = max(JUDGES, key=lambda client: clients[client]["records_per_second"])
        bar = clients[judge]["records_per_second"]
        for client, found in clients.items():
            rows.append([f"{client} ({broker})", f"{found['records_per_second']:,.0f}", f"{found['cpu_us_per_record']:.2f} µs",
                         f"{found['memory_mb']:.0f} MB", ratio(found["records_per_second"], bar)])
        by_record = max(clients[client]["records_per_second"] for client in OURS[:2])
        columns = max(clients[client]["records_per_second"] for client in OURS[3:])
        goals += [Goal(f"consuming record by record ({broker})", quotient(by_record, bar), 1.0, at_most=False),
                  Goal(f"consuming as columns ({broker})", quotient(columns, bar), 5.0, at_most=False)]
    note = ("One partition, records of 100 bytes in batches of 16 kB; each client in a process of its own, medians of all rounds. "
            "The last column is to the better of kafka-python and aiokafka.")
    return Report("Consuming", ("", "records/s", "CPU/record", "memory", "ratio"), rows, note, figures, goals=goals)


def main() -> None:
    client, bootstrap, topic, count = sys.argv[1:]
    records = int(count)
    seconds, cpu = READERS[client](bootstrap, topic, records)
    peak = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    memory_mb = int(peak[1]) / 1024 if peak else 0.0
    print(json.dumps({"records_per_second": records / seconds, "cpu_us_per_record": cpu / records * 1e6, "memory_mb": memory_mb}))


if __name__ == "__main__":
    main()
