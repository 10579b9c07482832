"""Statements of a text, and its functions, as op-codes: one code for all ranks.

Functions that a text calls are inlined; a text that is started is lowered once for each kind of its arguments. Expressions are in
expressions.py, primitives of `me` in primitives.py.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from sim.language.engine import layout as op
from sim.language.engine.expressions import MOST_UNROLLED, Expressions
from sim.language.engine.values import (
    NOTHING,
    ONE,
    ZERO,
    Call,
    Known,
    NotLowered,
    Number,
    Pair,
    Scope,
    Varies,
    bound,
    changed,
    in_registers,
    is_known,
    lift,
    place,
    tree_of,
)

LANGUAGE = str(Path(__file__).parents[1])


class Statements(Expressions):
    """Statements of a text, and functions."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = set()
        self.loops: list[
            tuple[list[int], list[int]]
        ] = []  # rows that leave each loop, and that go on with its next turn

    def inlined(self, call: Call) -> Any:
        """A function's statements; what it returns."""
        function = call.function
        scope, body, before = Scope(function, dict(call.given)), tree_of(function).body, self.place
        for name in set(call.given) & scope.stored:
            value = scope.names.pop(name)
            self.store(scope, name, value)
        loops, self.loops = self.loops, []
        try:
            self.body(scope, body)
        except NotLowered as error:
            if not str(error).startswith("\0"):
                where = place(function, self.node)
                raise NotLowered(f"\0{where}: `{ast.unparse(self.node).splitlines()[0][:80]}`: {error}") from error
            raise
        finally:
            self.loops = loops
        self.place = before
        self.here(*scope.returns)
        return scope.result or NOTHING

    node: ast.AST

    def body(self, scope: Scope, nodes: list[ast.stmt]) -> None:
        """Some statements."""
        for node in nodes:
            self.node = node
            if not self.place or not scope.function.__code__.co_filename.startswith(LANGUAGE):
                self.place = place(scope.function, node)
            if node in scope.pythons and self.by_python(scope, node):
                continue
            way = getattr(self, f"do_{type(node).__name__}", None)
            if way is None:
                raise NotLowered(f"{type(node).__name__} is not understood")
            top = self.top
            way(scope, node)
            if isinstance(node, ast.Expr):
                self.top = top

    def by_python(self, scope: Scope, node: ast.stmt) -> bool:
        """Have Python run a statement; whether it can."""
        names = {**scope.globals, **scope.known()}
        try:
            exec(compile(ast.Module([node], []), "text", "exec"), names)
        except (Varies, NameError):  # of a name whose own statement Python could not run
            return False
        for name in bound(node):
            if name in names:
                scope.names[name] = lift(names[name])
        return True

    def do_Expr(self, scope: Scope, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(scope, node.value)

    def do_Pass(self, scope: Scope, node: ast.Pass) -> None:
        pass

    def do_Assign(self, scope: Scope, node: ast.Assign) -> None:
        value = self.value(scope, node.value)
        for target in node.targets:
            self.bind(scope, target, value)

    def do_AnnAssign(self, scope: Scope, node: ast.AnnAssign) -> None:
        if node.value:
            self.bind(scope, node.target, self.value(scope, node.value))

    def do_AugAssign(self, scope: Scope, node: ast.AugAssign) -> None:
        if not isinstance(node.target, (ast.Name, ast.Subscript)):
            raise NotLowered("such an assignment")
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        found = self.operated(node.op, self.value(scope, load), self.value(scope, node.value))
        self.bind(scope, node.target, found)

    def do_Return(self, scope: Scope, node: ast.Return) -> None:
        value = self.value(scope, node.value) if node.value else NOTHING
        if node is tree_of(scope.function).body[-1] and not scope.returns:
            scope.result = value
            return
        if value != NOTHING:
            scope.stored.add("return")
            self.store(scope, "return", value)
            scope.result = scope.names["return"]
        scope.returns.append(self.emit(op.JUMP, 0))

    def do_If(self, scope: Scope, node: ast.If) -> None:
        test = self.truth(self.value(scope, node.test))
        if isinstance(test, Known):
            self.body(scope, node.body if test.value else node.orelse)
            return
        self.into_registers(scope, [*node.body, *node.orelse])
        names = dict(scope.names)
        jump = self.emit(op.JUMP_IF_NOT, 0, self.at(test))
        self.body(scope, node.body)
        after = scope.names
        if node.orelse:
            over = self.emit(op.JUMP, 0)
            self.here(jump)
            scope.names = {**names, **{name: value for name, value in after.items() if name in scope.stored}}
            self.body(scope, node.orelse)
            self.here(over)
        else:
            self.here(jump)
        both = {**after, **scope.names}
        scope.names = {
            name: value for name, value in both.items() if after.get(name, value) == scope.names.get(name, value)
        }

    def into_registers(self, scope: Scope, body: list[ast.stmt]) -> None:
        """Stored names that a loop or a branch changes lie in registers before it; what cannot is not known within it."""
        for name in dict.fromkeys([*bound(*body, targets=False), *changed(*body)]):
            value = scope.names.get(name)
            if name in scope.stored and value is not None and not in_registers(value):
                del scope.names[name]
            elif name in scope.stored and value is not None and is_known(value):
                del scope.names[name]
                self.store(scope, name, value)

    def do_While(self, scope: Scope, node: ast.While) -> None:
        if node.orelse:
            raise NotLowered("while ... else")
        self.into_registers(scope, [node, *node.body])
        begin = len(self.rows)
        test = self.truth(self.value(scope, node.test))
        end = [] if isinstance(test, Known) else [self.emit(op.JUMP_IF_NOT, 0, self.at(test))]
        if isinstance(test, Known) and not test.value:
            return
        self.loops.append(([], []))
        self.body(scope, node.body)
        self.emit(op.JUMP, begin)
        ends, turns = self.loops.pop()
        self.here(*ends, *end)
        for row in turns:
            self.rows[row][1] = begin

    def do_Break(self, scope: Scope, node: ast.Break) -> None:
        self.loops[-1][0].append(self.emit(op.JUMP, 0))

    def do_Continue(self, scope: Scope, node: ast.Continue) -> None:
        self.loops[-1][1].append(self.emit(op.JUMP, 0))

    def counted(self, n: Any, turn) -> None:
        """turn(k) for k from 0 to n - 1."""
        if isinstance(n, Known) and n.value <= 0:
            return
        k = Number(self.new())
        self.move(k.at, ZERO)
        with self.where(ONE if isinstance(n, Known) else self.reckon(op.LESS, k, n)):
            begin = len(self.rows)
            self.loops.append(([], []))
            turn(k)
            ends, turns = self.loops.pop()
            self.here(*turns)
            self.emit(op.REPEAT, begin, k.at, self.at(n))
            self.here(*ends)

    def do_For(self, scope: Scope, node: ast.For) -> None:
        if node.orelse:
            raise NotLowered("for ... else")
        self.into_registers(scope, node.body)
        if (
            isinstance(node.iter, ast.Call)
            and isinstance(node.iter.func, ast.Attribute)
            and node.iter.func.attr == "steps"
        ):
            self.steps(scope, node)
            return
        source = self.iterated(scope, node.iter)
        length = self.length(source)
        rows, top, names, cells = len(self.rows), self.top, dict(scope.names), set(self.cells)
        lists, returns, loops = self.lists_of_text, list(scope.returns), list(self.loops)
        if not isinstance(source, (Pair,)) and not (isinstance(length, Known) and length.value == 1):
            try:
                self.counted(length, lambda k: self.turn(scope, node, self.element(source, k)))
                self.forget(scope, node)
                return
            except NotLowered:
                if not isinstance(length, Known) or length.value > MOST_UNROLLED or self.breaks(node):
                    raise
                del self.rows[rows:], self.places[rows:]
                self.top, scope.names, self.cells = top, names, cells
                self.lists_of_text, scope.returns, self.loops = lists, returns, loops
        if self.breaks(node):
            raise NotLowered("break or continue in a loop over such a list")
        for one in self.elements(source):
            self.turn(scope, node, one)
        self.forget(scope, node)

    def breaks(self, node: ast.For) -> bool:
        return any(isinstance(one, (ast.Break, ast.Continue)) for one in ast.walk(node))

    def turn(self, scope: Scope, node: ast.For, element: Any) -> None:
        """One turn of a loop."""
        self.bind(scope, node.target, element)
        self.body(scope, node.body)

    def forget(self, scope: Scope, node: ast.For) -> None:
        """A loop's own names are not known behind it."""
        for name in bound(node.target):
            if name not in scope.stored:
                scope.names.pop(name, None)

    def steps(self, scope: Scope, node: ast.For) -> None:
        """The rounds."""
        raise NotImplementedError
