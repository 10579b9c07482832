"""Loops: over a few known items one after another, over others by a counter."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from sim.engine.kernel import ops
from sim.engine.lowering.scope import Scope
from sim.engine.lowering.values import Value

UNROLLED = 2  # items of a range


class Loops(Scope):
    """Scopes with loops."""

    def counter(self, first: Value, stop: Callable[[], Value], node: ast.AST) -> tuple[int, str, str]:
        """A register that counts up to what is found each time, and the labels of its loop, which has begun."""
        register, begin, end = self.fresh(), self.tag(), self.tag()
        self.code.emit(ops.MOV, register, self.scalar(first, node))
        self.code.label(begin)
        self.code.emit(ops.BRZ, self.alu(ops.LESS, register, self.scalar(stop(), node)).at, end)
        return register, begin, end

    def count_on(self, register: int) -> None:
        """The next number."""
        self.code.emit(ops.ALU, ops.PLUS, register, register, self.code.constant(1))

    def over(self, many: Value, node: ast.AST, each: Callable[[Value], object]) -> None:
        """Do something for each of several items."""
        known = many.kind == "const" and isinstance(many.at, range | tuple | list)
        if many.kind == "items" or (known and (not isinstance(many.at, range) or len(many.at) <= UNROLLED)):
            self._one_by_one([item if isinstance(item, Value) else Value("const", item) for item in many.at], each)
            return
        register, begin, end = self.counter(*self._bounds(many, node), node)
        self.around(begin, end, lambda: each(self._item(many, register)), lambda: self.count_on(register))

    def _one_by_one(self, items: list[Value], each: Callable[[Value], object]) -> None:
        """Do it for known items, one after another, up to one after which nothing is reached."""
        end = self.tag()
        for item in items:
            again = self.tag()
            self.within(again, end, partial(each, item))
            self.code.label(again)
            if not self.frame.live and again not in self.left:
                break
            self.frame.live = True
        self.code.label(end)
        self.frame.live = self.frame.live or end in self.left

    def within(self, again: str, end: str, body: Callable[[], object]) -> None:
        """The body of a loop, for which `continue` and `break` lead to these labels."""
        self.breaks.append(end)
        self.continues.append(again)
        body()
        self.breaks.pop()
        self.continues.pop()

    def around(self, begin: str, end: str, body: Callable[[], object], after: Callable[[], object]) -> None:
        """A loop: its body, what comes after it each time, and the way back."""
        again = self.tag()
        self.within(again, end, body)
        self.frame.live = True
        self.code.label(again)
        after()
        self.code.emit(ops.JMP, begin)
        self.code.label(end)

    def _bounds(self, many: Value, node: ast.AST) -> tuple[Value, Callable[[], Value]]:
        none = Value("const", 0)
        if many.kind == "span":
            return many.at[0], lambda: many.at[1]
        if many.kind == "const" and isinstance(many.at, range) and many.at.step == 1:
            return Value("const", many.at.start), lambda: Value("const", many.at.stop)
        if many.kind == "const" and isinstance(many.at, range):
            return none, lambda: Value("const", len(many.at))
        if many.kind == "repeated":
            return none, lambda: Value("const", many.at[1])
        if many.kind != "list":
            self.fail(node, "a loop over a range or a list is needed")
        return none, lambda: self.length(many)

    def length(self, many: Value) -> Value:
        """How many items a list has now."""
        found = Value("reg", self.fresh())
        self.code.emit(ops.ALEN, found.at, many.at)
        return found

    def _item(self, many: Value, register: int) -> Value:
        if many.kind == "repeated":
            return many.at[0]
        if many.kind == "const" and many.at.step != 1:
            start, step = self.code.constant(many.at.start), self.code.constant(many.at.step)
            return self.alu(ops.PLUS, start, self.alu(ops.TIMES, step, register).at)
        if many.kind != "list":
            return Value("reg", register)
        item = Value("reg", self.fresh(), many.whole)
        self.code.emit(ops.AGET, item.at, many.at, register)
        return item
