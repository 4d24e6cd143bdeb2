"""Hypothesis strategies for settings of every type."""

from typing import Annotated, Literal, Union, get_args, get_origin

from hypothesis import settings
from hypothesis import strategies as st

from rankbench.names import Limits

patient = settings(deadline=None)  # a slow machine is no failure

PLAIN = st.text(st.characters(categories=["L", "N"], include_characters="-_./@:"), min_size=1, max_size=12)


def numbers(plain, limits):
    """Ints or floats within limits, open borders kept out."""
    low = [limit for limits_ in limits for limit in (limits_.low, limits_.above) if limit is not None]
    high = [limit for limits_ in limits for limit in (limits_.high, limits_.below) if limit is not None]
    low, high = max(low, default=None), min(high, default=None)
    if plain is int:
        drawn = st.integers(low, high)
    else:
        drawn = st.floats(low, high, allow_nan=False, allow_infinity=False)
    return drawn.filter(lambda value: all(limits_.allow(value) for limits_ in limits))


def values(hint):
    """What may stand in a field of this type."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        limits = [note for note in notes if isinstance(note, Limits)]
        return numbers(inner, limits) if inner in (int, float) else values(inner)
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) in (Union, type(int | None)):
        return st.one_of(*(st.none() if arg is type(None) else values(arg) for arg in get_args(hint)))
    return {bool: st.booleans(), str: PLAIN, int: st.integers(), float: st.floats(allow_nan=False)}[hint]
