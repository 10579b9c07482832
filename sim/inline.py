"""Laws as they are written on a command line: `lognormal(mean=50ms, cv=1.5)*2 + slow-ranks(rank=3, factor=1.3)`.

sum = term, any number of times "+ term"
term = primary, or primary * number
primary = name, or kind(parameter=value, ...)
value = text, [value, ...], {parameter=value, ...}, or sum

The names that stand for mixtures are here as plain numbers: help lists them, and loads no laws for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sim.base.errors import WrongSetting
from sim.base.units import number_or_text

TOKEN = re.compile(r"[()\[\]{},=*+]|(?:[^()\[\]{},=*+]|(?<=[0-9][eE])\+(?=[0-9]))+")
# Rows of mean and standard deviation in seconds, and weight: seed 003 (the AMB repository), measured on the clusters of these names.
MIXTURES: dict[str, tuple[tuple[float, float, float], ...]] = {
    "niagara": ((0, 0, 0.4), (0, 0.4, 0.3), (2, 0.3, 0.2), (5, 0.3, 0.1)),
    "cedar": ((0, 0, 0.4), (0.05, 0.04, 0.3), (0.15, 0.03, 0.2), (0.25, 0.03, 0.1)),
}
# Ranks of two jobs with stragglers: ByteDance StragglerAnalysis (Apache-2.0), Lin et al., OSDI 2025.
RECORDED = {"bytedance-ar": "bytedance_ar.toml", "bytedance-st": "bytedance_st.toml"}
NAMES = ("none", *MIXTURES)
DEEPEST, LONGEST = 8, 100_000  # nested parentheses, characters


class Inline:
    """A parser of one text.

    Args:
        text: to be read.
        named: what a name without parameters means; None if nothing.
        made: what a kind with parameters means.
        scaled: the product of such and a number's text.
        together: the sum of several.

    Raises:
        WrongSetting: the text does not have this form.
    """

    def __init__(self, text: str, named: Callable, made: Callable, scaled: Callable, together: Callable):
        self._text, self._named, self._made, self._scaled, self._together = text, named, made, scaled, together
        self._tokens = [token for found in TOKEN.findall(text[:LONGEST]) if (token := found.strip())]
        self._at, self._depth = 0, 0

    def read(self):
        """The meaning of the whole text."""
        found = self._sum()
        if self._at < len(self._tokens):
            raise self._wrong()
        return found

    def _sum(self):
        parts = [self._term()]
        while self._takes("+"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else self._together(parts)

    def _term(self):
        found = self._primary(self._word())
        while self._takes("*"):
            found = self._scaled(found, self._word() if self._next() else "")
        return found

    def _primary(self, name: str):
        return self._made(name, self._settings(name, ")")) if self._takes("(") else self._named(name)

    def _settings(self, name: str, end: str) -> dict:
        """Parameters and their values, of a law or of a table within it."""
        settings = {}
        while not self._takes(end):
            key = self._word()
            if key in settings:
                raise WrongSetting(f"--stragglers: {name}", key, "each parameter once")
            if not self._takes("="):
                raise self._wrong("= ")
            settings[key] = self._value()
            self._separates(end)
        return settings

    def _value(self):
        """A number, a text, a list of values, a table, or a law."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise WrongSetting("--stragglers", self._text, f"laws within laws, at most {DEEPEST} deep")
        found = self._list() if self._takes("[") else self._table() if self._takes("{") else self._law_or_text()
        self._depth -= 1
        return found

    def _law_or_text(self):
        return self._sum() if self._begins_a_law() else number_or_text(self._word())

    def _table(self) -> dict:
        return self._settings("a table", "}")

    def _list(self) -> list:
        values = []
        while not self._takes("]"):
            values.append(self._value())
            self._separates("]")
        return values

    def _begins_a_law(self) -> bool:
        following = self._tokens[self._at + 1 : self._at + 2]
        return following in (["("], ["*"], ["+"]) or self._named(self._next() or "", quiet=True) is not None

    def _next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _takes(self, token: str) -> bool:
        """Whether it comes next; then it is passed."""
        found = self._next() == token
        self._at += found
        return found

    def _separates(self, end: str) -> None:
        """Pass the comma that comes next, unless the end does."""
        if self._next() != end and not self._takes(","):
            raise self._wrong(f"a comma or {end} ")

    def _word(self) -> str:
        token = self._next()
        if token is None or token.strip() in "()[]{},=*+":
            raise self._wrong("a name or a number ")
        self._at += 1
        return token

    def _wrong(self, needed: str = "") -> WrongSetting:
        where = f"before {' '.join(self._tokens[self._at :])[:40]!r}" if self._next() else "at the end"
        allowed = (
            f"{needed}{where}; as in lognormal(mean=50ms, cv=1.5) or niagara*0.02 + slow-ranks(rank=3, factor=1.3)"
        )
        return WrongSetting("--stragglers", self._text, allowed)
