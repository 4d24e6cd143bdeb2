"""Tables of other packages become tables of pandas."""

import numpy as np
import pandas
import pytest

import rankbench
from rankbench.arrays.frames import pandas_of
from rankbench.core.errors import UserError

TABLE = pandas.DataFrame({"user": ["a", "a", "b"], "item": [1, 2, 1], "rating": [3.0, 4.5, 1.0]})


class Elsewhere:
    """A table of a package that converts it to pandas with the help of another package."""

    def __init__(self, table):
        self.table = table

    def to_pandas(self):
        if isinstance(self.table, Exception):
            raise self.table
        return self.table


def test_a_table_of_pandas_is_itself_and_what_is_no_table_is_none():
    assert pandas_of(TABLE) is TABLE
    assert pandas_of(Elsewhere(TABLE)) is TABLE
    assert pandas_of([1, 2]) is None and pandas_of(Elsewhere(np.zeros(3))) is None


def test_ratings_come_from_a_table_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    found = rankbench.load(arrow.Table.from_pandas(TABLE))
    expected = rankbench.load(TABLE)
    assert found.values.tolist() == expected.values.tolist() and found.user_ids.tolist() == expected.user_ids.tolist()
    assert "3 ratings" in str(rankbench.audit(arrow.Table.from_pandas(TABLE)))


def test_a_package_that_is_missing_is_named_with_the_command_that_installs_one_that_helps():
    table = Elsewhere(ImportError("pyarrow is required"))
    with pytest.raises(
        UserError, match=r"to become one of pandas: pyarrow is required; pip install .rankbench\[parquet"
    ):
        rankbench.load(table)
