"""Write snapshots of the metadata log, so that startup does not have to replay all of it."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.base.ports import Clock, Disk, Workers
from ottla.metadata.image import ClusterImage
from ottla.metadata.snapshot_records import image_records
from ottla.runtime.snapshots import Snapshot, SnapshotId, encode_snapshot, list_snapshots

if TYPE_CHECKING:
    from asyncio import Future

log = logging.getLogger("ottla.metadata")

BYTES_BETWEEN_MAX = 20 << 20
INTERVAL_MAX_MS = 3_600_000
SNAPSHOTS_RETAINED = 2
"""The newest snapshot and its predecessor, which is the fallback if the newest is corrupt."""


class SnapshotWriter:
    """Encoder and writer of one snapshot at a time. It runs in a worker, on an immutable image."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        workers: Workers,
        directory: str,
        *,
        last: Snapshot | None,
        bytes_between_max: int,
        interval_max_ms: int,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._workers = workers
        self._directory = directory
        self._kraft_version = last.kraft_version if last else 0
        self._voters = last.voters if last else None
        self._bytes_between_max = bytes_between_max
        self._interval_max_ms = interval_max_ms
        self._bytes_since = 0
        self._last_ms = clock.now_ms()
        self.running: Future[None] | None = None

    def count(self, size: int) -> None:
        """Count record bytes that no snapshot contains yet."""
        self._bytes_since += size

    @property
    def is_due(self) -> bool:
        if self.running is not None or not self._bytes_since:
            return False
        return (
            self._bytes_since >= self._bytes_between_max
            or self._clock.now_ms() - self._last_ms >= self._interval_max_ms
        )

    def write(
        self, image: ClusterImage, epoch: int, last_contained_ms: int, on_written: Callable[[SnapshotId], None]
    ) -> None:
        """Start writing a snapshot. If it fails, log a warning and retry later; no records are lost."""
        snapshot_id = SnapshotId(image.last_offset + 1, epoch)
        now_ms = self._clock.now_ms()
        self._bytes_since, self._last_ms = 0, now_ms

        def work() -> None:
            data = encode_snapshot(
                list(image_records(image)),
                metadata_version=image.metadata_version,
                now_ms=now_ms,
                epoch=epoch,
                last_contained_ms=last_contained_ms,
                kraft_version=self._kraft_version,
                voters=self._voters,
            )
            self._disk.write_atomically(f"{self._directory}/{snapshot_id.file_name}", data)
            for old in list_snapshots(self._disk, self._directory)[:-SNAPSHOTS_RETAINED]:
                self._disk.remove(f"{self._directory}/{old.file_name}")

        def done(written: "Future[None]") -> None:
            self.running = None
            if written.cancelled():
                return
            try:
                written.result()
            except OSError as error:
                log.warning("could not write metadata snapshot %s; will retry: %s", snapshot_id.file_name, error)
            else:
                on_written(snapshot_id)

        self.running = self._workers.run(work)
        self.running.add_done_callback(done)
