"""One self-contained page of sections: the style, the plotting library and the data are inside, and nothing is loaded from a network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.base.files import check_ending, check_output, write_text
from sim.base.home import installed
from sim.version import VERSION

if TYPE_CHECKING:
    from sim.reports.parts import Section

ENDINGS = (".html", ".htm")
OPTION = "--report"
LIBRARIES = ("plotly", "jinja2")
EXTRA = "with the extra report: pip install 'anytime-trainsim[report]'"


def check(path: str | None) -> None:
    """Refuse a report that could not be made or written, before anything is run for it; None is fine.

    Raises:
        WrongSetting: another ending than .html, a path that cannot be written, or a library that is not installed.
    """
    from importlib.util import find_spec

    if path is None:
        return
    check_output(OPTION, path)
    check_ending(OPTION, path, ENDINGS)
    for library in LIBRARIES:
        if find_spec(library) is None:
            raise WrongSetting(OPTION, path, f"a Python that has the package {library}, {EXTRA}")


def page(title: str, sections: Sequence[Section], data: dict | None = None) -> str:
    """The HTML of a report.

    Args:
        title: of the page.
        sections: in order; the first has the answer.
        data: the JSON that the page is made from, which it keeps and offers to save; NaN and infinite become null.

    Raises:
        ValueError: a number in a figure that JSON does not have.
    """
    from plotly.offline import get_plotlyjs

    from sim.answers.summary import known

    template = _environment().get_template("page.html")
    return template.render(
        title=title, sections=sections, report=known(data or {}), plotly=get_plotlyjs(), version=VERSION
    )


def write(path: str | Path, text: str) -> None:
    """Write the page whole, or not at all.

    Raises:
        WrongSetting: a folder that cannot be written.
        RunFailed: the system does not take the file.
    """
    write_text(path, text)


@cache
def _environment():
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(installed("sim.reports")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False}
    return made
