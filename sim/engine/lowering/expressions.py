"""Expressions: what is known before the run is folded, all else goes into registers."""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sim.engine.kernel import layout, ops
from sim.engine.lowering.assigning import BOUND, OWN_ROOM, Assigning
from sim.engine.lowering.known import is_plain_attribute
from sim.engine.lowering.program import y
from sim.engine.lowering.values import BOOK, Value, loaded
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
OF_INTEGERS = (ast.BitAnd, ast.BitOr, ast.BitXor)
# Of what a user's text may reckon with before the run.
PLAIN = (int, float, bool, str, tuple, list, dict, range, type(None))
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
        frame = self.frame
        if node.id in frame.names and (frame.is_ours or node.id in frame.assigned):
            return frame.names[node.id]
        if node.id in frame.local:
            self.fail(node, "a name that may have no value yet")
        if node.id in frame.function.__code__.co_freevars:
            self.fail(node, "a name of a function around the text")
        scope = self.frame.function.__globals__
        return Value("const", scope[node.id] if node.id in scope else getattr(builtins, node.id))

    def _of_Attribute(self, node: ast.Attribute) -> Value:
        of, name = self.value(node.value), node.attr
        if of.kind == "me":
            found = self._of_me(name, node)
            stays = self.frame.is_ours or found.kind != "reg" or name == "rank"
            return found if stays else self.kept(found)
        if of.kind == "book":
            return Value("reg", y(BOOK_FIELDS[name])) if name in BOOK_FIELDS else self.book_set(name)
        if of.kind == "letter":
            return self._of_letter(of, name, node)
        if of.kind in ("set", "list"):
            return Value("method", (of, name))
        if of.kind != "const":
            self.fail(node)
        if not (self.frame.is_ours or is_plain_attribute(of.at, name)):
            return self.of_property(of, name, node)
        return Value("const", getattr(of.at, name))

    def _of_letter(self, letter: Value, name: str, node: ast.AST) -> Value:
        """What a letter says; None says nothing."""
        if name not in LETTER_FIELDS:
            self.fail(node)
        return Value("reg", self.there(letter, node).at + LETTER_FIELDS[name], changes=letter.changes)

    def there(self, letter: Value, node: ast.AST) -> Value:
        """A letter that is not None."""
        if letter.kind != "letter":
            self.fail(node, "a letter is needed")
        if not (self.frame.is_ours or letter.sure):
            self.needs(self.truth(letter, node))
        return letter

    def of_property(self, of: Value, name: str, node: ast.AST) -> Value:
        """A property of a user's class."""
        raise NotImplementedError

    def _of_me(self, name: str, node: ast.AST) -> Value:
        of = self.scenario
        if not self.frame.is_ours and (name not in VERBS or name == "book"):
            self.fail(node)
        if name == "updates" and 0 not in self.ranks:
            return Value("const", math.inf)
        if name in FIELDS:
            return Value("reg", y(FIELDS[name]))
        if name == "now_s":
            register = self.fresh()
            self.code.emit(ops.NOW, register)
            return Value("reg", register, whole=False)
        if name == "book":
            return BOOK
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
            "summed": bool(of.summed) and self.ranks[0] >= of.servers,
            "workers": workers,
            "servers": servers,
            "master": 0,
            "delays": None,
            "hosts": of.hosts,
        }
        return Value("const", known[name]) if name in known else Value("verb", name)

    def _of_NamedExpr(self, node: ast.NamedExpr) -> Value:
        if not self.frame.is_ours:
            self.fail(node)
        self.assign(node.target, self.value(node.value))
        return self.value(loaded(node.target))

    def _of_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Value:
        values = [self.value(one) for one in node.elts]
        return Value("items", values if self.frame.is_ours else [self.bound(one) for one in values])

    def _of_List(self, node: ast.List) -> Value:
        return self._of_Tuple(node) if node.elts else self.listed(Value("items", []), node)

    def _of_Set(self, node: ast.Set) -> Value:
        return self.set_of(self._of_Tuple(node), node) if len(node.elts) == 1 else self.fail(node)

    def set_of(self, many: Value, node: ast.AST) -> Value:
        """A set of the ranks that a loop goes over."""
        made = self.code.set_of(0, self.scenario.ranks, self.ranks)
        self.code.emit(ops.SETFILL, made, 0, 0)
        self.over(many, node, lambda one: self.code.emit(ops.SETADD, made, self.integer(one, node)))
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
        many = self.value(part.iter)
        made = self.new_list(self.scenario.ranks + 2 if self.frame.is_ours else self.room_of(many))
        self.code.emit(ops.ACLEAR, made.at)

        def each(item: Value) -> None:
            self.name_item(part.target, item)
            end = self.tag()
            for test in part.ifs:
                self.code.emit(ops.BRZ, self.truth(self.test(test), node), end)
            self.push(made, self.value(node.elt), node)
            self.code.label(end)

        with self.names_inside(part.target):
            self.over(many, node, each)
        return made

    def room_of(self, many: Value) -> int:
        """Items that a list made of several has, at most, as far as that is known."""
        if many.kind == "list":
            return self.code.lists[many.at][1]
        known = many.kind == "items" or (many.kind == "const" and type(many.at) in (tuple, list, range))
        return len(many.at) if known else 4 * self.scenario.ranks + OWN_ROOM

    @contextmanager
    def names_inside(self, target: ast.expr) -> Iterator[None]:
        """The name of a comprehension is another one than that around it."""
        frame = self.frame
        names, assigned, local = dict(frame.names), set(frame.assigned), set(frame.local)
        yield
        frame.names, frame.assigned, frame.local = names, assigned, local

    def name_item(self, target: ast.expr, item: Value) -> None:
        """Name an item of a comprehension."""
        if not isinstance(target, ast.Name):
            self.fail(target)
        self.frame.names[target.id] = item
        self.frame.assigned.add(target.id)

    def _of_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        """Of what is known before the run."""
        part, found = node.generators[0], []
        if not (self.frame.is_ours or node in self.conditions):
            self.fail(node)
        many = self.known_items(self.value(part.iter))
        if len(node.generators) > 1 or many.kind != "const" or not self.may_fold(many):
            self.fail(node)
        with self.names_inside(part.target):
            for item in many.at:
                self.name_item(part.target, Value("const", item))
                tests = [self.known(self.test(test)) for test in part.ifs]
                if None in tests:
                    self.fail(node)
                if all(tests):
                    value = self.value(node.elt)
                    found.append(value.at if value.kind == "const" else self.fail(node))
        return Value("const", tuple(found))

    def _of_IfExp(self, node: ast.IfExp) -> Value:
        runs, self.runs = self.runs, False
        test = self.test(node.test)
        known = self.known(test)
        if known is not None:
            return self._chosen(node.body if known else node.orelse, runs)
        other, end = self.tag(), self.tag()
        self.code.emit(ops.BRZ, self.truth(test, node), other)
        value = self._chosen(node.body, runs)
        made = value if value.kind == "nothing" else self.variable(value, node)
        self.code.emit(ops.JMP, end)
        self.code.label(other)
        self.or_else(made, self._chosen(node.orelse, runs), node)
        self.code.label(end)
        return made

    def _chosen(self, node: ast.expr, runs: bool) -> Value:
        """One of two values; with `yield from`, () is nothing to do."""
        self.runs = runs
        found = self.value(node)
        self.runs = False
        return Value("nothing") if runs and found.kind == "items" and not self.frame.is_ours else found

    def or_else(self, made: Value, value: Value, node: ast.AST) -> None:
        """The other value of a choice, where the first one is."""
        if made.kind == "letter" and (value.kind == "letter" or value.is_none or self.frame.is_ours):
            self.move_letter(made, value)
        elif made.kind == "reg":
            self.code.emit(ops.MOV, made.at, self.scalar(value, node))
            made.whole = made.whole and value.is_whole
        elif not made.kind == value.kind == "nothing":
            self.fail(node, "a choice between two kinds of things")

    def _of_Subscript(self, node: ast.Subscript) -> Value:
        many = self.value(node.value)
        if many.kind == "const" and not self.may_fold(many):
            self.fail(node)
        if many.kind == "const" and isinstance(node.slice, ast.Slice):
            return Value("const", many.at[self._slice(node.slice)])
        at = self.value(node.slice)
        if many.kind == "items" and at.kind == "const":
            return many.at[at.at]
        if many.kind == "const" and at.kind == "const":
            return Value("const", many.at[at.at])
        if many.kind == "const" and isinstance(many.at, range):
            return self._of_range(many.at, self.integer(at, node))
        return self.item(many, at, node) if many.kind == "list" else self.fail(node)

    def item(self, many: Value, at: Value, node: ast.AST) -> Value:
        """An item of a list."""
        register = self.fresh()
        self.code.emit(ops.AGET, register, many.at, self.integer(at, node))
        return Value("reg", register, many.whole)

    def _of_range(self, many: range, at: int) -> Value:
        """A number of a range, by its place."""
        constant = self.code.constant
        self.needs(self.alu(ops.AT_MOST, constant(0), at).at)
        self.needs(self.alu(ops.LESS, at, constant(len(many))).at)
        return self.alu(ops.PLUS, constant(many.start), self.alu(ops.TIMES, constant(many.step), at).at)

    def _slice(self, node: ast.Slice) -> slice:
        """A slice that is known before the run."""
        ends = (None if one is None else self._known_number(one) for one in (node.lower, node.upper, node.step))
        return slice(*ends)

    def _known_number(self, node: ast.expr) -> Any:
        found = self.value(node)
        return found.at if found.kind == "const" else self.fail(node, "a number that is known before the run is needed")

    def _of_BinOp(self, node: ast.BinOp) -> Value:
        return self.binary(type(node.op), self.value(node.left), self.value(node.right), node)

    def binary(self, op: type, left: Value, right: Value, node: ast.AST) -> Value:
        """The result of an operator."""
        ours = self.frame.is_ours
        if left.kind == right.kind == "const":
            if op not in FOLDED or not self.may_fold(left, right):
                self.fail(node)
            return Value("const", FOLDED[op](left.at, right.at))
        if ours and op is ast.Sub and left.kind == "const" and left.at == math.inf:
            return left
        if op is ast.Mult and left.kind == "items" and right.kind == "const":
            (only,) = left.at
            return Value("repeated", (self.kept(only), right.at))
        if op not in BINARY:
            self.fail(node)
        if op in OF_INTEGERS:
            self.integer(left, node)
            self.integer(right, node)
        whole = left.is_whole and right.is_whole and op is not ast.Div
        exact = ops.EXACT * (whole and not ours and op not in OF_INTEGERS)
        return self.alu(BINARY[op] + exact, self.scalar(left, node), self.scalar(right, node), whole)

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        negates = isinstance(node.op, ast.Not)
        value = self.test(node.operand) if negates else self.value(node.operand)
        if not negates and not isinstance(node.op, ast.USub):
            self.fail(node)
        if value.kind == "const" and not self.may_fold(value):
            self.fail(node)
        if value.kind == "const":
            return Value("const", not value.at if negates else -value.at)
        if negates:
            return self.negated(self.truth(value, node))
        return self.alu(ops.MINUS, self.code.constant(0), self.scalar(value, node), value.is_whole)

    def test(self, node: ast.expr) -> Value:
        """What a condition is, of which its truth alone matters: `and` and `or` may stand there."""
        if isinstance(node, ast.BoolOp):
            self.conditions.add(node)
        found = self.value(node)
        return self.fail(node) if found.kind == "const" and not self.may_fold(found) else found

    def known_items(self, many: Value) -> Value:
        """Several values as one that is known before the run, if they all are."""
        known = many.kind == "items" and all(one.kind == "const" for one in many.at)
        return Value("const", tuple(one.at for one in many.at)) if known else many

    def may_fold(self, *values: Value) -> bool:
        """Whether what Python makes of values known before the run is the same whenever it is asked for."""
        return self.frame.is_ours or all(type(value.at) in PLAIN for value in values)

    def _of_BoolOp(self, node: ast.BoolOp) -> Value:
        """`and`, `or`: what is known is left out, and what is not asked is not done."""
        if not (self.frame.is_ours or node in self.conditions):
            self.fail(node, "and, or stand in conditions alone")
        goes_on, end = isinstance(node.op, ast.And), self.tag()
        register = None
        for one in node.values:
            value = self.test(one)
            known = self.known(value)
            if known is None:
                register = self.fresh() if register is None else register
                self.code.emit(ops.MOV, register, self.truth(value, node))
                if one is not node.values[-1]:
                    self.code.emit(ops.BRZ, register if goes_on else self.negated(register).at, end)
            elif known is not goes_on and register is None:
                return value
            elif known is not goes_on and register is not None:
                self.code.emit(ops.MOV, register, self.code.constant(not goes_on))
                break
        self.code.label(end)
        return Value("const", goes_on) if register is None else Value("reg", register)

    def _of_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            self.fail(node)
        left, op, right = self.value(node.left), type(node.ops[0]), self.value(node.comparators[0])
        ours = self.frame.is_ours
        if op in (ast.Is, ast.IsNot) and right.is_none:
            return self._compared_with_none(left, op is ast.Is, node)
        if not ours and op in (ast.Is, ast.IsNot) and not right.is_none:
            self.fail(node)
        if left.kind == right.kind == "const":
            return Value("const", KNOWN[op](left.at, right.at)) if self.may_fold(left, right) else self.fail(node)
        if op in (ast.In, ast.NotIn):
            if right.kind == "set":
                self.integer(left, node)
            inside = self.inside(self.scalar(left, node), right, node)
            return Value("reg", inside) if op is ast.In else self.negated(inside)
        if op not in COMPARED:
            self.fail(node)
        if ours and right.kind == "const" and right.at == math.inf:  # which no number of a run is
            return Value("const", op in (ast.Lt, ast.LtE, ast.NotEq))
        operation, swapped = COMPARED[op]
        first, second = self.scalar(left, node), self.scalar(right, node)
        return self.alu(operation, second, first) if swapped else self.alu(operation, first, second)

    def _compared_with_none(self, value: Value, is_none: bool, node: ast.AST) -> Value:
        """Letters alone may be None during a run."""
        if not (self.frame.is_ours or value.kind in BOUND):
            self.fail(node)
        if value.kind != "letter":
            return Value("const", value.is_none == is_none)
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
        of = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
        if not (self.frame.is_ours or all(isinstance(one, ast.Call) or ast.unparse(one) == "()" for one in of)):
            self.fail(node)
        self.runs = True
        found = self.value(node.value)
        self.runs = False
        return found
