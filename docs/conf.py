"""How Sphinx makes the site; `make docs` runs it. Nothing here or in the pages loads anything from a network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import rankbench  # noqa: E402  found by the line above where it is not installed

project = "rankbench"
author = copyright = "The rankbench developers"
version = release = rankbench.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "command_line",
    "conventions",
    "plain_docstrings",
    *(["records"] if (HERE / "_ext" / "records.py").exists() else []),
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_ext", "_templates", "gallery"]
templates_path = ["_templates"]
default_role = "code"  # of docstrings
nitpicky = True

suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["examples"],  # made here, and left out of the repository by .gitignore
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 60,
}

html_theme = "pydata_sphinx_theme"
html_title = "rankbench"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: ["site-navigation"] for page in ("start", "splits")}  # no section is below them
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
