"""`ottla perf consume`."""

import time
from typing import Annotated

import typer

from ottla.cli.figures import rates, show
from ottla.cli.lookup import require_topics
from ottla.cli.options import Topic
from ottla.cli.progress import Bar
from ottla.cli.session import Session
from ottla.cli.topic_describe import offsets

POLL_SECONDS = 1.0


def consume(
    session: Session,
    topic: Topic,
    records: Annotated[
        int | None, typer.Option("--records", "-n", min=1, metavar="N", help="How many records.", show_default="all")
    ] = None,
    one_by_one: Annotated[
        bool, typer.Option("--one-by-one", help="Make an object of each record, instead of taking columns.")
    ] = False,
    fetch_size: Annotated[
        int, typer.Option("--fetch-size", min=1, metavar="BYTES", help="max.partition.fetch.bytes.")
    ] = 1 << 20,
) -> None:
    """Consume a topic from its beginning as fast as it goes, up to what is its end now.

    JSON: {"records", "bytes", "seconds", "records_per_second", "mb_per_second"}.
    """
    with session.admin() as admin:
        described = require_topics(admin, [topic])
        earliest, latest = offsets(admin, described, "earliest"), offsets(admin, described, "latest")
    there = sum(latest[place].offset - earliest[place].offset for place in latest)
    wanted = there if records is None else min(records, there)
    count = size = 0
    with (
        Bar(f"consume {topic}", wanted) as bar,
        session.consumer(
            {"enable.auto.commit": False, "max.partition.fetch.bytes": fetch_size, "max.poll.records": 5_000}
        ) as consumer,
    ):
        consumer.assign(list(latest))
        consumer.seek_to_beginning()
        started = ended = time.perf_counter()
        while count < wanted:
            if one_by_one:
                found = consumer.poll(POLL_SECONDS)
                length, more = len(found), sum(len(each.value or b"") + len(each.key or b"") for each in found)
            else:
                batch = consumer.poll_batch(POLL_SECONDS)
                length = 0 if batch is None else len(batch)
                more = 0 if batch is None else len(batch.values.data) + len(batch.keys.data)
            if length == 0:
                break  # fewer records than offsets: some are compacted away, or the marks of transactions
            count, size, ended = count + length, size + more, time.perf_counter()
            bar.tell(count, f"{count / (ended - started):,.0f}/s")
    show(rates(count, size, ended - started), is_json=session.is_json)
