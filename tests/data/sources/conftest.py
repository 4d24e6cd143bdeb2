"""What the tests of data sources begin with: folders of the test's own, and files that it writes."""

import pytest


@pytest.fixture
def folders(monkeypatch, tmp_path):
    """Empty folders for the user's own data and for the cache."""
    monkeypatch.setenv("RANKBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def write(tmp_path):
    """A function that writes a file and returns its path."""

    def write(content, name="own.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
