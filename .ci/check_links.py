"""Check every link of the built site and of the repository's Markdown, without a network.

`python .ci/check_links.py build/docs` names each link to a file, page or anchor that is not there, and everything that
a page would load from elsewhere. What a reader may follow to elsewhere is not looked at.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent.parent
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
FENCED = re.compile(r"^(```+|~~~+).*?^\1[^\S\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


class Page(HTMLParser):
    """The links and the anchors of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what a tag links to, loads and is called."""
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        for name in ("href", "src"):
            if name in found:
                (self.loaded if (tag, name) in LOADED else self.links).append(found[name])


@cache
def page(path: Path) -> Page:
    """The HTML page of this file."""
    return Page(path.read_text(encoding="utf-8"))


@cache
def slugs(path: Path) -> set[str]:
    """The anchors of a Markdown file: its headings as GitHub writes them, and what it names itself."""
    text = re.sub(r"^(```+).*?^\1[^\S\n]*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    plain = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading) for heading in HEADING.findall(text)]
    made = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain]
    return {*made, *re.findall(r'(?:id|name)="([^"]+)"', text)}


def anchors(path: Path) -> set[str] | None:
    """The anchors of a file; None if it is of another kind."""
    if path.suffix == ".html":
        return page(path).anchors
    return slugs(path) if path.suffix == ".md" else None


def broken(path: Path, link: str) -> str:
    """What is wrong with a link of a file, or nothing."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() and path.suffix == ".html" else target
    if not target.exists():
        return f"{link} is not there"
    known = anchors(target) if parts.fragment and target.is_file() else None
    return "" if known is None or unquote(parts.fragment) in known else f"{link} has no such anchor"


def of_site(folder: Path) -> Iterator[str]:
    """What is wrong in the pages of a site."""
    for path in sorted(set(folder.rglob("*.html")) - set(folder.glob("_static/**/*.html"))):
        found = page(path)
        yield from (f"{path}: loads {link}" for link in found.loaded if urlsplit(link).netloc)
        yield from (f"{path}: {text}" for link in found.links + found.loaded if (text := broken(path, link)))


def of_markdown(root: Path) -> Iterator[str]:
    """What is wrong in the Markdown that people read in the repository itself."""
    for path in (*sorted(root.glob("*.md")), *sorted(root.glob("reports/*.md"))):
        text = FENCED.sub("", path.read_text(encoding="utf-8"))
        yield from (f"{path}: {said}" for link in LINK.findall(text) if (said := broken(path, link)))


def main() -> None:
    """Check, and exit with 1 if a link is broken."""
    folder = Path(sys.argv[1])
    if not (folder / "index.html").exists():
        raise SystemExit(f"{folder} has no site: run make docs")
    found = [*of_site(folder), *of_markdown(ROOT)]
    for text in found:
        print(text, file=sys.stderr)
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
