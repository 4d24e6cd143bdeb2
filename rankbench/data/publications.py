"""Publications: the origins of data sets that were published as files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rankbench.core.errors import UserError
from rankbench.data.files import Files, folders
from rankbench.data.origins import Download, Held, Tell


@dataclass(frozen=True)
class Publication:
    """The origin of a data set that was published as files.

    `spec` is the data set's name with settings, for commands; empty means `name`. `needs` lists the required
    files, each as a tuple of alternative names, loose or inside an archive. `hashes` has the SHA-256 of loose
    files. A data set that can only be had from its owner has no `downloads`; `how` says how to get it.
    """

    name: str
    size: str
    licence: str
    home: str
    needs: tuple[tuple[str, ...], ...]
    downloads: tuple[Download, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    how: str = ""
    spec: str = ""

    def files(self) -> Files:
        """The files in the folders of this data set."""
        return Files.of(self.name, self._command())

    def missing(self) -> str | None:
        """The command that gets missing files, or None if none is missing."""
        files = self.files()
        if all(any(files.has(name) for name in names) for names in self.needs):
            return None
        return self._command()

    def held(self) -> list[Held]:
        """All files in the folders of this data set, with their published hashes."""
        published = dict(self.hashes)
        published |= {one.name: one.sha256 for one in self.downloads if one.sha256}
        return [Held(path, published.get(path.name)) for path in self.files().paths]

    def fetch(self, tell: Tell) -> None:
        """Download missing files into the cache."""
        from rankbench.data.fetching import fetch  # noqa: PLC0415  the network is rarely needed

        if self.missing() is None:
            return
        if not self.downloads:
            raise UserError(f"{self.name} cannot be downloaded: {self.how}; then {self._by_hand()}")
        for download in self.downloads:
            fetch(download, folders(self.name)[-1], tell, self._by_hand())

    def _command(self) -> str:
        """The command that gets the data."""
        if self.downloads:
            return f"rankbench data fetch {self.spec or self.name}"
        return f"{self._by_hand()} ({self.how})"

    def _by_hand(self) -> str:
        return f"rankbench data import {self.spec or self.name} PATH"
