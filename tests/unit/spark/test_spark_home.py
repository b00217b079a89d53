"""SPARK_HOME without the archive of PySpark."""

import os

from ottla.spark.spark_home import home_without_archive


def test_home_has_everything_but_the_archive(tmp_path):
    installed = tmp_path / "installed"
    for part in ("bin", "jars", "sbin", "python/lib"):
        (installed / part).mkdir(parents=True)
    (installed / "jars" / "core.jar").touch()
    (installed / "python" / "lib" / "pyspark.zip").touch()
    home = home_without_archive(installed, tmp_path / "cache")
    assert sorted(os.listdir(home)) == ["bin", "jars", "sbin"]
    assert (home / "jars" / "core.jar").exists()
    assert home_without_archive(installed, tmp_path / "cache") == home


def test_wrong_links_are_replaced(tmp_path):
    installed = tmp_path / "installed"
    (installed / "jars").mkdir(parents=True)
    home = home_without_archive(installed, tmp_path / "cache")
    (home / "jars").unlink()
    (home / "jars").symlink_to(tmp_path)
    home_without_archive(installed, tmp_path / "cache")
    assert os.readlink(home / "jars") == str(installed / "jars")
