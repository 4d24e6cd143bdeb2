"""The commands that train: run and tune."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from rankbench.cli import completion, options
from rankbench.cli.looking import stored_study
from rankbench.cli.options import RESULTS, as_options, conditions_of, option, redraws_of, refuse_odd_joining, seconds_of
from rankbench.core.errors import UserError

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415

Tuned = Annotated[
    str,
    typer.Argument(
        metavar="SOLVER[param=value,...]", help="Also path/to/file.py:Class.", autocompletion=completion.solvers
    ),
]
Chooses = Annotated[str, option("--metric", "METRIC", "The metric that chooses the best trial.", completion.metrics)]
Cuts = Annotated[str, option("--validation", "SPLIT", "How to cut validation sets.", completion.splits)]
Method = Annotated[
    str, option("--method", "NAME", "random, halving (the best go on with more steps) or tpe (by Optuna).")
]


Patience = Annotated[
    int | None, option("--patience", "N", "Stop early: end a trial after N steps without a better value.")
]
Widen = Annotated[
    int | None, option("--widen", "N", "How often ranges grow whose best value is the outermost: 4, or 0.")
]


def run(
    experiments: options.Names = None,
    solver: options.Solvers = None,
    data: options.Data = None,
    repetitions: options.Repetitions = None,
    redraw: options.Redraw = "splits,search,start",
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    threads: options.Threads = 1,
    timeout: options.Timeout = "10m",
    memory: options.Memory = "none",
    trials: options.Trials = None,
    full: options.Full = False,
    dry_run: options.DryRun = False,
    rerun: options.Rerun = "",
    join: options.Join = False,
    wait: options.Wait = False,
    scheduler: options.Scheduler = None,
    wait_for_workers: options.WaitForWorkers = "5m",
    scheduler_timeout: options.SchedulerTimeout = "1m",
    report: options.Report = True,
    out: options.Out = RESULTS,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Run experiments, reusing stored results, and write the report.

    Example: rankbench run park2015-table1 -s sgd[rank=20] -s global -r 5

    Example: rankbench run gunasekar2016-table2 -r 10 --redraw start

    Example: rankbench run park2015-table1 --out /shared/results --join --wait

    Example: rankbench run park2015-table1 --scheduler tcp://10.0.0.1:8786
    """
    from rankbench.api.session import Session
    from rankbench.api.terminal import Terminal
    from rankbench.cli.opening import results_in
    from rankbench.cli.showing.runs import preview_all, run_all
    from rankbench.execution.cluster.waiting import Waits
    from rankbench.execution.workplace import workplace_at
    from rankbench.records.cells import Selection

    with as_options():
        about = (tuple(solver or ()), tuple(data or ()), repetitions, seed, threads, full, trials)
        selection = Selection(*about, redraws_of(redraw))
    refuse_odd_joining(join, wait, dry_run)
    conditions = conditions_of(jobs, timeout, memory, rerun, join, wait)
    names, display = experiments or ["all"], Terminal(quiet, verbose)
    waits = Waits(
        seconds_of(wait_for_workers, "--wait-for-workers"), seconds_of(scheduler_timeout, "--scheduler-timeout")
    )
    with workplace_at(None if dry_run else scheduler, conditions.jobs, display.complain, waits) as workplace:
        session = Session(results_in(out), selection, conditions, workplace, display)
        raise typer.Exit(preview_all(session, names, verbose) if dry_run else run_all(session, names, report))


def verify(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT|FILE", autocompletion=completion.stored)],
    sample: Annotated[int, option("--sample", "N", "How many cells, drawn at random.")] = 20,
    every: Annotated[bool, typer.Option("--all", help="Every cell and trial that has a result.")] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Accept a part of the experiment, or one with other settings.")
    ] = False,
    draw: Annotated[int | None, option("--draw", "N", "The seed of the sample; by default a new one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was found as JSON.")] = False,
    signers: Annotated[
        Path | None, option("--signers", "FILE", "Who may have signed the archive: allowed signers of ssh-keygen.")
    ] = None,
    seed: options.OfSeed = None,
    full: options.OfFull = None,
    jobs: options.Jobs = 1,
    timeout: options.Timeout = "10m",
    out: options.Stored = RESULTS,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Check that stored results are what their experiment gives. Exit code 1 if anything differs, 2 for wrong use.

    The plan is made again, each result is checked by itself, and so are the page and the tables of an archive. A sample
    of cells and trials is run again: everything but the times must come out the same to the last byte.

    Example: rankbench verify gunasekar2016-table2 --sample 5

    Example: rankbench verify park.zip --all --json
    """
    from rankbench.api.session import Session
    from rankbench.api.terminal import Terminal
    from rankbench.cli.opening import is_archive, results_in
    from rankbench.cli.showing.runs import show_verification
    from rankbench.verification.verify import Extent, StudyFiles

    if sample < 1:
        raise UserError(f"--sample {sample} is out of range: must be at least 1")
    if signers is not None and not (is_archive(name) and signers.is_file()):
        raise UserError(f"--signers {signers} needs a file of allowed signers, and an archive that they have signed")
    kept = StudyFiles.of(stored_study(out, name, seed, full), is_archive(name), signers)
    conditions, display = conditions_of(jobs, timeout), Terminal(quiet, verbose)
    session = Session(results_in(out), conditions=conditions, display=display)
    extent = Extent(None if every else sample, secrets.randbelow(10**6) if draw is None else draw, partial)
    raise typer.Exit(show_verification(session.verify(kept, extent), as_json))


def tune(
    solver: Tuned,
    data: Annotated[str, option("-d/--data", "DATA", "The data set to tune on.", completion.data_sets)],
    space: Annotated[
        list[str] | None,
        option("--space", "KEY=VALUES", "lam=1..1000:log, rank=5..20 or loss=hinge|logistic. Repeatable."),
    ] = None,
    split: Annotated[
        str, option("--split", "SPLIT", "How to split off the test set.", completion.splits)
    ] = "entries[test=0.2]",
    metric: Chooses = "pairwise-error",
    validation: Cuts = "entries[test=0.2]",
    trials: Annotated[int, option("--trials", "N", "How many settings to try.")] = 8,
    method: Method = "random",
    draws: Annotated[str, option("--draws", "NAME", "sobol: spread evenly over the space; or random.")] = "sobol",
    widen: Widen = None,
    steps: Annotated[int, option("--steps", "N", "Steps of the solver.")] = 20,
    patience: Patience = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    threads: options.Threads = 1,
    timeout: options.Timeout = "10m",
    memory: options.Memory = "none",
    rerun: options.Rerun = "",
    out: options.Out = RESULTS,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Tune one solver on one data set, and print how to run it with the best settings.

    Example: rankbench tune sgd[rank=5] -d low-rank --space lam=1..1000:log --trials 8
    """
    from dataclasses import replace

    from rankbench.api.session import Session
    from rankbench.api.terminal import Terminal
    from rankbench.cli.opening import results_in
    from rankbench.cli.showing.runs import tune_one
    from rankbench.experiments import Budget
    from rankbench.experiments.spaces import Tune, read_space
    from rankbench.planning.tuning import alone
    from rankbench.planning.widening import rounds_of
    from rankbench.records.cells import Selection

    kind = Tune(method=method, draws=draws, widen=rounds_of(method, widen))  # type: ignore[arg-type]  # checked there
    with as_options():
        selection = Selection(seed=seed, threads=threads)
        spaces = {solver: read_space(space or ())}
        wanted = replace(kind, space=spaces, trials=trials, metric=metric, validation=validation)
        experiment = alone(solver, data, split, wanted, Budget(steps, patience=patience))
    conditions, display = conditions_of(jobs, timeout, memory, rerun), Terminal(quiet, verbose)
    raise typer.Exit(tune_one(Session(results_in(out), selection, conditions, display=display), experiment))
