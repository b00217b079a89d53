"""`./dev` says clearly what it lacks, before it changes anything."""

import shutil
import subprocess
from pathlib import Path

import pytest

DEV = Path(__file__).parents[3] / "dev"


@pytest.fixture
def checkout(tmp_path):
    """An empty checkout, and a PATH with what a shell needs and no Python."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "cat", "dirname", "uname"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    shutil.copy(DEV, tmp_path / "dev")
    return tmp_path


def dev(checkout, *words):
    command = [str(checkout / "bin" / "bash"), str(checkout / "dev"), *words]
    return subprocess.run(command, env={"PATH": str(checkout / "bin")}, capture_output=True, text=True, check=False)


def fake(checkout, name, text):
    path = checkout / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{checkout}/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("word", ["setup", "run", "test", "lint", "bench"])
def test_without_python_each_word_says_so(checkout, word):
    done = dev(checkout, word)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("dev: Python 3.11 or newer is needed and none was found")
    assert not (checkout / ".venv").exists()


def test_an_old_python_is_passed_over(checkout):
    fake(checkout, "python3", "exit 1")  # what the check for 3.11 ends with
    assert dev(checkout, "run").stderr.startswith("dev: Python 3.11 or newer is needed")


def test_a_python_without_venv_is_explained(checkout):
    fake(checkout, "python3", 'case "$2" in *ensurepip*) exit 1 ;; esac')
    done = dev(checkout, "run")
    assert done.returncode == 1
    assert "install its venv module" in done.stderr


def test_elsewhere_than_linux_and_macos_it_says_where_ottla_runs(checkout):
    fake(checkout, "uname", "echo MINGW64_NT")
    done = dev(checkout, "run")
    assert (done.returncode, done.stderr) == (
        1, "dev: Ottla runs on Linux (and, untested, on macOS), not on MINGW64_NT. On Windows use WSL 2.\n",
    )  # fmt: skip


def test_an_unknown_word_shows_the_known_ones(checkout):
    done = dev(checkout, "tset")
    assert done.returncode == 1
    assert "./dev test [ARGS]" in done.stderr
    assert done.stderr.endswith("dev: unknown word: tset\n")


def test_without_a_word_it_helps(checkout):
    done = dev(checkout)
    assert done.returncode == 0
    assert done.stdout.startswith("./dev run [ARGS]")
