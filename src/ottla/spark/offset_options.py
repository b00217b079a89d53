"""The options for topics and start and end positions, parsed into values. No requests are sent here."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.client.records import TopicPartition
from ottla.spark.java_patterns import PatternError, compile_java_pattern
from ottla.spark.options import OptionError, Options

EARLIEST, LATEST = -2, -1
"""Special offsets for both ends of a partition, in JSON and in ListOffsets."""

MARK, MARK_VERSION = "@ottla", 1
"""Marker in checkpointed offsets, next to the topics. It is not a valid topic name.

Its value is not a map of partitions, so Spark's connector rejects these offsets, as its offsets are rejected here.
"""

Offsets = dict[TopicPartition, int]


class Topics(NamedTuple):
    """Topics to read: names, a pattern, or single partitions. One of the three is set."""

    names: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()

    def matching(self, names: Iterable[str]) -> list[str]:
        """Return the names in which the pattern occurs, as in Spark's connector."""
        expression = compile_java_pattern(self.pattern)
        return sorted(name for name in names if expression.search(name))


class OffsetSpec(NamedTuple):
    """Start or end positions. One of `end`, `offsets` and `times` is set; `option` is where it came from."""

    option: str
    end: int | None = None
    """EARLIEST or LATEST, for all partitions."""
    offsets: Mapping[TopicPartition, int] | None = None
    """Offset by partition, or EARLIEST or LATEST."""
    times: Mapping[TopicPartition, int] | int | None = None
    """Timestamps in milliseconds, by partition or for all."""
    latest_if_none: bool = True
    """Whether to use the end of a partition without a record at or after the timestamp; otherwise that is an error."""

    @property
    def is_time_dependent(self) -> bool:
        """Whether resolving it later may give other offsets."""
        in_offsets = self.offsets is not None and LATEST in self.offsets.values()
        return self.end == LATEST or in_offsets or (self.times is not None and self.latest_if_none)


def topics_of(options: Options) -> Topics:
    """Return the topics of `subscribe`, `subscribePattern` or `assign`, one of which must be given."""
    given = [name for name in ("assign", "subscribe", "subscribePattern") if options.is_given(name)]
    if not given:
        raise OptionError(
            "No topics to read; set one of the options subscribe (topics), subscribePattern (a regular expression) or "
            "assign (partitions as JSON)."
        )
    if len(given) > 1:
        raise OptionError(f"Options {' and '.join(given)} exclude each other; set one of them.")
    text: str = options[given[0]]
    match given[0]:
        case "assign":
            return Topics(partitions=_assigned(text))
        case "subscribe":
            names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
            if not names:
                raise OptionError("Option subscribe names no topic; set one or more, separated by commas.")
            return Topics(names=names)
        case _:
            if not text.strip():
                raise OptionError(
                    "Option subscribePattern is empty; set a regular expression that occurs in the topic names."
                )
            try:
                compile_java_pattern(text)
            except (PatternError, re.error) as error:
                raise OptionError(
                    f"Option subscribePattern is not a valid regular expression: {error} in {text!r}."
                ) from None
            return Topics(pattern=text)


def starting_offsets(options: Options, *, is_stream: bool) -> OffsetSpec:
    """Parse the start:

    `startingTimestamp`, then `startingOffsetsByTimestamp`, then `startingOffsets`, as in Spark's connector.
    """
    latest_if_none = options["startingOffsetsByTimestampStrategy"] == "latest"
    by_time = _timestamp_spec(options, "startingTimestamp", "startingOffsetsByTimestamp", latest_if_none=latest_if_none)
    if by_time is not None:
        return by_time
    name = "startingOffsets"
    spec = _offset_spec(name, options[name], default=LATEST if is_stream else EARLIEST)
    if not is_stream and spec.is_time_dependent:
        raise OptionError(
            f"Option {name} of a batch read cannot be latest (-1), which reads nothing; use earliest or offsets."
        )
    return spec


def ending_offsets(options: Options) -> OffsetSpec:
    """Parse the end of a batch read; by default the end at planning time."""
    by_time = _timestamp_spec(options, "endingTimestamp", "endingOffsetsByTimestamp", latest_if_none=True)
    if by_time is not None:
        return by_time
    name = "endingOffsets"
    spec = _offset_spec(name, options[name], default=LATEST)
    if spec.end == EARLIEST or EARLIEST in (spec.offsets or {}).values():
        raise OptionError(f"Option {name} cannot be earliest (-2), which reads nothing; use latest or offsets.")
    return spec


def _timestamp_spec(options: Options, of_all: str, of_each: str, *, latest_if_none: bool) -> OffsetSpec | None:
    if options.is_given(of_all):
        return OffsetSpec(of_all, times=options[of_all], latest_if_none=latest_if_none)
    if options.is_given(of_each):
        times = read_offsets(of_each, options[of_each])
        for partition, time in times.items():
            if time < 0:
                raise OptionError(
                    f"Option {of_each} has a negative timestamp for {partition}; use milliseconds since 1970."
                )
        return OffsetSpec(of_each, times=times, latest_if_none=latest_if_none)
    return None


def _offset_spec(name: str, text: str | None, *, default: int) -> OffsetSpec:
    word = "" if text is None else text.strip()
    match word.lower():
        case "":
            return OffsetSpec(name, end=default)
        case "earliest":
            return OffsetSpec(name, end=EARLIEST)
        case "latest":
            return OffsetSpec(name, end=LATEST)
    offsets = read_offsets(name, word)
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise OptionError(
                f"Option {name} has offset {offset} for {partition}: use an offset, -2 for earliest or -1 for latest."
            )
    return OffsetSpec(name, offsets=offsets)


def read_offsets(name: str, text: str) -> Offsets:
    """Parse numbers by topic and partition, such as {"orders":{"0":23,"1":-2}}."""
    example = '{"orders":{"0":23,"1":-2}}'
    found: Offsets = {}
    try:
        for topic, partitions in _pairs(json.loads(text)):
            if topic == MARK:
                continue  # offsets copied from a checkpoint
            for partition, number in _pairs(partitions):
                if isinstance(number, bool) or not isinstance(number, int):
                    raise TypeError
                found[TopicPartition(topic, int(partition))] = number
    except (ValueError, TypeError):
        also = "earliest, latest or " if name in ("startingOffsets", "endingOffsets") else ""
        raise OptionError(f"Option {name} must be {also}JSON such as {example}, not {text!r}.") from None
    return found


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    try:
        found = [
            TopicPartition(topic, int(partition))
            for topic, partitions in _pairs(json.loads(text))
            for partition in partitions
        ]
    except (ValueError, TypeError):
        raise OptionError(f'Option assign must be JSON such as {{"orders":[0,1]}}, not {text!r}.') from None
    if not found:
        raise OptionError('Option assign names no partition; use JSON such as {"orders":[0,1]}.')
    return tuple(sorted(dict.fromkeys(found)))


def _pairs(value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise TypeError
    return value.items()


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """Return offsets as stored in a checkpoint: the marker, then topics and partitions in order."""
    found: dict[str, Any] = {MARK: MARK_VERSION}
    for topic, partition in sorted(offsets):
        found.setdefault(topic, {})[str(partition)] = offsets[TopicPartition(topic, partition)]
    return found


def offsets_from_json(stored: Mapping[str, Any]) -> Offsets:
    """Parse checkpointed offsets. Raises OptionError if another source or a newer version wrote them."""
    try:
        found = {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in stored.items()
            if topic != MARK
            for partition, offset in _pairs(partitions)
        }
    except (ValueError, TypeError):
        raise OptionError(
            f"The checkpoint has no topic offsets but {json.dumps(stored)[:200]}: it belongs to another source. "
            "Use a separate checkpointLocation for this query."
        ) from None
    if MARK not in stored:
        raise OptionError(
            "The checkpoint was written by Spark's own Kafka connector (format kafka), and format ottla cannot "
            "continue it. Use a new checkpointLocation; to start at the same offsets, set option startingOffsets "
            f"to {json.dumps(stored, separators=(',', ':'))}"
        )
    if stored[MARK] != MARK_VERSION:
        raise OptionError(
            f"The checkpoint was written by another version of Ottla (its offsets are of format {stored[MARK]!r}, "
            "this version "
            f"supports {MARK_VERSION}). Run the query with that version, or use a new checkpointLocation."
        )
    return found
