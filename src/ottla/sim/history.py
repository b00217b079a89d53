"""History of what clients sent and read, and checks whether a correct log can have produced it."""

from collections.abc import Mapping, Sequence
from typing import Literal

from ottla.wire.batches import Record

Partition = tuple[str, int]


class Send:
    """One batch sent. Its values are unique in the history, so each record can be identified."""

    __slots__ = ("base_offset", "is_idempotent", "outcome", "partition", "producer", "values")

    def __init__(self, producer: str, partition: Partition, values: Sequence[bytes], *, is_idempotent: bool) -> None:
        self.producer = producer
        self.partition = partition
        self.values = tuple(values)
        self.is_idempotent = is_idempotent
        self.outcome: Literal["unknown", "acked", "failed"] = "unknown"
        self.base_offset = -1


class History:
    """Record events as they happen; `check` returns violations, each starting with an invariant's number.

    The invariants are listed in docs/TESTING.md.
    """

    def __init__(self) -> None:
        self._sends: list[Send] = []
        self._values: dict[Partition, dict[int, bytes | None]] = {}
        self._high_watermarks: dict[Partition, int] = {}
        self._violations: list[str] = []

    def on_send(self, producer: str, partition: Partition, values: Sequence[bytes], *, is_idempotent: bool) -> Send:
        send = Send(producer, partition, values, is_idempotent=is_idempotent)
        self._sends.append(send)
        return send

    def on_acked(self, send: Send, base_offset: int) -> None:
        if send.outcome == "acked" and send.base_offset != base_offset:
            self._violations.append(
                f"4: {_short(send.values)} was acknowledged at {send.base_offset} and again at {base_offset}"
            )
        send.outcome = "acked"
        send.base_offset = base_offset
        for index, value in enumerate(send.values):
            self._observe(send.partition, base_offset + index, value)

    def on_failed(self, send: Send) -> None:
        """The response said that the batch was not appended."""
        assert send.outcome == "unknown", send.outcome
        send.outcome = "failed"

    def high_watermark(self, partition: Partition) -> int:
        """Return the highest value seen so far. Read it before a fetch, for `known_before`."""
        return self._high_watermarks.get(partition, 0)

    def on_fetched(
        self, partition: Partition, records: Sequence[Record], high_watermark: int, *, known_before: int
    ) -> None:
        """Record a fetch response.

        `known_before` is the high watermark before the request: responses may overtake each other.
        """
        for record in records:
            self._observe(partition, record.offset, record.value)
            if record.offset >= high_watermark:
                self._violations.append(
                    f"19: {partition} returned offset {record.offset} above its high watermark {high_watermark}"
                )
        if high_watermark < known_before:
            self._violations.append(
                f"19: the high watermark of {partition} decreased from {known_before} to {high_watermark}"
            )
        self._high_watermarks[partition] = max(self.high_watermark(partition), high_watermark)

    def discard_observations(self) -> None:
        """Power loss: unflushed data is lost, so previous reads and acknowledgements no longer count."""
        self._values.clear()
        self._high_watermarks.clear()
        for send in self._sends:
            if send.outcome == "acked":
                send.outcome = "unknown"
                send.base_offset = -1

    def _observe(self, partition: Partition, offset: int, value: bytes | None) -> None:
        values = self._values.setdefault(partition, {})
        if values.setdefault(offset, value) != value:
            self._violations.append(
                f"1: offset {offset} of {partition} is {_short([values[offset]])} and {_short([value])}"
            )

    def check(self, final: Mapping[Partition, Sequence[Record]]) -> list[str]:
        """Return all violations, given the final contents of the partitions."""
        violations = list(self._violations)
        for partition, records in sorted(final.items()):
            found: dict[bytes | None, list[int]] = {}
            for index, record in enumerate(records):
                if record.offset != records[0].offset + index:
                    violations.append(
                        f"2: {partition} has {record.offset} where {records[0].offset + index} was expected"
                    )
                found.setdefault(record.value, []).append(record.offset)
            violations += self._check_values(partition, {record.offset: record.value for record in records})
            violations += self._check_sends(partition, found)
        return violations

    def _check_values(self, partition: Partition, final: Mapping[int, bytes | None]) -> list[str]:
        """Check that every value read is still at its offset."""
        return [
            f"1, 3: offset {offset} of {partition} was {_short([value])} and is {_short([now])}"
            for offset, value in self._values.get(partition, {}).items()
            if (now := final.get(offset, b"missing")) != value
        ]

    def _check_sends(self, partition: Partition, found: dict[bytes | None, list[int]]) -> list[str]:
        violations = []
        last: dict[str, int] = {}
        known: dict[bytes | None, None] = {}
        for send in self._sends:
            if send.partition != partition:
                continue
            offsets_by_value = [found.get(value, []) for value in send.values]
            known.update(dict.fromkeys(send.values))
            if send.outcome == "failed" and any(offsets_by_value):
                violations.append(f"5: {_short(send.values)} of {partition} was rejected but is at {offsets_by_value}")
            if send.is_idempotent and any(len(offsets) > 1 for offsets in offsets_by_value):
                violations.append(f"4: {_short(send.values)} of {partition} is at {offsets_by_value}")
            if any(len(offsets) != len(offsets_by_value[0]) for offsets in offsets_by_value):
                violations.append(f"2: {_short(send.values)} of {partition} is incomplete: {offsets_by_value}")
            elif offsets_by_value[0]:
                first = send.base_offset if send.outcome == "acked" else offsets_by_value[0][0]
                if send.is_idempotent and first <= last.get(send.producer, -1):
                    violations.append(
                        f"8: {_short(send.values)} of {partition} is at {first}, after later batches of {send.producer}"
                    )
                last[send.producer] = max(offsets_by_value[-1])
        unexpected = [value for value in found if value not in known]
        violations += [
            f"1: {partition} has {_short([value])}, which was never sent, at {found[value]}" for value in unexpected
        ]
        return violations


def _short(values: Sequence[bytes | None]) -> str:
    """Shorten values for messages."""
    return str([value if value is None else value[:24] for value in values])
