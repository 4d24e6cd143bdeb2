"""The commands for a user's own data, runs and votes: compare solvers, write the experiment file, judge, rank."""

import shlex
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankbench.cli import completion, options
from rankbench.cli.options import RESULTS, as_options, conditions_of, option, seconds_of
from rankbench.core.errors import UserError
from rankbench.core.lines import show
from rankbench.own_data import REPETITIONS

if TYPE_CHECKING:
    from rankbench.own_data.choosing import Wishes

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE[sep=;,user=NAME,...]",
        help="A file of CSV, Parquet or JSON lines, or a known data set.",
        autocompletion=completion.data_sets,
    ),
]
Compared = Annotated[
    list[str] | None,
    option(
        "-s/--solver",
        "SOLVER",
        "Compare these with the floor; also path/to/file.py:Class. Repeatable.",
        completion.solvers,
    ),
]
Metrics = Annotated[
    list[str] | None,
    option("--metric", "METRIC", "The metrics; the first one decides. Repeatable.", completion.metrics),
]
HowSplit = Annotated[str, option("--split", "SPLIT", "How to split off the test part.", completion.splits)]
Time = Annotated[
    str,
    option("--time", "5m", "Time for everything: 30s, 5m or none; by default a minute, more for more rows."),
]
Tried = Annotated[int | None, option("--trials", "N", "Trials of each solver that is tuned.")]
OwnJobs = Annotated[int | None, option("-j/--jobs", "JOBS", "Trainings to run at a time; by default one on each core.")]
Repeated = Annotated[int, option("-r/--repetitions", "REPS", "How often the data is split anew.")]


Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="[NAME=]RUN...",
        help="Files of scores; model-{seed}.run stands for repetitions, RUN[score=NAME] names a column.",
    ),
]
Judged = Annotated[
    list[str] | None,
    option("--metric/--metrics", "METRIC", "The metrics; the first one decides. Repeatable."),
]
Convention = Annotated[
    str, option("--convention", "TOOL", "Evaluate as this tool does: trec_eval, ranx, LensKit and others.")
]
Relevant = Annotated[
    float | None, option("--relevant", "X", "The lowest relevance that counts as relevant; by default 1.")
]
Margin = Annotated[
    float | None,
    option("--margin", "X", "Solvers that differ by less in the first metric are equal; else 1 % of the best mean."),
]


Model = Annotated[
    str, option("--model", "MODEL", "bradley-terry, davidson, plackett-luce and others; else a fitting one.")
]
Covariates = Annotated[
    list[str] | None,
    option("--covariate", "COLUMN", "Estimate its effect, too: of length_left and length_right `length`. Repeatable."),
]
Penalty = Annotated[
    float | None, option("--penalty", "X", "Add half so many wins and losses to each item; else where it is needed.")
]
Intervals = Annotated[
    str, option("--intervals", "HOW", "sandwich, bootstrap or none; else robust errors where possible.")
]
Clusters = Annotated[
    str, option("--clusters", "WHAT", "What is drawn again: judges, or comparisons; else judges if known.")
]


def on(
    context: typer.Context,
    file: File,
    solver: Compared = None,
    metric: Metrics = None,
    split: HowSplit = "",
    time: Time = "",
    trials: Tried = None,
    repetitions: Repeated = REPETITIONS,
    margin: Margin = None,
    seed: options.Seed = 0,
    jobs: OwnJobs = None,
    threads: options.Threads = 1,
    timeout: Annotated[str, option("--timeout", "10m", "Time limit of a training.")] = "10m",
    memory: Annotated[str, option("--memory", "8G", "Memory limit of a training.")] = "none",
    report: options.Report = True,
    out: options.Out = RESULTS,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare solvers on your own data: a split and metrics that suit it, equal tuning, and a verdict with intervals.

    Example: rankbench on ratings.csv

    Example: rankbench on pairs.csv -s my_solver.py:Mine --time 5m
    """
    from rankbench.api.anytime import cores, usual_seconds
    from rankbench.api.session import Session
    from rankbench.api.terminal import Terminal
    from rankbench.cli.opening import results_in
    from rankbench.cli.showing.answers import answered
    from rankbench.own_data.fitting_choice import choice_for
    from rankbench.planning.materials import Materials
    from rankbench.records.cells import Selection

    wishes = _wishes(solver, metric, split, trials, repetitions, margin, seed)
    with as_options():
        selection = Selection(seed=seed, threads=threads)
    materials = Materials(seed)
    choice = choice_for(file, wishes, materials)
    conditions = conditions_of(cores() if jobs is None else jobs, timeout, memory, "failed")
    session = Session(results_in(out), selection, conditions, display=Terminal(quiet, verbose))
    seconds = seconds_of(time, "--time") if time else usual_seconds(choice.facts.rows)
    as_init = shlex.join(["rankbench", "init", *_given_to(init, context)])
    raise typer.Exit(answered(session, choice, materials, seconds, report, as_init))


def _given_to(command: Callable[..., None], context: typer.Context) -> list[str]:
    """The words of the command line that another command takes, too."""
    words: list[str] = []
    for one in context.command.params:
        source = context.get_parameter_source(str(one.name))
        if one.name in signature(command).parameters and source and source.name == "COMMANDLINE":
            value = context.params[str(one.name)]
            for each in value if isinstance(value, list | tuple) else [value]:
                words += [*one.opts[:1], str(each)] if one.param_type_name == "option" else [str(each)]
    return words


def judge(
    runs: Runs,
    truth: Annotated[
        str | None, option("--truth", "FILE", "What is relevant to whom; else a column of the run.")
    ] = None,
    metric: Judged = None,
    convention: Convention = "rankbench judge",
    relevant: Relevant = None,
    published: Annotated[
        str, option("--published", "NUMBER", "Name the conventions under which the run has this number, as printed.")
    ] = "",
    margin: Margin = None,
    name: Annotated[str, option("--name", "NAME", "Store the results under this name.")] = "",
    report: options.Report = True,
    out: options.Out = RESULTS,
    quiet: options.Quiet = False,
) -> None:
    """Judge scores that any tool wrote, TREC runs, CSV, Parquet, JSON or matrices, with intervals, tests and tiers.

    Example: rankbench judge bpr.run ease.run --truth test.qrels

    Example: rankbench judge bpr.run --truth test.qrels --metric ndcg@10 --published 0.3817
    """
    from rankbench.api.session import Session
    from rankbench.api.terminal import Terminal
    from rankbench.cli.opening import results_in
    from rankbench.cli.showing.answers import show_conventions, show_judgement

    metrics = tuple(metric or ())
    if published:
        if len(metrics) != 1:
            raise UserError("--published is a number of one metric", remedy="name it: --metric ndcg@10")
        raise typer.Exit(show_conventions(runs, truth, metrics[0], published))
    session = Session(results_in(out), display=Terminal(quiet))
    how = {"metrics": metrics, "convention": convention, "relevant": relevant, "margin": margin, "name": name}
    raise typer.Exit(show_judgement(session, runs, truth, how, report))


def rank(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE[judge=NAME,...]", help="A table of comparisons or rankings, or a PrefLib file."),
    ],
    model: Model = "auto",
    by: Annotated[str, option("--by", "COLUMN", "Rank within each category of this column, too.")] = "",
    covariate: Covariates = None,
    side: Annotated[bool, option("--side", None, "Estimate the advantage of the left side, too.")] = False,
    penalty: Penalty = None,
    intervals: Intervals = "auto",
    clusters: Clusters = "auto",
    resamples: Annotated[int, option("--resamples", "N", "Draws of a bootstrap.")] = 1000,
    weigh_judges: Annotated[
        bool, option("--weigh-judges", None, "Weigh judges by how well they agree with the others.")
    ] = False,
    scale: Annotated[str, option("--scale", "SCALE", "log-odds, or elo.")] = "log-odds",
    judges: Annotated[bool, option("--judges", None, "Show how well each judge agrees with the others.")] = False,
    propose: Annotated[int, option("--next", "N", "Propose so many comparisons to ask for next.")] = 0,
    against: Annotated[str, option("--against", "FILE", "Compare with the leaderboard of this file.")] = "",
    seed: Annotated[int, options.seed_option("Random seed of a bootstrap and of intervals of ranks.")] = 0,
    to: Annotated[
        list[Path] | None, option("--to", "FILE", "Write it as csv, md, tex, html, png, pdf or svg. Repeatable.")
    ] = None,
) -> None:
    """Rank items from comparisons or rankings: scores and ranks with intervals, tiers, and what is not connected.

    Example: rankbench rank votes.csv

    Example: rankbench rank battles.parquet --by category --covariate length --scale elo --to board.html
    """
    from rankbench.api.ranking import rank as ranked
    from rankbench.cli.showing.answers import refuse_places, show_leaderboard

    if propose < 0:
        raise UserError(f"--next={propose} is out of range: must be at least 0")
    refuse_places(to or ())
    how: Any = {"intervals": intervals, "clusters": clusters, "scale": scale}  # checked where they are used

    def of(data: str) -> Any:
        return ranked(
            data, model=model, by=by, covariate=covariate or (), side=side, penalty=penalty,
            resamples=resamples, weigh_judges=weigh_judges, seed=seed, **how,
        )  # fmt: skip

    raise typer.Exit(show_leaderboard(of(file), judges, propose, of(against) if against else None, to or []))


def init(
    file: File,
    solver: Compared = None,
    metric: Metrics = None,
    split: HowSplit = "",
    trials: Tried = None,
    repetitions: Repeated = REPETITIONS,
    margin: Margin = None,
    to: Annotated[Path | None, option("--to", "FILE", "The file to write; by default on-NAME.toml here.")] = None,
) -> None:
    """Write the experiment file that `rankbench on` runs with the same options, commented, to change and run.

    Example: rankbench init ratings.csv --trials 16
    """
    from rankbench.own_data.experiment_file import experiment_of, name_of, text_of
    from rankbench.own_data.fitting_choice import choice_for

    choice = choice_for(file, _wishes(solver, metric, split, trials, repetitions, margin))
    experiment_of(choice)  # raises the errors of a wrong solver or metric before anything is written
    path = to or Path(f"{name_of(choice)}.toml")
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text_of(choice))
    except FileExistsError:
        raise UserError(f"{path} exists already", remedy="choose another file with --to") from None
    except OSError as error:
        raise UserError(f"cannot write to {path}: {error.strerror or error}") from None
    show(f"{path}: run it with rankbench run {path}")


def _wishes(
    solvers: list[str] | None,
    metrics: list[str] | None,
    split: str,
    trials: int | None,
    repetitions: int,
    margin: float | None,
    seed: int = 0,
) -> "Wishes":
    """What the user has said, checked."""
    from rankbench.own_data.choosing import Wishes

    with as_options():
        return Wishes(tuple(solvers or ()), tuple(metrics or ()), split, trials, repetitions, seed, margin)
