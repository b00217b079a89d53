"""`ottla log dump|verify|stats`: what is in data directories, of a node that runs or does not. Files are read and never written."""

import json
from typing import Annotated, Any

import typer

from ottla.cli.command import JSON_HELP, command
from ottla.cli.errors import CliError
from ottla.cli.output import ProgressBar, print_json, print_note, print_table

app = typer.Typer(
    no_args_is_help=True, help="Look into data directories. Nothing is changed, and a node may use them meanwhile."
)

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Segments, indexes, snapshots, checkpoints, or directories of them."),
]
Json = Annotated[bool, typer.Option("--json", help=JSON_HELP)]


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="log")


@command(app, "dump")
def dump(
    paths: Paths,
    records: Annotated[
        bool, typer.Option("--records", "-r", help="The records of each batch, with keys and values.")
    ] = False,
    is_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each entry.")] = False,
) -> None:
    """Print what files hold: batches, entries of indexes, producers, epochs, offsets.

    JSON lines: {"file", "kind", ...}, and for a batch {"position", "size", "base_offset", "last_offset", "count", "leader_epoch", "codec",
    "timestamp_type", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control",
    "records"}.
    """
    from ottla.cli import log_dump
    from ottla.cli.log_files import find_log_files

    broken = 0
    for stored in find_log_files(paths):
        if not is_json:
            print(f"{stored.path} ({stored.file_type.value}, {stored.size:,} bytes)")
        try:
            for entry in log_dump.dump(stored, with_records=records):
                if is_json:
                    print_json({"file": stored.path, "kind": stored.file_type.value} | entry)
                else:
                    _print_entry(entry)
        except FileNotFoundError:
            print_note(f"{stored.path} was removed meanwhile")
        except (ValueError, KeyError) as error:
            broken += 1
            print_note(f"{stored.path}: {error}")
    if broken:
        raise CliError(
            f"{broken} files could not be read to their ends", "`ottla log verify` says what is wrong with them."
        )


@command(app, "verify")
def verify(paths: Paths, is_json: Json = False) -> None:
    """Check that what is stored is whole, and that files agree with each other. The exit code is 1 where something is wrong.

    Batches: checksums, lengths, counts, offsets that rise. Indexes, leader epochs and producer snapshots: that they say what the log says.
    Checkpoints of data directories: that no offset in them lies behind the end of its log.

    JSON: {"files", "batches", "records", "problems": [{"file", "position", "problem"}]}; a position of -1 means the whole file.
    """
    from ottla.cli.log_files import FileType, find_log_files
    from ottla.cli.log_verify import Verifier

    files = find_log_files(paths)
    total = sum(stored.size for stored in files if stored.file_type in (FileType.SEGMENT, FileType.SNAPSHOT))
    with ProgressBar("verify", total) as bar:
        checked = Verifier(on_bytes=_bytes_counter(bar)).verify(files)
    if is_json:
        problems = [{"file": each.path, "position": each.position, "problem": each.text} for each in checked.problems]
        print_json(
            {"files": checked.files, "batches": checked.batches, "records": checked.records, "problems": problems}
        )
    else:
        for problem in checked.problems:
            print(f"{problem.path}:{f' at {problem.position}:' if problem.position >= 0 else ''} {problem.text}")
        print(
            f"{checked.files:,} files, {checked.batches:,} batches, {checked.records:,} records: "
            f"{len(checked.problems) or 'no'} problem{'' if len(checked.problems) == 1 else 's'}"
        )
    if checked.problems:
        raise typer.Exit(1)


@command(app, "stats")
def stats(
    paths: Paths,
    quick: Annotated[
        bool, typer.Option("--quick", help="Headers of batches only: nothing of keys and compression.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Measure what is stored, by topic and partition: sizes, rates, compression, distinct keys, batches, the time that it spans.

    JSON: {"topics": [...], "partitions": [...]}, each {"name", "segments", "log_bytes", "other_bytes", "batches", "records", ...}.
    """
    from ottla.cli.log_files import FileType, find_log_files
    from ottla.cli.log_stats import by_topic, gather

    files = find_log_files(paths)
    with ProgressBar("stats", sum(stored.size for stored in files if stored.file_type is FileType.SEGMENT)) as bar:
        partitions = gather(files, with_records=not quick, on_bytes=_bytes_counter(bar))
    told = [each.document(with_records=not quick) for each in partitions]
    topics = [each.document(with_records=not quick) for each in by_topic(partitions)]
    if is_json:
        print_json({"topics": topics, "partitions": told})
        return
    columns = [
        "name",
        "segments",
        "log_bytes",
        "batches",
        "records",
        "batch_bytes_average",
        "seconds",
        "records_per_second",
    ]
    if not quick:
        columns += ["compression_ratio", "distinct_keys", "tombstones"]
    heads = [column.replace("_", " ").upper() for column in columns]
    print_table(heads, [[each[column] for column in columns] for each in told])
    print_table(heads, [[each[column] for column in columns] for each in topics], title="by topic")


def _bytes_counter(bar: ProgressBar) -> Any:
    """Counts bytes for a bar."""
    done = 0

    def tell(size: int) -> None:
        nonlocal done
        done += size
        bar.update(done, f"{done / 1e6:,.0f} MB")

    return tell


def _print_entry(entry: dict[str, Any]) -> None:
    records = entry.pop("records", [])
    print("  " + " ".join(f"{name}={value}" for name, value in entry.items()))
    for record in records:
        print("    " + " ".join(f"{name}={json.dumps(value, ensure_ascii=True)}" for name, value in record.items()))
