"""Expressions: what is known before the run is folded, all else goes into registers."""

from __future__ import annotations

import ast
import builtins
import math
import operator
from typing import Any

from sim.engine.kernel import layout, ops
from sim.engine.lowering.assigning import Assigning
from sim.engine.lowering.program import y
from sim.engine.lowering.values import BOOK, NOTHING, NotLowered, Value, loaded
from sim.event.ranks.amounts import Amounts
from sim.protocols.base import VERBS

FIELDS = {
    "step": layout.STEP,
    "version": layout.VERSION,
    "samples": layout.SAMPLES,
    "minibatches": layout.MINIBATCHES,
    "updates": layout.UPDATES,
    "rank": layout.NUMBER,
}
BOOK_FIELDS = {"over": layout.OVER, "token": layout.TOKEN, "rounds": layout.ROUNDS}
LETTER_FIELDS = {
    "sender": layout.L_SENDER,
    "version": layout.L_VERSION,
    "samples": layout.L_SAMPLES,
    "minibatches": layout.L_MINIBATCHES,
    "note": layout.L_NOTE,
    "last": layout.L_LAST,
    "variable": layout.L_VARIABLE,
}
BINARY = {
    ast.Add: ops.PLUS,
    ast.Sub: ops.MINUS,
    ast.Mult: ops.TIMES,
    ast.Div: ops.OVER,
    ast.FloorDiv: ops.FLOOR,
    ast.Mod: ops.REST,
    ast.BitAnd: ops.AND,
    ast.BitOr: ops.OR,
    ast.BitXor: ops.XOR,
}
FOLDED = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARED = {  # the operation, and whether its sides change places
    ast.Lt: (ops.LESS, False),
    ast.LtE: (ops.AT_MOST, False),
    ast.Gt: (ops.LESS, True),
    ast.GtE: (ops.AT_MOST, True),
    ast.Eq: (ops.EQUAL, False),
    ast.NotEq: (ops.OTHER, False),
}
KNOWN = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, many: item in many,
    ast.NotIn: lambda item, many: item not in many,
}


class Expressions(Assigning):
    """A method for each kind of expression, but calls."""

    def value(self, node: ast.expr) -> Value:
        """What an expression is; what it does is emitted."""
        found = getattr(self, f"_of_{type(node).__name__}", None)
        return found(node) if found else self.fail(node)

    def _of_Constant(self, node: ast.Constant) -> Value:
        return Value("const", node.value)

    def _of_Name(self, node: ast.Name) -> Value:
        if node.id in self.frame.names:
            return self.frame.names[node.id]
        if node.id in self.frame.function.__code__.co_freevars:
            self.fail(node, "a name of a function around the text")
        scope = self.frame.function.__globals__
        return Value("const", scope[node.id] if node.id in scope else getattr(builtins, node.id))

    def _of_Attribute(self, node: ast.Attribute) -> Value:
        of, name = self.value(node.value), node.attr
        if of.kind == "me":
            return self._of_me(name)
        if of.kind == "book":
            return Value("reg", y(BOOK_FIELDS[name])) if name in BOOK_FIELDS else self.book_set(name)
        if of.kind == "letter":
            return Value("reg", of.at + LETTER_FIELDS[name]) if name in LETTER_FIELDS else self.fail(node)
        if of.kind in ("set", "list"):
            return Value("method", (of, name))
        return Value("const", getattr(of.at, name)) if of.kind == "const" else self.fail(node)

    def _of_me(self, name: str) -> Value:
        of = self.scenario
        if not self.frame.is_ours and name not in VERBS:
            raise NotLowered(f"me.{name}")
        if name == "updates" and 0 not in self.ranks:
            return Value("const", math.inf)
        if name in FIELDS:
            return Value("reg", y(FIELDS[name]))
        if name == "now_s":
            register = self.fresh()
            self.code.emit(ops.NOW, register)
            return Value("reg", register)
        if name == "book":
            return BOOK
        if name == "delays" and not of.protocol.delay_std_s:
            return NOTHING
        servers, workers = range(of.servers), range(of.servers, of.ranks)
        if name in ("neighbours", "aggregators"):
            return getattr(self, name)
        if name == "senders":
            return self.senders
        if of.protocol.layerwise and name in ("variables", "held"):
            amounts = Amounts(of)
            return Value("const", amounts.variables if name == "variables" else tuple(amounts.held_by(self.ranks[0])))
        known = {
            "scenario": of,
            "summed": bool(of.summed),
            "workers": workers,
            "servers": servers,
            "master": 0,
            "hosts": of.hosts,
        }
        return Value("const", known[name]) if name in known else Value("verb", name)

    def _of_NamedExpr(self, node: ast.NamedExpr) -> Value:
        self.assign(node.target, self.value(node.value))
        return self.value(loaded(node.target))

    def _of_Tuple(self, node: ast.Tuple | ast.List) -> Value:
        return Value("items", [self.value(one) for one in node.elts])

    def _of_List(self, node: ast.List) -> Value:
        return self._of_Tuple(node) if node.elts else self.listed(Value("items", []), node)

    def listed(self, many: Value, node: ast.AST) -> Value:
        """A new list of some items."""
        made = Value("list", self.code.list_of(4 * self.scenario.ranks + 8, self.ranks))
        self.fill(made, many, node)
        return made

    def _of_Set(self, node: ast.Set) -> Value:
        (only,) = (self.value(one) for one in node.elts)
        made = self.code.set_of(0, self.scenario.ranks, self.ranks)
        self.code.emit(ops.SETFILL, made, 0, 0)
        self.code.emit(ops.SETADD, made, self.scalar(only, node))
        return Value("set", made)

    def _of_Dict(self, node: ast.Dict) -> Value:
        if not self.frame.is_ours:
            self.fail(node)
        made = self.code.list_of(self.scenario.updates + 4, self.ranks)
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                self.fail(node)
            at = self.scalar(self.value(key), node)
            self.code.emit(ops.APUT, made, at, self.scalar(self.value(value), node))
        return Value("list", made)

    def _of_ListComp(self, node: ast.ListComp) -> Value:
        (part,) = node.generators
        made = self.code.list_of(self.scenario.ranks + 2, self.ranks)
        self.code.emit(ops.ACLEAR, made)

        def each(item: Value) -> None:
            self.assign(part.target, item, loop=True)
            end = self.tag()
            for test in part.ifs:
                self.code.emit(ops.BRZ, self.truth(self.value(test), node), end)
            self.code.emit(ops.APUSH, made, self.scalar(self.value(node.elt), node))
            self.code.label(end)

        self.over(self.value(part.iter), node, each)
        return Value("list", made)

    def _of_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        """Of what is known before the run."""
        part, found = node.generators[0], []
        many = self.value(part.iter)
        if len(node.generators) > 1 or many.kind != "const":
            self.fail(node)
        for item in many.at:
            self.assign(part.target, Value("const", item), loop=True)
            tests = [self.known(self.value(test)) for test in part.ifs]
            value = self.value(node.elt)
            if None in tests or value.kind != "const":
                self.fail(node)
            found += [value.at] * all(tests)
        return Value("const", tuple(found))

    def _of_IfExp(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        known = self.known(test)
        if known is not None:
            return self.value(node.body if known else node.orelse)
        other, end = self.tag(), self.tag()
        self.code.emit(ops.BRZ, self.truth(test, node), other)
        made = self.variable(self.value(node.body), node)
        self.code.emit(ops.JMP, end)
        self.code.label(other)
        value = self.value(node.orelse)
        if made.kind == "letter":
            self.move_letter(made, value)
        else:
            self.code.emit(ops.MOV, made.at, self.scalar(value, node))
        self.code.label(end)
        return made

    def _of_Subscript(self, node: ast.Subscript) -> Value:
        many = self.value(node.value)
        if many.kind == "const":
            return Value("const", many.at[self._index(node.slice)])
        if many.kind == "counter":
            many = many.at[0]
        if many.kind != "list":
            self.fail(node)
        register = self.fresh()
        self.code.emit(ops.AGET, register, many.at, self.scalar(self.value(node.slice), node))
        return Value("reg", register)

    def _index(self, node: ast.expr) -> Any:
        """An index or a slice that is known before the run."""
        if not isinstance(node, ast.Slice):
            return self._known_number(node)
        ends = (None if one is None else self._known_number(one) for one in (node.lower, node.upper, node.step))
        return slice(*ends)

    def _known_number(self, node: ast.expr) -> Any:
        found = self.value(node)
        return found.at if found.kind == "const" else self.fail(node, "a number that is known before the run is needed")

    def _of_BinOp(self, node: ast.BinOp) -> Value:
        return self.binary(type(node.op), self.value(node.left), self.value(node.right), node)

    def binary(self, op: type, left: Value, right: Value, node: ast.AST) -> Value:
        """The result of an operator."""
        if left.kind == right.kind == "const":
            return Value("const", FOLDED[op](left.at, right.at)) if op in FOLDED else self.fail(node)
        if op is ast.Sub and left.kind == "const" and left.at == math.inf:
            return left
        if op is ast.Mult and left.kind == "items" and right.kind == "const":
            (only,) = left.at
            return Value("repeated", (self.kept(only), right.at))
        if op not in BINARY:
            self.fail(node)
        return self.alu(BINARY[op], self.scalar(left, node), self.scalar(right, node))

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value, negates = self.value(node.operand), isinstance(node.op, ast.Not)
        if not negates and not isinstance(node.op, ast.USub):
            self.fail(node)
        if value.kind == "const":
            return Value("const", not value.at if negates else -value.at)
        if negates:
            return self.negated(self.truth(value, node))
        return self.alu(ops.MINUS, self.code.constant(0), self.scalar(value, node))

    def _of_BoolOp(self, node: ast.BoolOp) -> Value:
        """`and`, `or`: what is known is left out, and what is not asked is not done."""
        goes_on, end = isinstance(node.op, ast.And), self.tag()
        register = None
        for one in node.values:
            value = self.value(one)
            known = self.known(value)
            if known is None:
                register = self.fresh() if register is None else register
                self.code.emit(ops.MOV, register, self.truth(value, node))
                if one is not node.values[-1]:
                    self.code.emit(ops.BRZ, register if goes_on else self.negated(register).at, end)
            elif known is not goes_on:
                return value if register is None else self.fail(node)
        self.code.label(end)
        return Value("const", goes_on) if register is None else Value("reg", register)

    def _of_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            self.fail(node)
        left, op, right = self.value(node.left), type(node.ops[0]), self.value(node.comparators[0])
        if left.kind == right.kind == "const":
            return Value("const", KNOWN[op](left.at, right.at))
        if op in (ast.Is, ast.IsNot) and right.at is None:
            return self._compared_with_none(left, op is ast.Is)
        if op in (ast.In, ast.NotIn):
            inside = self.inside(self.scalar(left, node), right, node)
            return Value("reg", inside) if op is ast.In else self.negated(inside)
        if op not in COMPARED:
            self.fail(node)
        if right.kind == "const" and right.at == math.inf:  # which no number of a run is
            return Value("const", op in (ast.Lt, ast.LtE, ast.NotEq))
        operation, swapped = COMPARED[op]
        sides = [self.scalar(left, node), self.scalar(right, node)]
        return self.alu(operation, *(sides[::-1] if swapped else sides))

    def _compared_with_none(self, value: Value, is_none: bool) -> Value:
        """Letters alone may be None during a run."""
        if value.kind != "letter":
            return Value("const", not is_none)
        absent = self.alu(ops.LESS, value.at, self.code.constant(0))
        return absent if is_none else self.negated(absent.at)

    def inside(self, item: int, many: Value, node: ast.AST) -> int:
        """A register that is not 0 if a number is one of several."""
        register = self.fresh()
        if many.kind == "set":
            self.code.emit(ops.SETHAS, register, many.at, item)
            return register
        self.code.emit(ops.MOV, register, self.code.constant(0))

        def each(one: Value) -> None:
            same = self.alu(ops.EQUAL, item, self.scalar(one, node))
            self.code.emit(ops.ALU, ops.MOST, register, register, same.at)

        self.over(many, node, each)
        return register

    def _of_YieldFrom(self, node: ast.YieldFrom) -> Value:
        self.runs = True
        found = self.value(node.value)
        self.runs = False
        return found
