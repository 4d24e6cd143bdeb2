"""A file that needs a package which is not installed is told in one line, with the command that installs it."""

import pytest

import rankbench
from rankbench.core.errors import UserError
from rankbench.data import DATASETS, origins


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_without_pyarrow_the_command_that_installs_it_is_told(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(origins, "find_spec", lambda package: None)
    name = f"{kind}:{tmp_path / 'rows'}"
    assert DATASETS.resolve(name.replace("rows", "gone")).record.origin.missing().endswith("gone': check the path")
    (tmp_path / "rows").write_bytes(b"PAR1")
    said = f'reading {tmp_path / "rows"} needs the package pyarrow: pip install "rankbench[parquet]"'
    assert DATASETS.resolve(name).record.origin.missing() == said
    with pytest.raises(UserError) as caught:
        rankbench.load(name)
    assert str(caught.value) == said
