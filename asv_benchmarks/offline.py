"""Lets asv's published pages open without a network: what they load from the web is put beside them.

    python asv_benchmarks/offline.py asv_benchmarks/html

The scripts and the style sheet are those of npm's registry, in the versions that asv asks for; each package is compared
with the SHA-512 that stands here. npm lacks one version: of the plug-in that sorts tables a later one is taken.
"""

import base64
import hashlib
import io
import re
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

REGISTRY = "https://registry.npmjs.org"
FOLDER = "vendor"  # in the folder of the pages
_TAG = re.compile(r'<(?P<kind>script|link)\b[^>]*?(?:src|href)="(?P<url>https?://[^"]+)"[^>]*>')
_SECONDS = 60


@dataclass(frozen=True)
class Package:
    """A package of the registry: its SHA-512 in base64, and by the name that a page loads the file that it is."""

    name: str
    version: str
    digest: str
    files: Mapping[str, str]

    def read(self) -> dict[str, bytes]:
        """Its files by the names that pages load; an error if the registry has another package than expected."""
        address = f"{REGISTRY}/{self.name}/-/{self.name}-{self.version}.tgz"
        try:
            with urlopen(address, timeout=_SECONDS) as answer:
                content = answer.read()
        except OSError as error:
            raise SystemExit(f"{address} cannot be read: {error}") from None
        if base64.b64encode(hashlib.sha512(content).digest()).decode() != self.digest:
            raise SystemExit(f"{address} is not the package that was expected: its SHA-512 is another one")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            members = {name: archive.extractfile(f"package/{path}") for name, path in self.files.items()}
            return {name: member.read() for name, member in members.items() if member}


PACKAGES = (
    Package(
        "jquery", "3.3.1", "Ubldcmxp5np52/ENotGxlLe6aGMvmF4R8S6tZjsP6Knsaxd/xp3Zrh50cG93lR6nPXyUFwzN3ZSOQI0wRJNdGg==",
        {"jquery-3.3.1.min.js": "dist/jquery.min.js"},
    ),
    Package(
        "flot", "0.8.3", "xg2otcTJDvS+ERK+my4wxG/ASq90QURXtoM4LhacCq0jQW2jbyjdttbRNqU2cPykrpMvJ6b2uSp6SAgYAzj9tQ==",
        {
            "jquery.flot.min.js": "jquery.flot.js",
            "jquery.flot.time.min.js": "jquery.flot.time.js",
            "jquery.flot.selection.min.js": "jquery.flot.selection.js",
            "jquery.flot.categories.min.js": "jquery.flot.categories.js",
        },
    ),
    Package(
        "flot-orderbars", "1.0.0",
        "Jv51fvzevUjNXEeozpwEKfPjhiZhfiJddv0WHjduUTCmSF+7T5K7C9c9Y1wIVmUhDBv5fLMjgbwKecT0GIKPZA==",
        {"jquery.flot.orderBars.js": "js/jquery.flot.orderBars.js"},
    ),
    Package(
        "stupid-table-plugin", "1.1.3",
        "2Vk7XouQPxUQPRe9w0Fu7ZZ8kHLK7rDoLMsCgtKxRNJ7f4dSOGvW9CkHsq5wD6QsaEnWoyLBYH3xOEsrK3yWBg==",
        {"stupidtable.min.js": "stupidtable.min.js"},
    ),
    Package(
        "blueimp-md5", "2.19.0",
        "DRQrD6gJyy8FbiE4s+bDoXS9hiW3Vbx5uCdwvcCf3zLHL+Iv7LtGHLpr+GZV8rHG8tK766FGYBwRbu8pELTt+w==",
        {"md5.min.js": "js/md5.min.js"},
    ),
    Package(
        "bootstrap", "3.1.1",
        "TAzqS8E/ISpVHP29gYhy+1NSV+FJwApDVQhDfgLYsIuUDJiqJzH2DfORN5tiu+Ie2iBLrzEG34t4Rf465cigqg==",
        {"bootstrap.min.js": "dist/js/bootstrap.min.js", "bootstrap.min.css": "dist/css/bootstrap.min.css"},
    ),
)  # fmt: skip


def loaded(page: str) -> dict[str, str]:
    """The addresses from which a page loads scripts and style sheets, by the names of the files."""
    found = (match["url"] for match in _TAG.finditer(page))
    return {url.rpartition("/")[2]: url for url in found}


def beside(page: str) -> str:
    """The page with all that it loaded from elsewhere in the folder beside it."""

    def tag(match: re.Match[str]) -> str:
        path = f"{FOLDER}/{match['url'].rpartition('/')[2]}"
        if match["kind"] == "link":
            return f'<link rel="stylesheet" href="{path}">'
        return f'<script src="{path}" onerror="js_load_failure()">'

    return _TAG.sub(tag, page)


def main(folder: Path) -> None:
    """Rewrite the main page of this folder, and put beside it what it loads."""
    page = folder / "index.html"
    text = page.read_text(encoding="utf-8")
    asked = loaded(text)
    if unknown := asked.keys() - {name for package in PACKAGES for name in package.files}:
        names = ", ".join(sorted(asked[name] for name in unknown))
        raise SystemExit(f"{page} loads {names}: add its package to {Path(__file__).name}")
    (folder / FOLDER).mkdir(exist_ok=True)
    for package in PACKAGES:
        if asked.keys() & package.files.keys():
            for name, content in package.read().items():
                (folder / FOLDER / name).write_bytes(content)
    page.write_text(beside(text), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
