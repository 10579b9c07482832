"""Expressions of a text: what is known now is Python's to work out, the rest becomes rows."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from sim.language.engine import layout as op
from sim.language.engine.rows import RANK, SIGNS, Code, described, plain_or_none
from sim.language.engine.values import (
    FIELDS,
    NOTHING,
    ONE,
    WIDE,
    ZERO,
    Call,
    Coefficient,
    Known,
    Lazy,
    ListPart,
    ListValue,
    MessageValue,
    NotLowered,
    Number,
    Pair,
    PieceValue,
    RangeValue,
    SameAtAllRanks,
    Scope,
    Varies,
    arguments,
    bound,
    in_registers,
    is_known,
    is_list,
    lift,
    numbers,
    plain,
    shape,
    shaped,
)

CHANGING = ("append", "extend", "insert", "pop", "remove", "clear")
MOST_UNROLLED = 512
FOLDED = {"min": op.LEAST, "max": op.MOST, "sum": op.ADD}


class Expressions(Code):
    """Expressions of a text."""

    def value(self, scope: Scope, node: ast.AST) -> Any:
        """What an expression is.

        Raises:
            NotLowered: the engine does not understand it.
        """
        known = {name for name, value in scope.names.items() if is_known(value)}
        if not isinstance(node, ast.Starred) and scope.is_known(node, known) and not bound(node):
            try:
                found = eval(compile(ast.Expression(node), "text", "eval"), {**scope.globals, **scope.known()})  # type: ignore[arg-type]
            except Varies:
                pass
            else:
                if not inspect.isgenerator(found):
                    return lift(found)
        way = getattr(self, f"on_{type(node).__name__}", None)
        if way is None:
            raise NotLowered(f"{type(node).__name__} of what is not known before ranks run")
        return way(scope, node)

    def on_Name(self, scope: Scope, node: ast.Name) -> Any:
        if node.id in scope.globals and node.id not in scope.locals:
            return lift(scope.globals[node.id])
        if node.id not in scope.names:
            raise NotLowered(f"{node.id} is not bound here, or only in a branch or loop before")
        return scope.names[node.id]

    def on_Tuple(self, scope: Scope, node: ast.Tuple) -> Any:
        return Pair(tuple(self.spread(scope, node.elts)))

    def on_List(self, scope: Scope, node: ast.List) -> Any:
        return Pair(tuple(self.spread(scope, node.elts)), is_list=True)

    def spread(self, scope: Scope, nodes: list[ast.expr]) -> list[Any]:
        """Values of expressions, some of which may have a star."""
        found: list[Any] = []
        for one in nodes:
            if isinstance(one, ast.Starred):
                found += self.elements(self.value(scope, one.value))
            else:
                found.append(self.value(scope, one))
        return found

    def on_BinOp(self, scope: Scope, node: ast.BinOp) -> Any:
        x, y = self.value(scope, node.left), self.value(scope, node.right)
        return self.operated(node.op, x, y)

    def operated(self, sign: ast.operator, x: Any, y: Any) -> Any:
        """X sign y."""
        if type(sign) not in SIGNS:
            raise NotLowered(f"{type(sign).__name__} of numbers that are not known before ranks run")
        return self.reckon(SIGNS[type(sign)], x, y)

    def on_UnaryOp(self, scope: Scope, node: ast.UnaryOp) -> Any:
        value = self.value(scope, node.operand)
        if isinstance(node.op, ast.Not):
            return self.reckon(op.EQUAL, self.truth(value), ZERO)
        return self.reckon(op.SUBTRACT, ZERO, value) if isinstance(node.op, ast.USub) else value

    def truth(self, value: Any) -> Any:
        """A number that is 0 where a value is false."""
        if isinstance(value, (ListValue, ListPart, RangeValue)):
            return self.length(value)
        if isinstance(value, MessageValue):
            return self.reckon(op.UNEQUAL, Number(value.at), Known(-1))
        if isinstance(value, (PieceValue, Call)):
            return Known(True)
        return Known(bool(value.value)) if isinstance(value, Known) else value

    def on_BoolOp(self, scope: Scope, node: ast.BoolOp) -> Any:
        first, stops = self.value(scope, node.values[0]), isinstance(node.op, ast.Or)
        found = self.truth(first)
        for one in node.values[1:]:
            if isinstance(found, Known):
                if bool(found.value) == stops:
                    return first
                first = self.value(scope, one)
                found = self.truth(first)
                continue
            held = self.new()
            self.move(held, found)
            with self.where(self.reckon(op.EQUAL, found, ZERO) if stops else Number(held)):
                self.move(held, self.truth(self.value(scope, one)))
            first = found = Number(held)
        return first if isinstance(found, Known) else found

    def on_Compare(self, scope: Scope, node: ast.Compare) -> Any:
        found, x = None, self.value(scope, node.left)
        for sign, right in zip(node.ops, node.comparators, strict=True):
            y = self.value(scope, right)
            one = self.compared(type(sign), x, y)
            found, x = one if found is None else self.reckon(op.LEAST, found, one), y
        return found

    def compared(self, kind: type, x: Any, y: Any) -> Any:
        if isinstance(x, MessageValue):
            x = Number(x.at)
        if isinstance(x, PieceValue) and y == NOTHING:
            return Known(kind is ast.IsNot)
        if isinstance(x, PieceValue) and isinstance(y, PieceValue):
            if x.vector != y.vector:
                return Known(int(kind is ast.NotEq))
            same = self.both(self.compared(ast.Eq, x.start, y.start), self.compared(ast.Eq, x.stop, y.stop))
            return same if kind is ast.Eq else self.reckon(op.EQUAL, same, ZERO)
        if kind in (ast.In, ast.NotIn):
            inside = self.inside(x, y)
            return inside if kind is ast.In else self.reckon(op.EQUAL, inside, ZERO)
        if kind in (ast.Gt, ast.GtE):
            x, y, kind = y, x, ast.Lt if kind is ast.Gt else ast.LtE
        return self.reckon(SIGNS[kind], x, y)

    def both(self, x: Any, y: Any) -> Any:
        """Whether two truths hold, 1 or 0, without an op-code where one is known."""
        if is_known(x):
            return y if plain(x) else ZERO
        if is_known(y):
            return x if plain(y) else ZERO
        return self.reckon(op.LEAST, x, y)

    def inside(self, x: Any, group: Any) -> Any:
        """Whether a number is in a range."""
        found = self.as_range(group)
        inside = self.both(self.reckon(op.LESS_OR_EQUAL, found.start, x), self.reckon(op.LESS, x, found.stop))
        if found.step != 1:
            far = self.reckon(op.MODULO, self.reckon(op.SUBTRACT, x, found.start), Known(found.step))
            inside = self.both(inside, self.reckon(op.EQUAL, far, ZERO))
        return inside

    def as_range(self, value: Any) -> RangeValue:
        """A group of ranks: a range upwards, or one rank.

        Raises:
            NotLowered: it is none.
        """
        if isinstance(value, RangeValue):
            return value
        if isinstance(value, Known) and isinstance(value.value, range) and value.value.step > 0:
            return RangeValue(Known(value.value.start), Known(value.value.stop), value.value.step)
        if isinstance(value, Number) or (isinstance(value, Known) and isinstance(value.value, int)):
            return RangeValue(value, self.reckon(op.ADD, value, ONE))
        raise NotLowered(f"{described(value)} as a group of ranks: a rank or a range upwards")

    def on_IfExp(self, scope: Scope, node: ast.IfExp) -> Any:
        test = self.truth(self.value(scope, node.test))
        if isinstance(test, Known):
            return self.value(scope, node.body if test.value else node.orelse)
        jump = self.emit(op.JUMP_IF_NOT, 0, self.at(test))
        found = self.value(scope, node.body)
        held = self.together(numbers(found))
        over = self.emit(op.JUMP, 0)
        self.here(jump)
        other = self.value(scope, node.orelse)
        if shape(other) != shape(found):
            raise NotLowered("an expression that is of one kind or another")
        for k, one in enumerate(numbers(other)):
            self.move(held + k, one)
        self.here(over)
        return shaped(found, held)

    def on_Attribute(self, scope: Scope, node: ast.Attribute) -> Any:
        value = self.value(scope, node.value)
        if isinstance(value, Known) and isinstance(value.value, SameAtAllRanks):
            if node.attr == "rank":
                return Number(RANK)
            if node.attr == "step":
                return self.put(op.STEP)
        if isinstance(value, PieceValue):
            if node.attr == "items":
                return self.reckon(op.SUBTRACT, value.stop, value.start)
            if node.attr in ("start", "stop"):
                return getattr(value, node.attr)
        if isinstance(value, MessageValue) and node.attr in FIELDS:
            return Number(value.at + FIELDS.index(node.attr))
        if isinstance(value, RangeValue) and node.attr in ("start", "stop"):
            return getattr(value, node.attr)
        raise NotLowered(f".{node.attr} of {described(value)}")

    # ---- sequences

    def length(self, value: Any) -> Any:
        """How many elements there are."""
        if isinstance(value, ListValue):
            found = self.put(op.LENGTH, value.which.at, WIDE.get(value.kind, 1))
            value.contents.rows.append(len(self.rows) - 1)
            return found
        if isinstance(value, ListPart):
            return self.reckon(op.SUBTRACT, self.length(value.of), value.first)
        if isinstance(value, RangeValue):
            far = self.reckon(op.SUBTRACT, value.stop, value.start)
            if value.step != 1:
                far = self.reckon(op.FLOOR_DIVIDE, self.reckon(op.ADD, far, Known(value.step - 1)), Known(value.step))
            return self.reckon(op.MOST, far, ZERO)
        if isinstance(value, Lazy):
            return value.length
        if isinstance(value, Pair):
            return Known(len(value.parts))
        if isinstance(value, Known) and hasattr(value.value, "__len__"):
            return Known(len(value.value))
        raise NotLowered(f"{described(value)} is no sequence")

    def element(self, value: Any, k: Any) -> Any:
        """value[k], where k is not below 0."""
        if isinstance(value, ListValue):
            if not value.kind:
                raise NotLowered("an element of a list that nothing has been appended to before")
            register = self.put(op.GET, value.which.at, self.at(k), WIDE[value.kind], wide=WIDE[value.kind]).at
            made = {
                "piece": lambda: PieceValue("?", Number(register), Number(register + 1)),
                "message": lambda: MessageValue(register),
            }
            return made.get(value.kind, lambda: Number(register))()
        if isinstance(value, ListPart):
            return self.element(value.of, self.reckon(op.ADD, value.first, k))
        if isinstance(value, RangeValue):
            return self.reckon(op.ADD, value.start, self.reckon(op.MULTIPLY, k, Known(value.step)))
        if isinstance(value, Lazy):
            return value.get(k)
        if isinstance(k, Known):
            return value.parts[k.value] if isinstance(value, Pair) else lift(value.value[k.value])
        if isinstance(value, Known) and isinstance(value.value, range):
            return self.reckon(op.ADD, Known(value.value.start), self.reckon(op.MULTIPLY, k, Known(value.value.step)))
        if isinstance(value, Known) and all(isinstance(one, (int, float)) for one in value.value):
            return self.looked_up(list(value.value), k)
        raise NotLowered(f"an element of {described(value)} that depends on the rank or the time")

    def elements(self, value: Any) -> list[Any]:
        """All elements of a sequence whose length is known.

        Raises:
            NotLowered: it is not.
        """
        length = self.length(value)
        if not isinstance(length, Known):
            raise NotLowered(f"{described(value)} where its length has to be known before ranks run")
        return [self.element(value, Known(k)) for k in range(length.value)]

    def on_Subscript(self, scope: Scope, node: ast.Subscript) -> Any:
        base = self.value(scope, node.value)
        if isinstance(node.slice, ast.Slice):
            return self.sliced(scope, base, node.slice)
        k = self.value(scope, node.slice)
        if isinstance(base, Known) and not isinstance(base.value, (list, tuple, range, dict, str)):
            return Coefficient()
        if isinstance(k, Known) and isinstance(k.value, int) and k.value < 0:
            k = self.reckon(op.ADD, self.length(base), k)
        elif not isinstance(k, Known) and not isinstance(base, (ListValue, ListPart)):
            modulo = isinstance(node.slice, ast.BinOp) and isinstance(node.slice.op, ast.Mod)
            k = k if modulo or not self.may_be_negative(node.slice) else self.reckon(op.MODULO, k, self.length(base))
        return self.element(base, k)

    def may_be_negative(self, node: ast.AST) -> bool:
        """Whether an index may count from the end: it has a minus."""
        return any(isinstance(one, (ast.Sub, ast.USub, ast.Name)) for one in ast.walk(node))

    def sliced(self, scope: Scope, base: Any, cut: ast.Slice) -> Any:
        first, stop = (self.value(scope, one) if one else NOTHING for one in (cut.lower, cut.upper))
        step = plain(self.value(scope, cut.step)) if cut.step else 1
        if isinstance(base, PieceValue) and step == 1:
            items = self.reckon(op.SUBTRACT, base.stop, base.start)
            ends = (ZERO if first == NOTHING else first, items if stop == NOTHING else stop)
            at = self.put(op.SLICE, self.at(base.start), self.at(base.stop), *(self.at(one) for one in ends), wide=2).at
            return PieceValue(base.vector, Number(at), Number(at + 1))
        if isinstance(base, ListValue) and step == 1 and stop == NOTHING:
            first = ZERO if first == NOTHING else first
            if not isinstance(first, Known) or first.value < 0:
                n = self.length(base)
                below = self.reckon(op.LESS, first, ZERO)
                first = self.reckon(op.ADD, first, self.reckon(op.MULTIPLY, below, n))
                first = self.reckon(op.LEAST, self.reckon(op.MOST, first, ZERO), n)
            return ListPart(base, first)
        if isinstance(base, (RangeValue, Known)) and step > 0:
            return self.slice_of_range(self.as_range(base), self.length(base), first, stop, step)
        raise NotLowered(f"such a slice of {described(base)}")

    def slice_of_range(self, base: RangeValue, n: Any, first: Any, stop: Any, step: int) -> RangeValue:
        ends = []
        for one, default in ((first, ZERO), (stop, n)):
            end = default if one == NOTHING else one
            if isinstance(end, Known) and end.value < 0:
                end = self.reckon(op.ADD, n, end)
            end = self.reckon(op.MOST, self.reckon(op.LEAST, end, n), ZERO) if one != NOTHING else end
            ends.append(self.reckon(op.ADD, base.start, self.reckon(op.MULTIPLY, end, Known(base.step))))
        if base.step != 1:
            ends[1] = self.reckon(op.LEAST, ends[1], base.stop)
        return RangeValue(ends[0], ends[1], base.step * step)

    def on_ListComp(self, scope: Scope, node: ast.ListComp | ast.GeneratorExp) -> Any:
        (one,) = node.generators
        source = self.iterated(scope, one.iter)
        names = dict(scope.names)
        if one.ifs:
            return self.filtered(scope, node, source)

        def get(k):
            inner = Scope.__new__(Scope)
            inner.__dict__.update({**scope.__dict__, "names": dict(names), "stored": set()})
            self.bind(inner, one.target, self.element(source, k))
            return self.value(inner, node.elt)

        length = self.length(source)
        if isinstance(length, Known) and length.value <= MOST_UNROLLED:
            return Pair(tuple(get(Known(k)) for k in range(length.value)), is_list=True)
        return Lazy(length, get)

    on_GeneratorExp = on_ListComp

    def filtered(self, scope: Scope, node, source: Any) -> ListValue:
        (one,), made = node.generators, self.fresh()

        def turn(k):
            self.bind(scope, one.target, self.element(source, k))
            jumps = [self.emit(op.JUMP_IF_NOT, 0, self.at(self.truth(self.value(scope, test)))) for test in one.ifs]
            self.append(made, self.value(scope, node.elt))
            self.here(*jumps)

        self.counted(self.length(source), turn)
        return made

    def iterated(self, scope: Scope, node: ast.expr) -> Any:
        """What a loop goes through."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in scope.names:
            given = [self.value(scope, one) for one in node.args]
            name = node.func.id
            if name == "enumerate":
                return Lazy(self.length(given[0]), lambda k: Pair((k, self.element(given[0], k))))
            if name == "zip":
                return Lazy(self.length(given[0]), lambda k: Pair(tuple(self.zipped(one, k) for one in given)))
            if name == "reversed":
                n = self.length(given[0])
                return Lazy(
                    n,
                    lambda k: self.element(given[0], self.reckon(op.SUBTRACT, self.reckon(op.SUBTRACT, n, ONE), k)),
                )
        return self.value(scope, node)

    def zipped(self, value: Any, k: Any) -> Any:
        return value if isinstance(value, Coefficient) else self.element(value, k)

    # ---- calls

    def on_Call(self, scope: Scope, node: ast.Call) -> Any:
        named = {one.arg: self.value(scope, one.value) for one in node.keywords if one.arg}
        if isinstance(node.func, ast.Attribute):
            base = self.value(scope, node.func.value)
            if isinstance(base, Known) and isinstance(base.value, SameAtAllRanks):
                return self.primitive(node.func.attr, self.spread(scope, node.args), named)
            if not is_known(base) or isinstance(base, (PieceValue, RangeValue)) or node.func.attr == "index":
                return self.method(base, node.func.attr, self.spread(scope, node.args))
            if isinstance(plain_or_none(base), list) and node.func.attr in CHANGING:
                raise NotLowered(
                    f".{node.func.attr}() of a list that begins with elements and is changed in another function"
                )
        given = self.spread(scope, node.args)
        called = self.value(scope, node.func)
        return self.call_of(plain(called), given, named, scope, node)

    def call_of(self, function: Any, given: list[Any], named: dict[str, Any], scope: Scope, node: ast.Call) -> Any:
        """A call of a function that is known."""
        name = getattr(function, "__name__", "")
        if function in (len, range, int, float, bool, abs, min, max, sum, list, tuple, enumerate, zip, reversed, round):
            return self.builtin(name, given, scope, node)
        if inspect.ismethod(function):
            given, function = [Known(function.__self__), *given], function.__func__
        if inspect.isfunction(function):
            call = Call(function, arguments(function, given, named, lift))
            return call if inspect.isgeneratorfunction(function) else self.called(call)
        return Coefficient()

    def called(self, call: Call) -> Any:
        """What a function without waiting gives; if it cannot be followed, a coefficient."""
        rows, top = len(self.rows), self.top
        try:
            return self.inlined(call)
        except (NotLowered, LookupError, AttributeError, TypeError, ValueError):
            del self.rows[rows:], self.places[rows:]
            self.top = top
            return Coefficient()

    def builtin(self, name: str, given: list[Any], scope: Scope, node: ast.Call) -> Any:
        if name == "len":
            return self.length(given[0])
        if name == "range":
            first, stop = given[:2] if len(given) > 1 else (ZERO, given[0])
            step = plain(given[2]) if len(given) > 2 else 1
            if step < 1:
                raise NotLowered("a range downwards whose ends are not known before ranks run")
            return RangeValue(first, stop, step)
        if name in ("int", "float", "bool"):
            return self.truth(given[0]) if name == "bool" else given[0] if name == "float" else self.whole(given[0])
        if name in ("min", "max", "sum"):
            if len(given) == 1 and isinstance(given[0], (ListValue, ListPart)):
                return self.gathered(name, given[0])
            parts = given if len(given) > 1 else self.elements(given[0])
            found = parts[0] if parts else ZERO
            for one in parts[1:]:
                found = self.reckon(FOLDED[name], found, one)
            return found
        raise NotLowered(f"{name} of what is not known before ranks run")

    def gathered(self, name: str, of: ListValue | ListPart) -> Number:
        """The least, the most or the sum of a list's numbers."""
        held, n = self.new(), self.length(of)
        self.move(held, ZERO if name == "sum" else self.element(of, ZERO))

        def turn(k):
            self.emit(FOLDED[name], held, held, self.at(self.element(of, k)))

        self.counted(n, turn)
        return Number(held)

    def counted(self, n: Any, turn) -> None:
        """turn(k) for k from 0 to n - 1."""
        raise NotImplementedError

    def inlined(self, call: Call) -> Any:
        """A function's statements; what it returns."""
        raise NotImplementedError

    def whole(self, value: Any) -> Any:
        return (
            Known(int(value.value)) if isinstance(value, Known) else self.put(op.WHOLE, self.at(value), self.at(ZERO))
        )

    def method(self, base: Any, name: str, given: list[Any]) -> Any:
        """A method of what is not known before ranks run, or `index`."""
        if name == "append" and isinstance(base, ListValue):
            self.append(base, given[0])
            return NOTHING
        if name == "pop" and isinstance(base, ListValue) and base.kind in ("", "number"):
            base.contents.kind = "number"  # where another text appends to it
            return self.put(op.REMOVE, base.which.at, self.at(given[0] if given else Known(-1)))
        if name == "part" and isinstance(base, PieceValue):
            if all(is_known(one) for one in (base, *given)):
                return lift(plain(base).part(*(plain(one) for one in given)))
            at = self.put(op.PART, self.at(base.start), self.at(base.stop), *(self.at(one) for one in given), wide=2).at
            return PieceValue(base.vector, Number(at), Number(at + 1))
        if name == "index" and isinstance(plain_or_none(base), (list, tuple)):
            where = {one: float(k) for k, one in reversed([*enumerate(plain(base))])}
            return self.looked_up([where.get(rank, -1.0) for rank in range(1 + max(where))], given[0])
        if name == "index":
            group = self.as_range(base)
            far = self.reckon(op.SUBTRACT, given[0], group.start)
            return far if group.step == 1 else self.reckon(op.FLOOR_DIVIDE, far, Known(group.step))
        raise NotLowered(f".{name}() of {described(base)}")

    def on_YieldFrom(self, scope: Scope, node: ast.YieldFrom) -> Any:
        found = self.value(scope, node.value)
        return self.inlined(found) if isinstance(found, Call) else found

    def primitive(self, name: str, given: list[Any], named: dict[str, Any]) -> Any:
        """A primitive of `me`."""
        raise NotImplementedError

    # ---- names

    def bind(self, scope: Scope, target: ast.expr, value: Any) -> None:
        """Give a name a value, or names those of a tuple."""
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = self.elements(value)
            if any(isinstance(one, ast.Name) and one.id in scope.stored for one in target.elts):
                parts = [self.copied(one) for one in parts]
            if len(parts) != len(target.elts):
                raise NotLowered(f"{len(parts)} values for {len(target.elts)} names")
            for one, part in zip(target.elts, parts, strict=True):
                self.bind(scope, one, part)
        elif isinstance(target, ast.Attribute) and ast.unparse(target) == "me.step":
            self.emit(op.IN_STEP, self.at(value))
        elif (
            isinstance(target, ast.Subscript)
            and isinstance(held := self.value(scope, target.value), ListValue)
            and held.kind == "number"
        ):
            self.emit(op.SET, self.at(value), held.which.at, self.at(self.value(scope, target.slice)))
        elif not isinstance(target, ast.Name):
            raise NotLowered(f"{ast.unparse(target)} is set")
        elif target.id not in scope.stored and not (is_list(value) and self.length(value) == ZERO):
            scope.names[target.id] = value if isinstance(value, MessageValue) else self.copied(value)
        else:
            self.store(scope, target.id, value)

    def copied(self, value: Any) -> Any:
        """A value that does not change when a stored name does."""
        inside = numbers(value)
        if not any(isinstance(one, Number) and one.at in self.cells for one in inside):
            return value
        return shaped(value, self.together(inside))

    def store(self, scope: Scope, name: str, value: Any) -> None:
        """Give a stored name a value.

        Raises:
            NotLowered: it has been of another kind.
        """
        held = scope.names.get(name)
        lies = held is not None and in_registers(held) and not is_known(held)
        if value == NOTHING and isinstance(held, MessageValue):
            self.move(held.at, NOTHING)
        elif lies and ((shape(held) != shape(value) and not is_list(value)) or not in_registers(value)):
            raise NotLowered(f"{name} is of one kind, vector or stride, then of another")
        elif is_list(value):
            if not isinstance(held, ListValue):
                held = scope.names[name] = self.fresh()
            else:
                self.emit(op.NEW_LIST, held.which.at, held.number)
            if isinstance(value, Known) and value.value:
                self.counted(Known(len(value.value)), lambda k: self.append(held, self.element(value, k)))
            for one in value.parts if isinstance(value, Pair) else ():
                self.append(held, one)
        elif isinstance(value, ListValue) or not in_registers(value):
            if lies and held != value:
                raise NotLowered(f"{name} is one list, then another")
            scope.names[name] = value
        elif lies:
            for one, now in zip(numbers(held), numbers(value), strict=True):
                self.move(one.at, now)
        else:
            first = self.together(numbers(value))
            self.cells |= set(range(first, self.top))
            scope.names[name] = shaped(value, first)

    cells: set[int]
