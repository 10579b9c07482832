"""Sphinx builds these pages: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "extensions"), str(HERE / "generating")]

project = "trainsim"
author = "the authors of trainsim"
extensions = ["myst_parser", "blocks", "files", "pictures"]
html_theme = "furo"
html_title = "trainsim"
html_show_copyright = False
html_show_sphinx = False
exclude_patterns = ["data/*"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # what a command printed is in no language
