"""Recorded responses of Apache Kafka as JSON: one file per catalog, one line per case and version.

python -m tests.compat.catalog.recorded 127.0.0.1:9092 [CATALOG...]     record the responses of a broker
"""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.compat.catalog.case import Case

DATA = Path(__file__).parent.parent.parent / "data" / "catalog"
CATALOGS = (
    "api_versions",
    "metadata",
    "topics",
    "partitions",
    "produce",
    "batches",
    "idempotence",
    "fetch",
    "fetch_sessions",
    "list_offsets",
    "producer_ids",
    "configs",
    "cluster",
    "topic_partitions",
    "config_changes",
    "config_resources",
    "log_dirs",
    "quorum",
    "leader_epochs",
    "deleted_records",
    "producers",
    "elections",
    "security",
    "features",
    "group_members",
    "group_offsets",
    "group_admin",
    "consumer_groups",
    "replica_log_dirs",
)


def cases(catalog: str) -> list[Case]:
    found: list[Case] = importlib.import_module(f"tests.compat.catalog.{catalog}").CASES
    return found


def all_cases() -> Iterator[tuple[str, Case, int]]:
    for catalog in CATALOGS:
        for case in cases(catalog):
            for version in case.all_versions():
                yield catalog, case, version


def key(case: Case, version: int) -> str:
    return f"{case.name} v{version}"


def load(catalog: str) -> dict[str, Any]:
    path = DATA / f"{catalog}.json"
    responses: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return responses


def save(catalog: str, responses: dict[str, Any]) -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(response, sort_keys=True)}" for name, response in responses.items()]
    (DATA / f"{catalog}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(bootstrap: str, *catalogs: str) -> None:
    from tests.compat.catalog.runner import Run

    host, _, port = bootstrap.rpartition(":")
    for catalog in catalogs or CATALOGS:
        responses: dict[str, Any] = {}
        for case in cases(catalog):
            for version in case.all_versions():
                assert key(case, version) not in responses, f"duplicate case name: {case.name}"
                responses[key(case, version)] = Run((host, int(port)), version).responses(case)
        save(catalog, responses)
        print(f"{catalog}: {len(responses)} responses")


if __name__ == "__main__":
    main(*sys.argv[1:])
