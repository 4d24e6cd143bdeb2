"""Which columns of a table hold the user, the item and the number: by their names, or by the usual order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rankbench.core.errors import UserError

Role = Literal["run", "truth"]

_USERS = "user user_id userid uid query query_id qid q_id topic topic_id request session session_id u".split()
_ITEMS = "item item_id itemid iid doc doc_id docid docno document document_id movie_id movieid product i".split()
_SCORES = "score scores prediction pred predicted similarity sim".split()
_RELEVANCES = "relevance rel label target rating truth grade judgment judgement".split()
_VALUES = ("value",)
_RANKS = ("rank", "position")
_KNOWN = {*_USERS, *_ITEMS, *_SCORES, *_RELEVANCES, *_VALUES, *_RANKS}
_SETTINGS = ("user", "item", "score", "rank", "relevance")


@dataclass(frozen=True)
class Columns:
    """The places of the columns; without `value` every row counts as 1."""

    user: int
    item: int
    value: int | None
    ranks: bool = False  # the numbers are ranks, of which the lowest is the best


def plain_name(field: str) -> str:
    """The name of a column without its type, as in RecBole's `user_id:token`."""
    return field.strip().strip('"').partition(":")[0].strip().lower()


def is_header(fields: Sequence[str]) -> bool:
    """Whether the fields of a first line are names of columns."""
    return sum(plain_name(field) in _KNOWN for field in fields) >= min(2, len(fields))


def named_columns(names: Sequence[str], role: Role, given: Mapping[str, str], where: str) -> Columns:
    """The columns of a table with these names; `given` are the user's own names for them."""
    found, exact = list(map(plain_name, names)), [name.strip().strip('"') for name in names]
    chosen = {}

    def only(listed: Sequence[str], name: str) -> int:
        if listed.count(name) > 1:
            raise UserError(f"{where} has {listed.count(name)} columns {name!r}", remedy="rename all but one of them")
        return listed.index(name)

    for setting, name in given.items():
        if setting not in _SETTINGS:
            raise UserError(f"{where}: unknown setting {setting!r}", remedy=f"known: {', '.join(_SETTINGS)}")
        if name not in exact:
            raise UserError(f"{where} has no column {name!r}", remedy=f"it has {', '.join(exact)}")
        chosen[setting] = only(exact, name)

    def place(setting: str, known: Sequence[str]) -> int | None:
        name = next((one for one in known if one in found), None)
        return chosen[setting] if setting in chosen else None if name is None else only(found, name)

    user, item = place("user", _USERS), place("item", _ITEMS)
    if user is None or item is None:
        missing = "user" if user is None else "item"
        raise UserError(
            f"{where} has no column of {missing}s: its columns are {', '.join(exact)}",
            remedy=f"say which one it is: FILE[{missing}=NAME]",
        )
    score, relevance = place("score", _SCORES), place("relevance", _RELEVANCES)
    value = place("", _VALUES)
    if role == "truth":
        return Columns(user, item, next((one for one in (relevance, value, score) if one is not None), None))
    rank = place("rank", _RANKS)
    if "rank" not in chosen:
        rank = rank if score is None and value is None else None
    for one in (score, value) if rank is None else ():
        if one is not None:
            return Columns(user, item, one)
    if rank is not None:
        return Columns(user, item, rank, ranks=True)
    if relevance is not None:
        return Columns(user, item, relevance)
    raise UserError(
        f"{where} has no scores: its columns are {', '.join(exact)}",
        remedy="name the column: FILE[score=NAME], or FILE[rank=NAME] for ranks",
    )


def has_truth(names: Sequence[str], given: Mapping[str, str]) -> bool:
    """Whether a table of scores holds the relevances, too."""
    return "relevance" in given or not {plain_name(name) for name in names}.isdisjoint(_RELEVANCES)


def usual_columns(first: Sequence[str], role: Role, where: str) -> Columns:
    """The columns of a table without names, by its first line: of TREC's two kinds of files, or user, item, number."""
    if len(first) == 6 and is_number(first[3]) and is_number(first[4]):
        return Columns(0, 2, 4)  # user Q0 item rank score tag
    if len(first) == 4 and is_number(first[3]) and first[1].strip() in ("0", "Q0", "1"):
        return Columns(0, 2, 3)  # user 0 item relevance
    if len(first) >= 3 and is_number(first[2]):
        return Columns(0, 1, 2)
    if len(first) == 2 and role == "truth":
        return Columns(0, 1, None)
    raise UserError(
        f"{where}, line 1 cannot be read: {' '.join(first)[:80]!r} is neither a heading that names columns, nor a line "
        "of a TREC run (user Q0 item rank score tag), of TREC qrels (user 0 item relevance) or of user, item, number",
        remedy="give it a heading with user, item and score, or say the columns: FILE[user=NAME,item=NAME,score=NAME]",
    )


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
