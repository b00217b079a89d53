"""What clients sent, heard and read, and whether a log can have answered so."""

from collections.abc import Mapping, Sequence
from typing import Literal

from ottla.wire.batches import Record

Partition = tuple[str, int]


class Send:
    """One batch on its way: its values are unique in the whole history, so that each can be found again."""

    __slots__ = ("base_offset", "is_idempotent", "outcome", "partition", "producer", "values")

    def __init__(self, producer: str, partition: Partition, values: Sequence[bytes], *, is_idempotent: bool) -> None:
        self.producer = producer
        self.partition = partition
        self.values = tuple(values)
        self.is_idempotent = is_idempotent
        self.outcome: Literal["unknown", "acked", "failed"] = "unknown"
        self.base_offset = -1


class History:
    """Events are told as they happen; `check` says what cannot be. Its words begin with the invariant's number in docs/TESTING.md."""

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
                f"4: {_short(send.values)} was acked at {send.base_offset} and again at {base_offset}"
            )
        send.outcome = "acked"
        send.base_offset = base_offset
        for index, value in enumerate(send.values):
            self._observe(send.partition, base_offset + index, value)

    def on_failed(self, send: Send) -> None:
        """The answer said that it was not appended."""
        assert send.outcome == "unknown", send.outcome
        send.outcome = "failed"

    def high_watermark(self, partition: Partition) -> int:
        """The highest that anyone has heard of: to be asked before a read, and told after it."""
        return self._high_watermarks.get(partition, 0)

    def on_fetched(
        self, partition: Partition, records: Sequence[Record], high_watermark: int, *, known_before: int
    ) -> None:
        """A read, and what was known of the high watermark when it was asked for; answers of several readers may overtake each other."""
        for record in records:
            self._observe(partition, record.offset, record.value)
            if record.offset >= high_watermark:
                self._violations.append(
                    f"19: {partition} gave offset {record.offset} above its high watermark {high_watermark}"
                )
        if high_watermark < known_before:
            self._violations.append(
                f"19: the high watermark of {partition} fell from {known_before} to {high_watermark}"
            )
        self._high_watermarks[partition] = max(self.high_watermark(partition), high_watermark)

    def discard_observations(self) -> None:
        """Power was lost, and with it what had not been flushed: what was read and acked so far is no promise any more."""
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
        """All that is wrong with a history, given everything that its partitions hold at the end."""
        violations = list(self._violations)
        for partition, records in sorted(final.items()):
            found: dict[bytes | None, list[int]] = {}
            for index, record in enumerate(records):
                if record.offset != records[0].offset + index:
                    violations.append(f"2: {partition} has {record.offset} where {records[0].offset + index} was due")
                found.setdefault(record.value, []).append(record.offset)
            violations += self._check_values(partition, {record.offset: record.value for record in records})
            violations += self._check_sends(partition, found)
        return violations

    def _check_values(self, partition: Partition, final: Mapping[int, bytes | None]) -> list[str]:
        """What anyone saw at an offset is there at the end."""
        return [
            f"1, 3: offset {offset} of {partition} was {_short([value])} and is {_short([final.get(offset, b'missing')])}"
            for offset, value in self._values.get(partition, {}).items()
            if final.get(offset, b"missing") != value
        ]

    def _check_sends(self, partition: Partition, found: dict[bytes | None, list[int]]) -> list[str]:
        violations = []
        last: dict[str, int] = {}
        known: dict[bytes | None, None] = {}
        for send in self._sends:
            if send.partition != partition:
                continue
            places = [found.get(value, []) for value in send.values]
            known.update(dict.fromkeys(send.values))
            if send.outcome == "failed" and any(places):
                violations.append(f"5: {_short(send.values)} of {partition} was refused and is at {places}")
            if send.is_idempotent and any(len(offsets) > 1 for offsets in places):
                violations.append(f"4: {_short(send.values)} of {partition} is at {places}")
            if any(len(offsets) != len(places[0]) for offsets in places):
                violations.append(f"2: only a part of {_short(send.values)} of {partition} is there: {places}")
            elif places[0]:
                first = send.base_offset if send.outcome == "acked" else places[0][0]
                if send.is_idempotent and first <= last.get(send.producer, -1):
                    violations.append(
                        f"8: {_short(send.values)} of {partition} is at {first}, behind what {send.producer} sent later"
                    )
                last[send.producer] = max(places[-1])
        unexpected = [value for value in found if value not in known]
        violations += [
            f"1: {partition} has {_short([value])}, which nobody sent, at {found[value]}" for value in unexpected
        ]
        return violations


def _short(values: Sequence[bytes | None]) -> str:
    """Enough of some values to know them by."""
    return str([value if value is None else value[:24] for value in values])
