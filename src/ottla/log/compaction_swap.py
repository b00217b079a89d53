"""How a cleaned segment takes the place of others, so that a crash at any moment leaves either the old ones or the new one.

The files of a cleaned segment are complete and flushed under names that end in `.cleaned`; then they are renamed to `.swap`. Once none
of them is left under the first name, and the directory is flushed, the new segment counts. Then the old ones are renamed to `.deleted`, and
the new one loses its suffix. Whoever opens the log after a crash finishes that; the names and the order are Apache Kafka's, so that each of
the two finishes what the other began.
"""

from ottla.base.ports import Disk
from ottla.log.scanning import scan_headers
from ottla.log.segment import LOG_SUFFIX

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
OFFSET_DIGITS = 20


def finish_swaps(disk: Disk, directory: str) -> None:
    """Finish, or undo, a replacement that was interrupted. Call it before anything else looks at the directory."""
    names = disk.list(directory)
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX) and name[:OFFSET_DIGITS].isdecimal()]
    if not swaps:
        return
    cleaned = [int(name[:OFFSET_DIGITS]) for name in names if name.endswith(CLEANED_SUFFIX) and name[:OFFSET_DIGITS].isdecimal()]
    undone_from = min(cleaned, default=None)
    kept = []
    for name in swaps:
        if undone_from is not None and int(name[:OFFSET_DIGITS]) >= undone_from:
            disk.remove(f"{directory}/{name}")  # not all of its files had got this far: the old segments still count
        else:
            kept.append(name)
    logs = [name for name in kept if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if logs:
        _remove_replaced(disk, directory, names, logs)
    for name in kept:
        # The log comes last: its name says that all the others have theirs.
        if name not in logs:
            disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    for name in logs:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    disk.flush_directory(directory)


def _remove_replaced(disk: Disk, directory: str, names: list[str], logs: list[str]) -> None:
    """The files of segments whose offsets the new ones hold."""
    first = min(int(name[:OFFSET_DIGITS]) for name in logs)
    behind = max(_end_of(disk, directory, name) for name in logs)
    for name in names:
        stem, _, suffix = name.partition(".")
        if suffix in ("log", "index", "timeindex", "txnindex") and stem.isdecimal() and first <= int(stem) < behind:
            disk.remove(f"{directory}/{name}")


def _end_of(disk: Disk, directory: str, name: str) -> int:
    """The offset after the last batch of a segment; an empty one replaces at least what has its own name."""
    base_offset = int(name[:OFFSET_DIGITS])
    file = disk.open_read_only(f"{directory}/{name}")
    try:
        last = None
        for _, header in scan_headers(file, 0, file.size()):
            last = header
    finally:
        file.close()
    return base_offset + 1 if last is None else last.last_offset + 1
