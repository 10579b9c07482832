"""Sphinx builds these pages: `make docs`."""

import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "extensions")]
logging.getLogger("pint").setLevel(logging.ERROR)  # autodoc loads modules twice
os.environ["COLUMNS"] = "84"  # of --help

project = "trainsim"
author = "the authors of trainsim"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "commands",
    "files",
    "pictures",
    "results",
    "schemas",
]
html_theme = "furo"
html_title = "trainsim"
html_show_copyright = False
html_show_sphinx = False
exclude_patterns = ["data/*"]
nitpicky = False
toc_object_entries = False  # the reference lists pages and headings, not every method

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # what a command printed is in no language

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = True
