"""`ottla log dump|verify|stats`: inspect data directories of a running or stopped node. Files are never written."""

import json
from typing import Annotated, Any

import typer

from ottla.base.plural import count_text
from ottla.cli.command import JSON_HELP, command
from ottla.cli.errors import CliError
from ottla.cli.output import ProgressBar, print_json, print_note, print_table
from ottla.cli.usage import new_group

app = new_group("Inspect data directories. Files are only read, so the node may be running.")

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
        bool, typer.Option("--records", "-r", help="Include the records of each batch, with keys and values.")
    ] = False,
    is_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per entry.")] = False,
) -> None:
    """Print the contents of files: batches, index entries, producers, epochs, offsets.

    JSON lines: {"file", "kind", ...}, and for a batch {"position", "size", "base_offset", "last_offset", "count",
    "leader_epoch", "codec", "timestamp_type", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch",
    "base_sequence", "is_transactional", "is_control", "records"}.
    """
    from ottla.cli import log_dump
    from ottla.cli.log_files import find_log_files

    corrupt = 0
    for file in find_log_files(paths):
        if not is_json:
            print(f"{file.path} ({file.file_type.value}, {count_text(file.size, 'byte')})")
        try:
            for entry in log_dump.dump(file, with_records=records):
                if is_json:
                    print_json({"file": file.path, "kind": file.file_type.value} | entry)
                else:
                    _print_entry(entry)
        except FileNotFoundError:
            print_note(f"{file.path} was deleted meanwhile")
        except (ValueError, KeyError) as error:
            corrupt += 1
            print_note(f"{file.path}: {error}")
    if corrupt:
        raise CliError(
            f"could not read {count_text(corrupt, 'file')} to the end", "Run `ottla log verify` to see what is wrong."
        )


@command(app, "verify")
def verify(paths: Paths, is_json: Json = False) -> None:
    """Check that files are complete and consistent with each other. The exit code is 1 if there are problems.

    Batches: checksums, lengths, counts, increasing offsets. Indexes, leader epochs and producer snapshots: that they
    agree with the log. Checkpoints: that no offset is after the end of its log.

    JSON: {"files", "batches", "records", "problems": [{"file", "position", "problem"}]}; position -1 means the file as
    a whole.
    """
    from ottla.cli.log_files import FileType, find_log_files
    from ottla.cli.log_verify import Verifier

    files = find_log_files(paths)
    total = sum(file.size for file in files if file.file_type in (FileType.SEGMENT, FileType.SNAPSHOT))
    with ProgressBar("verify", total) as bar:
        result = Verifier(on_bytes=_bytes_counter(bar)).verify(files)
    if is_json:
        problems = [{"file": each.path, "position": each.position, "problem": each.text} for each in result.problems]
        print_json({"files": result.files, "batches": result.batches, "records": result.records, "problems": problems})
    else:
        for problem in result.problems:
            print(f"{problem.path}:{f' at {problem.position}:' if problem.position >= 0 else ''} {problem.text}")
        print(
            f"{count_text(result.files, 'file')}, {count_text(result.batches, 'batch')}, "
            f"{count_text(result.records, 'record')}: "
            f"{count_text(len(result.problems), 'problem') if result.problems else 'no problems'}"
        )
    if result.problems:
        raise typer.Exit(1)


@command(app, "stats")
def stats(
    paths: Paths,
    quick: Annotated[
        bool, typer.Option("--quick", help="Read only batch headers; omits keys and compression.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Show statistics by topic and partition: sizes, rates, compression, distinct keys, batches, time span.

    JSON: {"topics": [...], "partitions": [...]}, each {"name", "segments", "log_bytes", "other_bytes", "batches",
    "records", ...}.
    """
    from ottla.cli.log_files import FileType, find_log_files
    from ottla.cli.log_stats import by_topic, gather, stats_table

    files = find_log_files(paths)
    with ProgressBar("stats", sum(file.size for file in files if file.file_type is FileType.SEGMENT)) as bar:
        partitions = gather(files, with_records=not quick, on_bytes=_bytes_counter(bar))
    documents = [each.document(with_records=not quick) for each in partitions]
    topics = [each.document(with_records=not quick) for each in by_topic(partitions)]
    if is_json:
        print_json({"topics": topics, "partitions": documents})
        return
    columns, rows = stats_table(documents, with_records=not quick)
    print_table(columns, rows)
    columns, rows = stats_table(topics, with_records=not quick)
    print_table(columns, rows, title="by topic")


def _bytes_counter(bar: ProgressBar) -> Any:
    """Return a function that adds to the bytes shown by the bar."""
    done = 0

    def add(size: int) -> None:
        nonlocal done
        done += size
        bar.update(done, f"{done / 1e6:,.0f} MB")

    return add


def _print_entry(entry: dict[str, Any]) -> None:
    records = entry.pop("records", [])
    print("  " + " ".join(f"{name}={value}" for name, value in entry.items()))
    for record in records:
        print("    " + " ".join(f"{name}={json.dumps(value, ensure_ascii=True)}" for name, value in record.items()))
