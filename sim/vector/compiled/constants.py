"""Numbers of other modules that loops have in them, once compiled: where one changes, they are compiled anew (sim.vector.compiled.kept)."""

from sim.collectives.schedule import LEAVE, NONE, POST, TAKE
from sim.vector.exchanges import SETTLED_S
from sim.verbs.book import TIE_S

__all__ = ["LEAVE", "NONE", "POST", "SETTLED_S", "TAKE", "TIE_S"]
