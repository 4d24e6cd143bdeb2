"""docs/claims.md: every test that it names is there and runs where the page says, and every claim has a day."""

import ast
import re
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRUST = "pytest.mark.trust"


def rows() -> list[list[str]]:
    """The cells of the table, a list for each claim."""
    lines = (ROOT / "docs" / "claims.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def function(path: str, name: str) -> ast.FunctionDef:
    """The definition of a test."""
    tree = ast.parse((ROOT / path).read_text())
    (found,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_claim_names_tests_that_run_where_it_says(row):
    _, shown, where, asked, day = row
    assert asked and date.fromisoformat(day) >= date(2026, 11, 25)
    tests = re.fullmatch(r"`(.*?)(?: -k (.*))?`", shown)
    assert tests, shown
    path, _, name = tests[1].partition("::")
    assert (ROOT / path).exists()
    marks = [ast.unparse(mark) for mark in function(path, name).decorator_list] if name else []
    assert where == ("`make trust`" if TRUST in marks else "`make test`")
    for word in re.findall(r"\w+", (tests[2] or "").replace(" and ", " ")):
        assert any(word in file.read_text() for file in (ROOT / path).glob("*.py"))


def test_the_page_is_read():
    assert len(rows()) > 10
