"""Statements of a text that are drawn at random: assignments, conditions, loops, lists and arithmetic over a few names."""

from __future__ import annotations

import random

INTEGERS, NUMBERS, LISTS = ["a", "b", "k"], ["s", "t"], ["xs", "ys"]
COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
DEPTH, MOSTLY = 3, 0.98
HELPERS = """
    def picked(self, one, other):
        if one > other:
            return one
        return other - 1

    def counted(self, many, start):
        found = start
        for one in many:
            if one > 2:
                continue
            found += 1
            if found > 4:
                break
        return found

    def filled(self, many, value):
        if len(many) < 6:
            many.append(value)
        many[0] += 1
"""


class Statements:
    """The statements of one role.

    Args:
        rng: what they are drawn by.
    """

    def __init__(self, rng: random.Random):
        self._rng, self._made = rng, 0

    def begin(self) -> list[str]:
        """The first values of all names."""
        rng = self._rng
        lines = [f"{name} = {rng.randrange(4)}" for name in INTEGERS]
        lines += [f"{name} = {rng.choice(['0.5', '1', '2.25', 'me.now_s'])}" for name in NUMBERS]
        return [*lines, *(f"{name} = [{rng.randrange(3)}, {rng.randrange(3)}, 1]" for name in LISTS)]

    def some(self, most: int = 2, depth: int = 0) -> list[str]:
        """A few statements."""
        return [line for _ in range(self._rng.randrange(most + 1)) for line in self._one(depth)] or ["pass"]

    def condition(self, depth: int = 0) -> str:
        """What an `if` asks."""
        rng, deeper = self._rng, depth + 1
        kind = rng.choice(["compared"] * 4 + ["both", "not", "in", "number"]) if depth < DEPTH else "compared"
        if kind == "both":
            return f"({self.condition(deeper)}{rng.choice([' and ', ' or '])}{self.condition(deeper)})"
        if kind == "not":
            return f"not {self.condition(deeper)}"
        if kind == "in":
            return (
                f"{self.integer(deeper)} {rng.choice(['in', 'not in'])} {rng.choice([*LISTS, 'me.workers', '(1, 2)'])}"
            )
        if kind == "number":
            return self.integer(deeper)
        return f"{self.number(deeper)} {rng.choice(COMPARISONS)} {self.number(deeper)}"

    def integer(self, depth: int = 0) -> str:
        """An expression that is an integer."""
        rng, deeper = self._rng, depth + 1
        if depth >= DEPTH or rng.random() < 0.3:
            state = rng.choice(["step", "me.rank", "me.version", "me.samples", "me.minibatches", "me.step"])
            return rng.choice([str(rng.randrange(-2, 6)), rng.choice(INTEGERS), state, self._item()])
        one, other = self.integer(deeper), self.integer(deeper)
        kind = rng.choice(["sign", "sign", "call", "choice", "counted", "one"])
        if kind == "sign":
            sign = rng.choice(["+", "-", "*", "//", "%", "&", "|", "^", ">"])
            return f"({one} {sign} {self._divisor(sign, other, '| 1')})"
        if kind == "call":
            return f"{rng.choice(['min', 'max', 'self.picked'])}({one}, {other})"
        if kind == "choice":
            return f"({one} if {self.condition(deeper)} else {other})"
        if kind == "counted":
            return f"self.counted({rng.choice(LISTS)}, {one})"
        return rng.choice([f"(-{one})", f"len({rng.choice(LISTS)})"])

    def number(self, depth: int = 0) -> str:
        """An expression that is a number."""
        rng, deeper = self._rng, depth + 1
        if rng.random() < 0.5:
            return self.integer(depth)
        if depth >= DEPTH or rng.random() < 0.3:
            return rng.choice([f"{rng.uniform(-2, 4):.3g}", rng.choice(NUMBERS), "me.now_s"])
        one, other = self.number(deeper), self.number(deeper)
        kind = rng.choice(["sign", "sign", "choice", "call"])
        if kind == "sign":
            sign = rng.choice(["+", "-", "*", "/", "//", "%"])
            return f"({one} {sign} {self._divisor(sign, other, '+ 0.3')})"
        if kind == "choice":
            return f"({one} if {self.condition(deeper)} else {other})"
        return f"{rng.choice(['min', 'max', 'self.picked'])}({one}, {other})"

    def _divisor(self, sign: str, other: str, more: str) -> str:
        """The right side of an operator, which is mostly not 0 where it divides."""
        return f"({other} {more})" if sign in ("/", "//", "%") and self._rng.random() < MOSTLY else other

    def _item(self) -> str:
        name = self._rng.choice(LISTS)
        return f"{name}[{self._rng.choice(['0', '-1', '1', f'step % len({name})', 'k % 3'])}]"

    def _one(self, depth: int) -> list[str]:
        rng = self._rng
        kinds = [self._assigned] * 3 + [self._listed] * 2
        return rng.choice(kinds + [self._chosen, self._looped, self._loops, self._named] * (depth < 2))(depth)

    def _assigned(self, depth: int) -> list[str]:
        rng = self._rng
        if rng.random() < 0.2:
            one, other = rng.sample(INTEGERS, 2)
            return [f"{one}, {other} = {other}, {self.integer(1)}"]
        names, made = rng.choice([(INTEGERS, self.integer), (NUMBERS, self.number)])
        name, sign = rng.choice(names), rng.choice(["=", "=", "=", "+=", "-="])
        value = made(1)
        return [f"{name} {sign} {value}" if names is NUMBERS else f"{name} {sign} {value} % 7"]

    def _listed(self, depth: int) -> list[str]:
        rng, name = self._rng, self._rng.choice(LISTS)
        return rng.choice(
            [
                [f"if len({name}) < 6:", f"    {name}.append({self.integer(1)})"],
                [f"self.filled({name}, {self.integer(1)})"],
                [f"{self._item()} = {self.integer(1)} % 5"],
                [f"{self._item()} += {self.integer(1)} % 3"],
            ]
        )

    def _chosen(self, depth: int) -> list[str]:
        lines = [f"if {self.condition()}:", *_inside(self.some(2, depth + 1))]
        if self._rng.random() < 0.5:
            lines += ["else:", *_inside(self.some(2, depth + 1))]
        return lines

    def _looped(self, depth: int) -> list[str]:
        rng = self._rng
        over = rng.choice(["range(4)", "range(k % 4)", "range(1, 6, 2)", "range(2)", "(1, a, 2)", *LISTS, "me.workers"])
        if over in LISTS:
            return [f"for item in {over}:", *_inside(self._ended([f"{rng.choice(INTEGERS)} = item % 5"]))]
        name = rng.choice(["item", "k"])
        return [f"for {name} in {over}:", *_inside(self._ended(self.some(2, depth + 1)))]

    def _ended(self, body: list[str]) -> list[str]:
        if self._rng.random() < 0.4:
            end = [f"if {self.condition()}:", f"    {self._rng.choice(['break', 'continue'])}"]
            body = [*end, *body] if self._rng.random() < 0.5 else [*body, *end, "a += 1"]
        return body

    def _loops(self, depth: int) -> list[str]:
        self._made += 1
        name = f"n{self._made}"
        body = self.some(2, depth + 1)
        return [f"{name} = 0", f"while {name} < 3 and {self.condition()}:", f"    {name} += 1", *_inside(body)]

    def _named(self, depth: int) -> list[str]:
        self._made += 1
        name = f"z{self._made}"
        kept = f" if {self.condition(DEPTH)}" if self._rng.random() < 0.5 else ""
        made = f"[{self._rng.choice(['k', 'k * 2', 'k + a'])} for k in {self._rng.choice(['range(3)', 'me.workers', *LISTS])}{kept}]"
        return [f"{name} = {made}", f"b = (b + len({name})) % 7", f"if len({name}) > 0:", f"    a = {name}[-1] % 7"]


def _inside(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
