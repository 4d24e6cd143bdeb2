"""The folder of the cache for parsed data."""

from pathlib import Path

import pooch

from rankbench.data.files import cache_folder


def test_the_cache_is_where_the_environment_says_or_where_the_platform_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("RANKBENCH_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path(pooch.os_cache("rankbench"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert cache_folder() == Path(pooch.os_cache("rankbench")) == tmp_path / "own" / "rankbench"
