"""Names with settings, `name[key=value,...]`, which select solvers, data sets, splits and metrics."""

from rankbench.names.checking import (
    REPETITIONS,
    STEPS,
    THREADS,
    TRIALS,
    AddedLater,
    Checked,
    Limits,
    build,
    changed_settings,
    check,
    checked_threads,
    settings_of,
)
from rankbench.names.grammar import Pattern, Settings, Spec, parse, show, show_settings, show_value
from rankbench.names.registry import Named, ReadsFiles, Registry, with_settings, without_settings
from rankbench.names.user_files import without_folder

__all__ = [
    "REPETITIONS",
    "STEPS",
    "THREADS",
    "TRIALS",
    "AddedLater",
    "Checked",
    "Limits",
    "Named",
    "Pattern",
    "ReadsFiles",
    "Registry",
    "Settings",
    "Spec",
    "build",
    "changed_settings",
    "check",
    "checked_threads",
    "parse",
    "settings_of",
    "show",
    "show_settings",
    "show_value",
    "with_settings",
    "without_folder",
    "without_settings",
]
