"""The locked versions of the development environment are those that pyproject.toml allows, all with hashes."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / ".ci" / "lock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

pytestmark = pytest.mark.skipif(not LOCKS.exists(), reason="an sdist has no locks")


def locked(name: str) -> list[tuple[Requirement, str]]:
    """Each locked requirement, and the rest of its entry: its hashes."""
    text = "\n" + "".join(
        line for line in (LOCKS / name).read_text().splitlines(keepends=True) if not line.startswith("#")
    )
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if entry.strip()]
    parts = [entry.partition("\\\n") for entry in entries]
    return [(Requirement(first.strip()), rest) for first, _, rest in parts]


def here(requirement: Requirement) -> bool:
    """Whether a requirement is one of this Python on this system."""
    return requirement.marker is None or requirement.marker.evaluate({**default_environment(), "extra": ""})


OWN = {"peers": "peers.txt", "lenskit": "lenskit.txt"}  # extras that nothing else here is installed beside


@pytest.mark.parametrize("name", ["dev.txt", "tools.txt", *OWN.values()])
def test_every_locked_version_has_hashes(name):
    found = locked(name)
    assert len(found) > 10
    for requirement, rest in found:
        assert re.fullmatch(r"==[\w.!+]+", str(requirement.specifier)), requirement
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", rest), requirement


@pytest.mark.parametrize("name", ["dev.txt", *OWN.values()])
def test_what_is_needed_is_locked_in_a_version_that_is_allowed(name):
    """The lock of development has every extra but those that have locks of their own."""
    versions = {one.name: next(iter(one.specifier)).version for one, _ in locked(name) if here(one)}
    extras = PROJECT["project"]["optional-dependencies"]
    needed = [*PROJECT["project"]["dependencies"]]
    needed += PROJECT["build-system"]["requires"] if name == "dev.txt" else []
    needed += [text for extra in extras if OWN.get(extra, "dev.txt") == name for text in extras[extra]]
    for requirement in map(Requirement, needed):
        if requirement.name != "rankbench" and here(requirement):
            assert requirement.specifier.contains(versions[requirement.name.lower()]), requirement


USES = re.compile(r"uses: *(\S+)(.*)")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_and_programs_of_the_workflows_are_pinned(path):
    """An action is named by its commit, which nobody can move, with its version behind it; a program by its version."""
    text = path.read_text()
    found = USES.findall(text)
    assert found
    for action, comment in found:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" +# v\d+\.\d+\.\d+", comment), action
    for program in re.findall(r"pipx run (\S+)", text):
        assert re.fullmatch(r"[\w-]+==[\w.]+", program), program
