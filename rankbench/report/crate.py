"""An experiment's archive: its plan, results, splits, settings, versions and page, described as an RO-Crate.

    ro-crate-metadata.json    every file with its size and SHA-256, in JSON-LD by the specification RO-Crate 1.1
    results/EXPERIMENT/...    the folder of results of this run, as `store` describes it
    experiment.json           the settings of the experiment, in the profile that was run
    splits.json               each split: the names that it is made from, and the SHA-256 of its rows
    versions.json             each machine that results were made on, with all versions
    sources.json              each file of the user's own that the run used, by name and hash
    page.html, table.csv      what a reader sees without rankbench
    README.md                 how to open it

Data is not in it, because most licences forbid that: a split is made again from its names, and its hash tells whether
it is the same. Neither are the user's own files, which may be private; whoever opens the archive never runs code
from it.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import rankbench
from rankbench.core.errors import UserError
from rankbench.core.texts import address, markdown, markdown_prose
from rankbench.names import Named, without_folder
from rankbench.names.user_files import is_from_file
from rankbench.records.archive import METADATA, RESULTS, sha256_of
from rankbench.records.cells import Cell, Place
from rankbench.records.codec import encode
from rankbench.records.machines import Machine
from rankbench.records.plans import Plan
from rankbench.records.store import Store
from rankbench.records.studies import Study
from rankbench.report import manifest
from rankbench.report.manifest import ENDING, MANIFESTS, files_of_run
from rankbench.report.render.figures.series import drawing, own_metric
from rankbench.report.render.page import page
from rankbench.report.render.tables import to_csv
from rankbench.report.rows import rows
from rankbench.report.sections import Section

Files = dict[str, bytes | Path]
Node = Mapping[str, Any]
_SOFTWARE = "#rankbench"
NO_LICENCE = "No licence was chosen for these results. The data sets have licences of their own, named at each."
_ABOUT = {
    "README.md": "How to open this archive",
    "experiment.json": "The settings of the experiment",
    "splits.json": "Each split: the names that it is made from, and the SHA-256 of its rows",
    "versions.json": "The machines and versions that results were made with",
    "sources.json": "The author's own files that the run used, by name and hash",
    "page.html": "Tables and figures, to be read in a browser",
    "table.csv": "The table of results",
}
_FORMATS = {
    ".json": "application/json", ".npz": "application/zip", ".html": "text/html", ".csv": "text/csv",
    ".md": "text/markdown", ENDING: "text/plain",
}  # fmt: skip


def files_of(store: Store, plan: Plan, study: Study, licence: str = NO_LICENCE) -> Files:
    """All files of the archive of one run by their names in it, the metadata included."""
    cells = _cells(plan)
    files = _stored(store, plan)
    if not any(name.endswith(".json") and "/cells/" in name for name in files):
        raise UserError(f"no cell of {study.name} has a result yet: rankbench run {study.name}")
    machines = _machines(study)
    section = Section(study, study.name, drawing(study, own_metric(study)))
    files |= {
        "README.md": _readme(study).encode(),
        "experiment.json": encode(study.experiment).encode(),
        "splits.json": _json([_split(cell) for cell in _first_of_each_place(cells)]),
        "versions.json": _json([_version(machine) for machine in machines]),
        "sources.json": _json(_sources(cells)),
        "page.html": page([section]).encode("utf-8", "backslashreplace"),
        "table.csv": to_csv(rows(study)).encode(),
    }
    return {**files, METADATA: _json(_metadata(study, plan, files, licence))}


def there(plan: Plan, store: Store) -> tuple[int, int]:
    """How many cells of a plan, trials included, have a result, and how many there are."""
    cells = _cells(plan)
    return sum(store.path(cell).exists() for cell in cells), len(cells)


def _cells(plan: Plan) -> list[Cell]:
    return list({cell.key: cell for cell in plan.everything}.values())


def _stored(store: Store, plan: Plan) -> Files:
    """The plan's file, the files of its results, those of other machines included, and their manifest."""
    listed = manifest.path_of(store.folder, plan)
    files = [*files_of_run(store, plan), *([f"{MANIFESTS}/{listed.name}"] if listed.exists() else [])]
    return {f"{RESULTS}/{store.folder.name}/{name}": store.folder / name for name in files}


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _first_of_each_place(cells: Iterable[Cell]) -> list[Cell]:
    """A cell for each place, in the order of the plan."""
    found: dict[Place, Cell] = {}
    for cell in cells:
        found.setdefault(cell.place, cell)
    return list(found.values())


def _split(cell: Cell) -> dict[str, object]:
    """What a split is made from, and the hash of its rows."""
    place = cell.place
    names = {"data": place.data.identity, "split": place.split.identity, "repetition": place.repetition}
    more = {"validation": place.validation.identity} if place.validation else {}
    return {**names, **more, "seed": cell.seed, "sha256": cell.split_hash}


def _machines(study: Study) -> list[Machine]:
    found = (entry.result for entry in (*study.entries, *study.trials) if entry.result)
    return sorted({result.machine for result in found}, key=lambda machine: (machine.fingerprint, machine.git or ""))


def _version(machine: Machine) -> dict[str, object]:
    return {"fingerprint": machine.fingerprint, "basis": machine.basis, **json.loads(encode(machine))}


def _sources(cells: Iterable[Cell]) -> list[dict[str, str]]:
    """The user's own files, by name and by the first digits of their SHA-256."""
    named: dict[Named, None] = {}
    for cell in cells:
        own = (measure.source for measure in cell.measures if measure.source)
        named |= dict.fromkeys((cell.place.data, cell.place.split, cell.solver, *own))
    files = {without_folder(one.name): one.identity.partition("[")[0] for one in named if _is_own(one)}
    return [{"name": name, "identity": identity} for name, identity in sorted(files.items())]


def _is_own(named: Named) -> bool:
    return is_from_file(named.home) or "sha256-" in named.identity


def _readme(study: Study) -> str:
    """How to open the archive, in a few lines."""
    return f"""# {markdown(f"{study.name}: {study.experiment.title}")}

{markdown_prose(study.experiment.about.strip())}

`page.html` shows the tables and figures; `table.csv` has every number. With rankbench {rankbench.__version__} or later:

    rankbench table FILE.zip        prints the table
    rankbench verify FILE.zip       runs a sample of the cells again, and says which give the same bytes
    rankbench compare FILE.zip OTHER.zip

The data is not in this archive. `splits.json` names what each split is made from, with the SHA-256 of its rows; files
of the author's own are in `sources.json` by their hash.
"""


def _metadata(study: Study, plan: Plan, files: Files, licence: str) -> Node:
    """The RO-Crate metadata: the archive, its files, the data sets, the software and the run."""
    data = _data_sets(plan)
    results = [entry.result for entry in (*study.entries, *study.trials) if entry.result]
    published = max((result.finished for result in results), default=plan.made)
    root = {
        "@id": "./", "@type": "Dataset", "name": f"{study.name}: {study.experiment.title}",
        "description": study.experiment.about.strip() or study.experiment.title, "datePublished": published,
        "license": licence, "hasPart": [{"@id": address(name)} for name in sorted(files)],
        "mentions": [{"@id": "#run"}, *({"@id": one} for one in data)],
    }  # fmt: skip
    head = {
        "@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"},
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
    }  # fmt: skip
    software = {
        "@id": _SOFTWARE, "@type": "SoftwareApplication", "name": "rankbench",
        "version": ", ".join(sorted({result.machine.version("rankbench") for result in results})),
    }  # fmt: skip
    run = {
        "@id": "#run", "@type": "CreateAction", "name": f"{study.profile} profile, seed {study.seed}",
        "endTime": published, "instrument": {"@id": _SOFTWARE}, "object": [{"@id": one} for one in data],
        "result": {"@id": "table.csv"},
    }  # fmt: skip
    nodes = [head, root, *(_file(name, files[name]) for name in sorted(files)), *data.values(), software, run]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": nodes}


def _file(name: str, content: bytes | Path) -> Node:
    """A file's entity."""
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    return {
        "@id": address(name), "@type": "File", "name": name.rpartition("/")[2], "description": _described(name),
        "contentSize": str(size), "encodingFormat": _FORMATS[Path(name).suffix], "sha256": sha256_of(content),
    }  # fmt: skip


def _described(name: str) -> str:
    if "/plans/" in name:
        return "The plan of the run: all of its cells"
    if name.endswith(ENDING):
        return "The manifest of the run: the SHA-256 of the plan and of each result"
    if name.endswith(".npz"):
        return "Each metric's value for each user, as NumPy arrays"
    return _ABOUT.get(name, "The result of one cell: one solver trained on one split")


def _data_sets(plan: Plan) -> dict[str, Node]:
    """An entity for each data set by its address, with where it comes from and its licence, where these are known."""
    named = {cell.place.data.identity: cell.place.data for cell in plan.planned}
    return {
        address: {"@id": address, "@type": "CreativeWork", "name": data.full, "identifier": identity, **_origin(data)}
        for number, (identity, data) in enumerate(named.items(), 1)
        for address in [f"#data-{number}"]
    }


def _origin(data: Named) -> dict[str, str]:
    """A data set's home, size and licence; of a user's own data set nothing is known but its hash."""
    if _is_own(data):
        return {"description": "A data set of the author's own"}
    origin = data.record.origin
    return {"description": f"{origin.size}; {origin.home}", "license": origin.licence}
