"""README's tables of results: what is in bold there is what is in bold in the reports."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "write_readme_tables.py"
HEAD = "data,split,metric,solver,measured,n,low,p,verdict"


@pytest.mark.parametrize(
    ("lines", "bold"),
    [
        (("a,0.7,3,0.6,0.01,better", "b,0.6,3,0.5,0.01,worse"), ["yes", ""]),
        (("a,0.7,3,0.6,0.4,open", "b,0.69,3,0.5,0.4,open"), ["yes", "yes"]),
        (("a,0.7,1,0.6,0.01,better", "b,0.6,1,0.5,0.01,worse"), ["", ""]),
    ],
)
def test_bold_is_what_is_not_worse_by_several_repetitions(tmp_path, monkeypatch, lines, bold):
    spec = spec_from_file_location("write_readme_tables", SCRIPT)
    script = module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "write_readme_tables", script)
    spec.loader.exec_module(script)
    folder = tmp_path / "reports" / "tables"
    folder.mkdir(parents=True)
    (folder / "mine.csv").write_text("\n".join([HEAD, *(f"d,s,ndcg,{line}" for line in lines)]) + "\n")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    assert [line["best"] for line in script._lines("mine")] == bold
