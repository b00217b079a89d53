"""Requests of the driver for planning: partitions, first and last offsets, and offsets by timestamp."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

from ottla.base.ids import Uuid
from ottla.client import (
    Admin,
    BrokerUnreachableError,
    ClientError,
    ClientTimeoutError,
    PartialFailureError,
    TopicPartition,
    UnknownTopicOrPartitionError,
)
from ottla.spark.client_settings import admin_settings, consumer_settings
from ottla.spark.errors import DataLossError, SourceError, wrap_client_error
from ottla.spark.offset_options import EARLIEST, LATEST, Offsets, OffsetSpec, Topics
from ottla.spark.options import OptionError, Options

T = TypeVar("T")
TIMEOUT = "default.api.timeout.ms"
FIRST_CONTACT_MS_MAX = 10_000
"""Limit of the first call, unless the option sets it: a wrong address fails soon, a restarting broker has longer."""
NO_OFFSET = -1
"""Returned if there is no record at or after a timestamp."""


class OffsetReader:
    """Connects on the first call. Results are not cached, except for topic ids."""

    def __init__(self, options: Options, topics: Topics) -> None:
        self._options = options
        self._topics = topics
        settings = consumer_settings(options)
        self._isolation = settings.get("isolation.level", "read_uncommitted")
        self._bootstrap = options.kafka["bootstrap.servers"]
        try:
            self._admin = Admin(admin_settings(settings))
        except ClientError as error:
            raise OptionError(f"Invalid client config in the options with prefix 'kafka.': {error}") from None
        self._timeout_ms = self._admin.timeout_ms
        if TIMEOUT not in settings:
            self._admin.timeout_ms = min(self._timeout_ms, FIRST_CONTACT_MS_MAX)
        self.topic_ids: dict[str, Uuid] = {}
        """Topic ids of the last call that returned partitions."""

    def close(self) -> None:
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def _call(self, action: str, call: Callable[[], T]) -> T:
        """Retry retriable errors `fetchOffset.numRetries` times, in addition to the client's own retries."""
        retries_left: int = self._options["fetchOffset.numRetries"]
        while True:
            try:
                result = call()
                self._admin.timeout_ms = self._timeout_ms
                return result
            except (BrokerUnreachableError, ClientTimeoutError) as error:
                # The message says everything, and Spark prints the stack traces of all causes.
                raise wrap_client_error(error, self._bootstrap, action) from None
            except ClientError as error:
                is_fatal = isinstance(error, UnknownTopicOrPartitionError) or not error.is_retriable
                if is_fatal or retries_left <= 0:
                    raise wrap_client_error(error, self._bootstrap, action) from error
                retries_left -= 1
                time.sleep(self._options["fetchOffset.retryIntervalMs"] / 1000)

    # Partitions

    def partitions(self) -> list[TopicPartition]:
        """Return all requested partitions, sorted. Raises SourceError if a topic or partition does not exist."""
        found = self.existing_partitions()
        missing = [name for name in self._requested_names() if name not in self.topic_ids]
        if missing:
            option = "assign" if self._topics.partitions else "subscribe"
            raise SourceError(
                f"Topic {', '.join(map(repr, missing))} in option {option} does not exist. Create it, or correct the "
                "name."
            )
        known = dict.fromkeys(found)
        for partition in self._topics.partitions:
            if partition not in known:
                raise SourceError(
                    f"Topic {partition.topic!r} has no partition {partition.partition}, which is in option assign."
                )
        return found

    def existing_partitions(self) -> list[TopicPartition]:
        """Return the requested partitions that exist, sorted."""
        names = self._requested_names()
        if self._topics.pattern:
            names = self._topics.matching(self._call("Listing topics", self._admin.list_topics))
        described: Mapping[str, Any] = (
            self._call(f"Looking up {', '.join(names)}", lambda: self._describe(names)) if names else {}
        )
        self.topic_ids = {name: topic.id for name, topic in described.items()}
        found = [
            TopicPartition(name, each.partition) for name in sorted(described) for each in described[name].partitions
        ]
        if self._topics.partitions:
            requested = dict.fromkeys(self._topics.partitions)
            found = [partition for partition in found if partition in requested]
        return found

    def _requested_names(self) -> list[str]:
        return sorted(self._topics.names or dict.fromkeys(partition.topic for partition in self._topics.partitions))

    def _describe(self, names: list[str]) -> Mapping[str, Any]:
        """Return descriptions of the topics that exist."""
        try:
            return self._admin.describe_topics(names)
        except UnknownTopicOrPartitionError:
            return {}
        except PartialFailureError as failed:
            for error in failed.errors.values():
                if not isinstance(error, UnknownTopicOrPartitionError):
                    raise error from None
            return failed.results

    # Offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._list_offsets(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return end offsets; with `isolationLevel=read_committed`, the offset before the first open transaction."""
        return self._list_offsets(dict.fromkeys(partitions, LATEST))

    def _list_offsets(self, times: Mapping[TopicPartition, int]) -> Offsets:
        if not times:
            return {}
        requested: dict[tuple[str, int], str | int] = dict(times.items())
        infos = self._call(
            "Looking up offsets", lambda: self._admin.list_offsets(requested, isolation_level=self._isolation)
        )
        return {partition: info.offset for partition, info in infos.items()}

    def resolve(self, spec: OffsetSpec, partitions: list[TopicPartition]) -> Offsets:
        """Resolve a spec to offsets, checked against the existing offsets."""
        if spec.end is not None:
            return self._list_offsets(dict.fromkeys(partitions, spec.end))
        if spec.times is not None:
            return self._resolve_timestamps(spec, partitions)
        assert spec.offsets is not None
        self._check_partitions(spec.option, spec.offsets, partitions)
        ends = {partition: offset for partition, offset in spec.offsets.items() if offset < 0}
        found = self._list_offsets(ends)
        exact = {partition: offset for partition, offset in spec.offsets.items() if offset >= 0}
        earliest, latest = self.earliest(exact), self.latest(exact)
        for partition, offset in exact.items():
            found[partition] = min(max(offset, earliest[partition]), latest[partition])
            if found[partition] != offset and self._options["failOnDataLoss"]:
                raise DataLossError(
                    f"Option {spec.option} has offset {offset} for {partition}, whose offsets range from "
                    f"{earliest[partition]} to {latest[partition]}."
                )
        return found

    def _resolve_timestamps(self, spec: OffsetSpec, partitions: list[TopicPartition]) -> Offsets:
        if isinstance(spec.times, int):
            times = dict.fromkeys(partitions, spec.times)
        else:
            assert spec.times is not None
            self._check_partitions(spec.option, spec.times, partitions)
            times = {partition: spec.times[partition] for partition in partitions}
        found = self._list_offsets(times)
        without = [partition for partition, offset in found.items() if offset == NO_OFFSET]
        if without and not spec.latest_if_none:
            raise SourceError(
                f"Option {spec.option}: no record of {without[0]} is at or after {times[without[0]]}. Use an earlier "
                "time, "
                "or set option startingOffsetsByTimestampStrategy to latest to start at the end of such partitions."
            )
        return found | self.latest(without)

    def _check_partitions(
        self, option: str, given: Mapping[TopicPartition, int], partitions: list[TopicPartition]
    ) -> None:
        named, there = dict.fromkeys(given), dict.fromkeys(partitions)
        missing = [str(partition) for partition in partitions if partition not in named]
        unknown = [str(partition) for partition in given if partition not in there]
        if missing:
            raise OptionError(f"Option {option} must have every partition that is read; missing: {', '.join(missing)}.")
        if unknown:
            raise OptionError(f"Option {option} has {', '.join(unknown)}, which is not read.")

    # Groups

    def commit(self, group: str, offsets: Offsets) -> None:
        """Commit a query's progress to a group. Raises ClientError."""
        if offsets:
            self._admin.alter_group_offsets(group, dict(offsets.items()))
