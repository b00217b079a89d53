"""Progress of queries as committed offsets of consumer groups, so that lag tools show it.

The source itself commits a micro-batch when the next one is planned, so never the last one. A listener commits each
when it completes. Restarts use only the checkpoint.
"""

import json
import threading
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from ottla.client.errors import ClientError
from ottla.spark.client_settings import progress_group
from ottla.spark.offset_options import offsets_from_json, topics_of
from ottla.spark.offset_reader import OffsetReader
from ottla.spark.options import OptionError, UseCase, parse_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LISTENERS_ATTRIBUTE = "_ottla_heard"
"""Attribute of the Spark context with the listeners of its sessions."""
TIMEOUT, COMMIT_MS_MAX = "kafka.default.api.timeout.ms", 5_000
"""Timeout of commits, so that an unreachable broker does not block other listener events of the session."""
RELATION = "StreamingDataSourceV2ScanRelation"


def track(query: "StreamingQuery") -> "TrackedQuery":
    """The same query, which commits the offsets of every micro-batch to the source's `groupId`, the last one included.

    query = ottla.spark.track(df.writeStream.trigger(availableNow=True).start())
    query.awaitTermination()      # from here on the group's lag is 0
    """
    listener = listen(query_session(query))
    return TrackedQuery(query, listener.follow(str(query.runId), query._jsq))


def listen(spark: "SparkSession") -> "ProgressListener":
    """Commit the progress of all queries of a session whose sources have a `groupId`. Idempotent."""
    context, name = spark.sparkContext, str(spark._jsparkSession.sessionUUID())
    listeners: dict[str, ProgressListener] = getattr(context, LISTENERS_ATTRIBUTE, {})
    if name not in listeners:
        listeners = listeners | {name: ProgressListener(spark)}
        spark.streams.addListener(listeners[name])
        setattr(context, LISTENERS_ATTRIBUTE, listeners)
    return listeners[name]


def query_session(query: "StreamingQuery") -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession(SparkContext.getOrCreate(), query._jsq.sparkSession())


class TrackedQuery:
    """A StreamingQuery that also commits when it is awaited or stopped."""

    def __init__(self, query: "StreamingQuery", commits: "GroupCommits") -> None:
        self._query = query
        self._commits = commits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        ended = self._query.awaitTermination(timeout)
        self.commit()
        return ended

    def processAllAvailable(self) -> None:
        self._query.processAllAvailable()
        self.commit()

    def stop(self) -> None:
        self._query.stop()
        self.commit()

    def commit(self) -> None:
        """Commit the end of the last micro-batch."""
        last = self._query.lastProgress
        if last is not None:
            self._commits.commit(
                last["batchId"], [(source["description"], source["endOffset"]) for source in last["sources"]]
            )


class ProgressListener(StreamingQueryListener):
    """Keeps references to running queries in the JVM: a query may have ended when its last progress event arrives."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self._running: dict[str, GroupCommits] = {}

    def follow(self, run: str, query: Any) -> "GroupCommits":
        """Return the commits of a run, which may have started earlier."""
        return self._running.setdefault(run, GroupCommits(query))

    def onQueryStarted(self, event: Any) -> None:
        query = self._spark._jsparkSession.streams().get(str(event.id))
        if query is not None:
            self.follow(str(event.runId), query)

    def onQueryProgress(self, event: Any) -> None:
        progress = event.progress
        commits = self._running.get(str(progress.runId))
        if commits is not None:
            commits.commit(progress.batchId, [(source.description, source.endOffset) for source in progress.sources])

    def onQueryIdle(self, event: Any) -> None:
        """No new data."""

    def onQueryTerminated(self, event: Any) -> None:
        commits = self._running.pop(str(event.runId), None)
        if commits is not None:
            commits.close()


class GroupCommits:
    """Commits the end offsets of a run's sources to their groups, in the order of micro-batches.

    Progress events may arrive after a later commit by `TrackedQuery`. A failed commit does not stop the query.
    """

    def __init__(self, query: Any) -> None:
        self._query = query
        self._lock = threading.Lock()
        self._sources: dict[str, tuple[str, OffsetReader] | None] | None = None
        """Group and connection by source description; None if the source has no group or is not ours."""
        self._batch = -1
        self._committed: dict[str, str] = {}

    def commit(self, batch: int, ends: list[tuple[str, str | None]]) -> None:
        with self._lock:
            if batch < self._batch:
                return
            self._batch = batch
            if self._sources is None:  # the plan is available only after the query has started
                self._sources = {name: _group(given) for name, given in source_options(self._query).items()}
            for description, end in ends:
                source = self._sources.get(description)
                if source is not None and end and end != self._committed.get(description):
                    self._commit(*source, description, end)

    def _commit(self, group: str, offset_reader: OffsetReader, description: str, end: str) -> None:
        try:
            offset_reader.commit(group, offsets_from_json(json.loads(end)))
            self._committed[description] = end
        except ClientError as error:
            warnings.warn(f"Query progress was not committed to group {group!r}: {error}", stacklevel=1)

    def close(self) -> None:
        """Close the connections. A later commit creates new ones."""
        with self._lock:
            for source in (self._sources or {}).values():
                if source is not None:
                    source[1].close()
            self._sources = None


def source_options(query: Any) -> dict[str, dict[str, str]]:
    """Return the options of the query's Python sources, by the descriptions in its progress."""
    inner = query.streamingQuery() if "StreamingQueryWrapper" in query.getClass().getName() else query
    leaves = inner.logicalPlan().collectLeaves()
    found: dict[str, dict[str, str]] = {}
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.getClass().getSimpleName() == RELATION and "PythonMicroBatchStream" in leaf.stream().toString():
            found[leaf.stream().toString()] = {
                str(name): str(value) for name, value in leaf.relation().options().items()
            }
    return found


def _group(given: Mapping[str, str]) -> "tuple[str, OffsetReader] | None":
    """Return the group in a source's options, and a connection to commit with."""
    try:
        options = parse_options({TIMEOUT: str(COMMIT_MS_MAX), **given}, UseCase.READ_STREAM)
        group = progress_group(options)
        return None if group is None else (group, OffsetReader(options, topics_of(options)))
    except OptionError:
        return None  # options of another Python source
