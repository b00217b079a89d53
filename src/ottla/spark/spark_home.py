"""A home for Spark on one machine, without its own archive of PySpark.

Spark puts `python/lib/pyspark.zip` on the path of every Python process that it starts, and Python compiles what it imports from an archive
anew each time: 0.5 s of CPU for each stream that starts and each first task. On one machine the installed PySpark is the same, compiled.
"""

import hashlib
import os
from pathlib import Path

PARTS = ("bin", "jars", "sbin", "conf", "licenses", "RELEASE")
"""What is linked to; `python` is what is left out."""


def home_without_archive(installed: Path, cache: Path) -> Path:
    """A directory that has what Spark's own home has, but for the archive."""
    name = hashlib.sha256(str(installed).encode()).hexdigest()[:12]
    home = cache / f"spark-{name}"
    home.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        link, target = home / part, installed / part
        if target.exists() and not (link.is_symlink() and os.readlink(link) == str(target)):
            fresh = home / f".{part}.{os.getpid()}"
            fresh.symlink_to(target)
            fresh.replace(link)
    return home
