"""Settings are converted to their types and checked against limits; errors name the subject and the remedy."""

from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from names.drawing import patient, values
from names.things import Bare

from rankbench.core.errors import UserError
from rankbench.names import Limits, build, check, parse, settings_of, show


@dataclass(frozen=True)
class Everything:
    """One setting of each type."""

    count: Annotated[int, Limits(low=1, high=9)] = 3
    amount: Annotated[float, Limits(above=0, below=2)] = 1.0
    limit: Annotated[int, Limits(low=1)] | None = None
    flag: bool = False
    kind: Literal["red", "green"] = "red"
    text: str = "abc"
    free: float = 0.0
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)


@patient
@given(st.data())
def test_a_record_of_every_type_survives_being_written_and_read(data):
    hints = get_type_hints(Everything, include_extras=True)
    chosen = {f.name: data.draw(values(hints[f.name])) for f in fields(Everything)}
    record = build(Everything, chosen, "everything")
    assert settings_of(record) == chosen
    assert build(Everything, parse(show("everything", chosen)).settings, "everything") == record


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"count": "7"}, 7),
        ({"count": 7.0}, 7),
        ({"count": np.int64(7)}, 7),
        ({"amount": "1e-3"}, 0.001),
        ({"amount": 1}, 1.0),
        ({"amount": np.float32(0.5)}, 0.5),
        ({"limit": "none"}, None),
        ({"limit": None}, None),
        ({"limit": "5"}, 5),
        ({"flag": "true"}, True),
        ({"flag": "false"}, False),
        ({"kind": "green"}, "green"),
        ({"text": "x"}, "x"),
        ({"free": "inf"}, np.inf),
    ],
)
def test_a_setting_is_read_by_its_type(settings, expected):
    (key,) = settings
    value = getattr(build(Everything, settings, "thing"), key)
    assert value == expected and type(value) is type(expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": "1.5"}, "thing: count=1.5 is not of type int"),
        ({"count": 1.5}, "thing: count=1.5 is not of type int"),
        ({"count": True}, "thing: count=True is not of type int"),
        ({"count": "many"}, "thing: count=many is not of type int"),
        ({"count": None}, "thing: count=None is not of type int"),
        ({"count": float("inf")}, "thing: count=inf is not of type int"),
        ({"count": 0}, "thing: count=0 is out of range: must be at least 1 and at most 9"),
        ({"count": "10"}, "thing: count=10 is out of range"),
        ({"amount": "much"}, "thing: amount=much is not of type float"),
        ({"amount": True}, "thing: amount=True is not of type float"),
        ({"amount": 0}, "thing: amount=0 is out of range: must be above 0 and below 2"),
        ({"amount": 2.0}, "thing: amount=2 is out of range"),
        ({"amount": "nan"}, "thing: amount=nan is out of range"),
        ({"limit": 0}, "thing: limit=0 is out of range: must be at least 1"),
        ({"flag": "yes"}, "thing: flag=yes is not of type bool"),
        ({"flag": 1}, "thing: flag=1 is not of type bool"),
        ({"kind": "gren"}, "thing: unknown value of kind: 'gren'; did you mean 'green'"),
        ({"kind": "x"}, "known: green, red"),
        ({"cuont": 3}, "unknown setting of thing: 'cuont'; did you mean 'count'"),
        ({"version": 2}, "unknown setting of thing: 'version'"),
    ],
)
def test_a_wrong_setting_names_the_thing_the_value_and_the_remedy(settings, message):
    with pytest.raises(UserError) as error:
        build(Everything, settings, "thing")
    assert message in str(error.value)


def test_a_record_made_by_hand_is_checked_too():
    assert Everything(count="4").count == 4
    with pytest.raises(UserError, match="Everything: count=0 is out of range"):
        Everything(count=0)


def test_what_has_no_settings_takes_none():
    assert build(Bare, {}, "bare") == Bare()
    with pytest.raises(UserError, match="bare has no settings: 'x'"):
        build(Bare, {"x": 1}, "bare")


def test_a_setting_without_default_that_is_not_given_is_named():
    @dataclass(frozen=True)
    class Demanding:
        must: int

    with pytest.raises(UserError, match=r"thing: .*missing.*'must'"):
        build(Demanding, {}, "thing")


@patient
@given(st.floats(allow_nan=False), st.sampled_from(["low", "high", "above", "below"]), st.floats(allow_nan=False))
def test_limits_allow_what_they_say(limit, side, value):
    allowed = {"low": value >= limit, "high": value <= limit, "above": value > limit, "below": value < limit}
    limits = Limits(**{side: limit})
    assert limits.allow(value) == allowed[side]
    assert not limits.allow(float("nan"))
    assert str(limits).startswith({"low": "at least", "high": "at most"}.get(side, side))
