"""Tables in memory, of whatever package, as those of pandas."""

from typing import TYPE_CHECKING, Any

from rankbench.core.errors import UserError

if TYPE_CHECKING:
    import pandas


def pandas_of(table: Any) -> "pandas.DataFrame | None":
    """A table as a DataFrame of pandas, which Polars, Arrow and others become; None if it is no table."""
    import pandas  # noqa: PLC0415  slow to import

    if isinstance(table, pandas.DataFrame):
        return table
    if not hasattr(table, "to_pandas"):
        return None
    try:
        found = table.to_pandas()
    except ImportError as error:
        problem = f"a {type(table).__module__.partition('.')[0]} table needs another package to become one of pandas"
        raise UserError(f"{problem}: {error}", remedy='pip install "rankbench[parquet]"') from None
    return found if isinstance(found, pandas.DataFrame) else None
