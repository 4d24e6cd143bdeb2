"""UserError: its text, and how the subject and place of an error are changed."""

import pickle

import pytest

from rankbench.core.errors import UserError, unknown


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UserError("it is wrong"), "it is wrong"),
        (UserError("it is wrong", subject="sgd"), "sgd: it is wrong"),
        (UserError("it is wrong", remedy="mend it"), "it is wrong; mend it"),
        (UserError("it is wrong", subject="sgd", remedy="mend it"), "sgd: it is wrong; mend it"),
    ],
)
def test_an_error_says_what_it_is_about_what_is_wrong_and_what_to_do(error, said):
    assert str(error) == said
    assert isinstance(error, ValueError)


def test_an_error_can_be_said_of_another_subject():
    error = UserError("lam=0 is out of range", subject="SGD", remedy="raise it").about("sgd")
    assert str(error) == "sgd: lam=0 is out of range; raise it"
    assert (error.subject, error.problem, error.remedy) == ("sgd", "lam=0 is out of range", "raise it")


@pytest.mark.parametrize(
    ("subject", "instead_of", "said"),
    [
        ("", "", "x.toml: it is wrong; mend it"),
        ("", "Budget", "x.toml: it is wrong; mend it"),
        ("sgd", "", "x.toml: sgd: it is wrong; mend it"),
        ("sgd", "Budget", "x.toml: sgd: it is wrong; mend it"),
        ("Budget", "Budget", "x.toml: it is wrong; mend it"),
    ],
)
def test_a_place_stands_before_the_subject_or_instead_of_it(subject, instead_of, said):
    error = UserError("it is wrong", subject=subject, remedy="mend it")
    assert str(error.within("x.toml", instead_of=instead_of)) == said


def test_a_place_in_a_place_stands_outermost():
    error = UserError("steps=-1 is out of range", subject="Budget")
    assert str(error.within("[budget]", instead_of="Budget").within("x.toml")) == (
        "x.toml: [budget]: steps=-1 is out of range"
    )


def test_only_the_subject_is_replaced_never_a_word_of_the_problem():
    error = UserError("Budget is what Budget needs", subject="Budget")
    assert str(error.within("x.toml", instead_of="Budget")) == "x.toml: Budget is what Budget needs"


def test_a_setting_of_the_command_line_is_said_as_its_option():
    error = UserError("seed=-1 is out of range: must be at least 0", subject="Selection", remedy="raise it")
    assert str(error.as_option()) == "--seed=-1 is out of range: must be at least 0; raise it"


@pytest.mark.parametrize(
    "error",
    [
        UserError("it is wrong"),
        UserError("it is wrong", subject="sgd", remedy="mend it"),
        unknown("fruit", "aple", ["pear", "apple"], "list fruit"),
    ],
)
def test_an_error_keeps_its_parts_on_the_way_to_another_process(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is UserError
    assert (copy.subject, copy.problem, copy.remedy) == (error.subject, error.problem, error.remedy)
    assert str(copy) == str(error)


def test_a_name_near_to_one_comes_with_that_one_and_the_remedy():
    error = unknown("fruit", "aple", ["pear", "apple"], "list fruit")
    assert str(error) == "unknown fruit 'aple'; did you mean 'apple'? (list fruit)"
    assert error.problem == "unknown fruit 'aple'"


def test_a_name_near_to_none_comes_with_all():
    assert str(unknown("fruit", "zzz", ["pear", "apple"])) == "unknown fruit 'zzz'; known: apple, pear"


def test_several_names_in_one_text_are_named_one_by_one():
    found = unknown("solver", "mf, sgd", ["mf", "sgd", "mprank"], "rankbench list solvers")
    assert str(found) == "unknown solver 'mf, sgd'; these are several: give each by itself (rankbench list solvers)"
