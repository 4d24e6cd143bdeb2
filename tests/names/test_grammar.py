"""The grammar of names: parsing, formatting, errors and patterns."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from names.drawing import PLAIN, patient

from rankbench.core.errors import UserError
from rankbench.names import Pattern, parse, show, show_value


@pytest.mark.parametrize(
    ("text", "name", "written"),
    [
        ("sgd", "sgd", {}),
        ("sgd[]", "sgd", {}),
        ("sgd[rank=3]", "sgd", {"rank": "3"}),
        ("  sgd [ rank = 3 , lam=0.1 ] ", "sgd", {"rank": "3", "lam": "0.1"}),
        ("dir/my.py:Mine[a=b c]", "dir/my.py:Mine", {"a": "b c"}),
        ("ndcg@10", "ndcg@10", {}),
    ],
)
def test_a_name_is_taken_apart(text, name, written):
    spec = parse(text)
    assert (spec.name, spec.settings) == (name, written)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read ''"),
        ("   ", "cannot read"),
        ("[rank=3]", "expected name or name"),
        ("sgd[rank=3", "expected name or name"),
        ("sgd]", "expected name or name"),
        ("sgd[rank=3]x", "expected name or name"),
        ("sgd[[rank=3]]", "expected name or name"),
        ("sgd[rank]", r"cannot read 'rank' in 'sgd\[rank\]': expected key=value"),
        ("sgd[rank=]", "cannot read 'rank='"),
        ("sgd[=3]", "cannot read '=3'"),
        ("sgd[ ]", "expected key=value"),
        ("sgd[rank=3,rank=4]", r"'rank' is set twice in 'sgd\[rank=3,rank=4\]'"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_shows_it(text, message):
    with pytest.raises(UserError, match=message):
        parse(text)


@patient
@given(PLAIN, st.dictionaries(PLAIN, PLAIN, max_size=4))
def test_show_is_the_inverse_of_parse(name, written):
    spec = parse(show(name, written))
    assert (spec.name, spec.settings) == (name, written)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-5, "1e-05"),
        (1e300, "1e+300"),
        (3, "3"),
        (True, "true"),
        (False, "false"),
        ("a", "a"),
    ],
)
def test_a_setting_is_shown_as_it_is_written(value, shown):
    assert show_value(value) == shown


@patient
@given(st.floats(allow_nan=False))
@example(1e22)
def test_a_number_survives_being_shown(value):
    assert float(show_value(value)) == value


# ---- patterns ----


@pytest.mark.parametrize(
    ("pattern", "settings"),
    [
        ("sgd", {}),
        ("sgd", {"rank": 5}),
        ("sgd[rank=5]", {"rank": 5, "lam": 0.1}),
        ("sgd[rank=5]", {"rank": 5.0}),
        ("sgd[lam=1.0]", {"lam": 1.0}),
        ("sgd[lam=1]", {"lam": 1.0}),
        ("sgd[lam=1.0]", {"lam": 1}),
        ("sgd[lam=1e-3]", {"lam": 0.001}),
        ("sgd[lam=0.10,rank=5]", {"lam": 0.1, "rank": 5}),
        ("sgd[limit=none]", {"limit": None}),
        ("sgd[limit=inf]", {"limit": float("inf")}),
        ("sgd[centred=true]", {"centred": True}),
        ("sgd[kernel=gaussian]", {"kernel": "gaussian"}),
    ],
)
def test_a_pattern_means_what_has_the_settings_that_it_mentions(pattern, settings):
    assert Pattern.read(pattern).agrees(settings)
    assert Pattern.read(pattern).fits(("sgd", "other"), settings)
    assert not Pattern.read(pattern).fits(("sgdd",), settings)
    assert not Pattern.read(pattern).fits((), settings)


@pytest.mark.parametrize(
    ("pattern", "settings"),
    [
        ("sgd[rank=5]", {}),
        ("sgd[rank=5]", {"rank": 6}),
        ("sgd[rank=5]", {"rank": None}),
        ("sgd[rank=none]", {}),
        ("sgd[rank=none]", {"rank": 5}),
        ("sgd[rank=5,lam=1]", {"rank": 5, "lam": 2.0}),
        ("sgd[centred=true]", {"centred": False}),
        ("sgd[centred=1]", {"centred": True}),
        ("sgd[rank=10]", {"rank": "10|30"}),
        ("sgd[kernel=gaussian]", {"kernel": "linear"}),
    ],
)
def test_a_pattern_does_not_mean_what_has_other_settings_or_lacks_one(pattern, settings):
    assert not Pattern.read(pattern).agrees(settings)
    assert not Pattern.read(pattern).fits(("sgd",), settings)


def test_a_pattern_names_a_users_file_with_or_without_its_folder():
    names = ("some/where/mine.py:Mine", "mine.py:Mine")
    assert all(Pattern.read(f"{name}[rank=3]").fits(names, {"rank": 3}) for name in names)
    assert not Pattern.read("where/mine.py:Mine").fits(names, {})


@pytest.mark.parametrize("text", ["sgd", "sgd[rank=5,lam=1e-3]", "lookalike:ml-20m[share=0.5]", "x[limit=none]"])
def test_a_pattern_is_shown_as_it_was_written(text):
    assert str(Pattern.read(text)) == text
