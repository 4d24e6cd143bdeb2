"""The machine and software of a run."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Machine:
    """The machine and software of a run: everything that affects its speed or the last digits of its numbers."""

    cpu: str
    cores: int
    usable_cores: int
    memory_gib: float
    system: str
    python: str
    blas: tuple[str, ...]
    compiler: str
    openmp: int
    native: bool
    debug: bool
    packages: tuple[tuple[str, str], ...]
    git: str | None
    kernels: str = ""  # digest of the compiled kernels; empty in old results, which lack it
    level: str = "baseline"  # the instruction set of the kernels; old results had but one

    def version(self, package: str) -> str:
        """The version of a package, or `absent`."""
        return dict(self.packages).get(package, "absent")

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hex digits; times may be compared between runs with equal fingerprints."""
        speed = [self.cpu, self.cores, self.usable_cores, self.python, list(self.blas), self.compiler, self.openmp]
        build = [self.native, self.debug, *([self.level] if self.level != "baseline" else [])]
        return _digits([*speed, *build, self.version("numpy"), self.version("scipy")])

    @cached_property
    def basis(self) -> str:
        """Twelve hex digits; runs with an equal basis should give the same numbers to the last bit."""
        libraries = [self.version("numpy"), self.version("scipy"), list(self.blas)]
        return _digits([self.kernels, *libraries, self.cpu, self.system.rpartition(" ")[2]])


def _digits(content: list[object]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
