"""Reports: one self-contained HTML file each, with the answer first, then tables and interactive plots.

`page(title, sections)` makes one of any tables and figures; `sim.reports.answer` has that of sim.run.
"""

from sim.reports.page import check, page, write
from sim.reports.parts import Cell, Code, Figure, Section, Table, Text

__all__ = ["Cell", "Code", "Figure", "Section", "Table", "Text", "check", "page", "write"]
