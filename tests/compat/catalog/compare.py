"""Print how a broker's responses differ from the recorded ones.

python -m tests.compat.catalog.compare 127.0.0.1:9092 [CATALOG...]
"""

import sys
from collections.abc import Iterator
from typing import Any

from tests.compat.catalog.recorded import CATALOGS, cases, key, load
from tests.compat.catalog.runner import Run
from tests.compat.raw import ResponseTimeout


def differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of differing values, with both values."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in {**expected, **found}:
            yield from differences(expected.get(name, "(missing)"), found.get(name, "(missing)"), f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (left, right) in enumerate(zip(expected, found, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif expected != found:
        yield f"{path}: expected {_short(expected)}, found {_short(found)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else text[:200] + "..."


def main(bootstrap: str, *catalogs: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    requested = wrong = 0
    for catalog in catalogs or CATALOGS:
        expected = load(catalog)
        for case in cases(catalog):
            for version in case.all_versions():
                requested += 1
                try:
                    found: Any = Run((host, int(port)), version).responses(case)
                except (AssertionError, OSError, ValueError, ResponseTimeout) as error:
                    found = repr(error)
                lines = list(differences(expected[key(case, version)], found))
                wrong += bool(lines)
                for line in lines[:8]:
                    print(f"{catalog}: {key(case, version)}: {line}")
    print(f"{wrong} of {requested} answers differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
