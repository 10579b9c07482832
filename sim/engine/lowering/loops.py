"""Loops: over a few known items one after another, over others by a counter."""

from __future__ import annotations

import ast
from collections.abc import Callable

from sim.engine.kernel import ops
from sim.engine.lowering.scope import Scope
from sim.engine.lowering.values import Value

UNROLLED = 2  # items of a range


class Loops(Scope):
    """Scopes with loops."""

    def counter(self, first: int, stop: Callable[[], Value], node: ast.AST) -> tuple[int, str, str]:
        """A register that counts up to what is found each time, and the labels of its loop, which has begun."""
        register, begin, end = self.fresh(), self.tag(), self.tag()
        self.code.emit(ops.MOV, register, self.code.constant(first))
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
            for item in many.at:
                each(item if isinstance(item, Value) else Value("const", item))
            return
        register, begin, end = self.counter(*self._bounds(many, node), node)
        self.around(begin, end, lambda: each(self._item(many, register)), lambda: self.count_on(register))

    def around(self, begin: str, end: str, body: Callable[[], object], after: Callable[[], object]) -> None:
        """A loop: its body, what comes after it each time, and the way back."""
        again = self.tag()
        self.breaks.append(end)
        self.continues.append(again)
        body()
        self.frame.live = True
        self.code.label(again)
        after()
        self.code.emit(ops.JMP, begin)
        self.breaks.pop()
        self.continues.pop()
        self.code.label(end)

    def _bounds(self, many: Value, node: ast.AST) -> tuple[int, Callable[[], Value]]:
        if many.kind == "const" and isinstance(many.at, range) and many.at.step == 1:
            return many.at.start, lambda: Value("const", many.at.stop)
        if many.kind == "const" and isinstance(many.at, range):
            return 0, lambda: Value("const", len(many.at))
        if many.kind == "repeated":
            return 0, lambda: Value("const", many.at[1])
        if many.kind != "list":
            self.fail(node, "a loop over a range or a list is needed")
        return 0, lambda: self.length(many)

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
        item = Value("reg", self.fresh())
        self.code.emit(ops.AGET, item.at, many.at, register)
        return item
