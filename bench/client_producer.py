"""Producing records of 100 bytes: `ottla.client`, blocking and async, beside kafka-python, aiokafka and
confluent-kafka, on the same broker in one run. Each client runs in its own process, after a warm-up, until its last
record is acknowledged.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from bench.client_comparison import HEAD, Rates, Work, alternate_rounds, reference_rate, rows, run_client
from bench.comparison import Log
from bench.peers import BrokerProcess
from bench.report import Goal, Report, RunSize, quotient

VALUE = bytes(index * 31 & 0xFF for index in range(100))
PARTITIONS = 4
WARM_RECORDS = 2_000
BATCH_BYTES, LINGER_MS = 16_384, 5
RATIO_MIN = 1.5


def write_kafka_python(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    import kafka

    settings = {"acks": "all", "enable_idempotence": True, "linger_ms": LINGER_MS, "batch_size": BATCH_BYTES}
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, **settings)
    _send_all(producer.send, topic, WARM_RECORDS)
    producer.flush()
    started, cpu = time.perf_counter(), time.process_time()
    _send_all(producer.send, topic, records)
    producer.flush()
    found = time.perf_counter() - started, time.process_time() - cpu
    producer.close()
    return found


def write_confluent(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    from confluent_kafka import Producer

    settings = {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "linger.ms": LINGER_MS,
        "batch.size": BATCH_BYTES,
    }
    producer = Producer(settings)

    def send(topic: str, value: bytes) -> None:
        while True:
            try:
                producer.produce(topic, value)
                return
            except BufferError:
                producer.poll(0.1)

    _send_all(send, topic, WARM_RECORDS)
    producer.flush()
    started, cpu = time.perf_counter(), time.process_time()
    _send_all(send, topic, records)
    producer.flush()
    return time.perf_counter() - started, time.process_time() - cpu


def write_ottla(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    from ottla.client import Producer

    with Producer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
        _send_all(producer.send, topic, WARM_RECORDS)
        producer.flush()
        started, cpu = time.perf_counter(), time.process_time()
        _send_all(producer.send, topic, records)
        producer.flush()
        return time.perf_counter() - started, time.process_time() - cpu


def _send_all(send: Callable[[str, bytes], object], topic: str, records: int) -> None:
    for _ in range(records):
        send(topic, VALUE)


def write_aiokafka(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    import aiokafka

    async def work() -> tuple[float, float]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=True,
            linger_ms=LINGER_MS,
            max_batch_size=BATCH_BYTES,
        )
        await producer.start()
        for _ in range(WARM_RECORDS):
            await producer.send(topic, VALUE)
        await producer.flush()
        started, cpu = time.perf_counter(), time.process_time()
        for _ in range(records):
            await producer.send(topic, VALUE)
        await producer.flush()
        found = time.perf_counter() - started, time.process_time() - cpu
        await producer.stop()
        return found

    return _run_async(work)


def write_ottla_async(bootstrap: str, topic: str, records: int) -> tuple[float, float]:
    from ottla.client import AsyncProducer

    async def work() -> tuple[float, float]:
        async with AsyncProducer(bootstrap_servers=bootstrap, linger_ms=LINGER_MS, batch_size=BATCH_BYTES) as producer:
            for _ in range(WARM_RECORDS):
                await producer.send(topic, VALUE)
            await producer.flush()
            started, cpu = time.perf_counter(), time.process_time()
            for _ in range(records):
                await producer.send(topic, VALUE)
            await producer.flush()
            return time.perf_counter() - started, time.process_time() - cpu

    return _run_async(work)


def _run_async(work: "Callable[[], object]") -> tuple[float, float]:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found: tuple[float, float] = runner.run(work())  # type: ignore[arg-type]
        return found


WRITERS: dict[str, Work] = {
    "kafka-python": write_kafka_python,
    "aiokafka": write_aiokafka,
    "confluent-kafka": write_confluent,
    "ottla": write_ottla,
    "ottla, async": write_ottla_async,
}


def create(bootstrap: str, topic: str) -> None:
    from ottla.client import Admin

    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, PARTITIONS, 1)


def run(brokers: Sequence[BrokerProcess], run_size: RunSize, log: Log) -> Report:
    """Measure all clients against each broker, alternating."""
    records = run_size.perf_records // 10
    rates: Rates = {}
    for broker in brokers:
        topic = f"produced-{time.time_ns()}"
        create(broker.bootstrap, topic)
        rates[broker.name] = alternate_rounds(
            "bench.client_producer", list(WRITERS), broker, topic, records, run_size, log
        )
    return _report(rates, records)


def _report(rates: Rates, records: int) -> Report:
    goals = []
    for broker, clients in rates.items():
        for client in ("ottla", "ottla, async"):
            name = f"producing with {client} ({broker})"
            goals.append(
                Goal(
                    name,
                    quotient(clients[client]["records_per_second"], reference_rate(clients)),
                    RATIO_MIN,
                    at_most=False,
                )
            )
    note = (
        f"{records:,} records of {len(VALUE)} bytes to {PARTITIONS} partitions, acks=all, idempotent, batches of up to "
        f"{BATCH_BYTES} bytes, linger {LINGER_MS} ms; each client in its own process, medians of all rounds. "
        "The last column is relative to the faster of kafka-python and aiokafka."
    )
    measurements = {"records": records, "record_bytes": len(VALUE), "clients": rates}
    return Report("Producing", HEAD, rows(rates), note, measurements, goals=goals)


if __name__ == "__main__":
    run_client(WRITERS)
