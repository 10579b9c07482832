"""Expressions of a text: Python's operators work out what is known, and make rows of symbols."""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import operator
import os
import textwrap
from collections.abc import Callable, Sequence
from functools import cache, reduce
from types import CodeType
from typing import Any

from sim.language.engine import layout as op
from sim.language.engine.rows import Code, truth
from sim.language.engine.values import (
    Coefficient,
    Lazy,
    List,
    Message,
    NotLowered,
    Number,
    Part,
    Plain,
    Range,
    Symbol,
    both,
    described,
    folded,
    negated,
    numbers,
    shape,
    shaped,
    symbolic,
)

READING = ("index", "count", "get", "keys", "items", "values", "copy")  # methods that change no list, dictionary or set


@cache
def operator_of(kind: str) -> Callable[[Any, Any], Any]:
    """The function of two values that a sign of the source is."""
    sign, x, y = getattr(ast, kind)(), ast.Name("x"), ast.Name("y")
    found = ast.Compare(x, [sign], [y]) if isinstance(sign, ast.cmpop) else ast.BinOp(x, sign, y)
    return eval(f"lambda x, y: {ast.unparse(found)}")


@cache
def tree_of(code: CodeType) -> ast.FunctionDef:
    """The source of a function.

    Raises:
        NotLowered: it has none.
    """
    try:
        found = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        raise NotLowered(f"{code.co_qualname} has no source") from error
    if not isinstance(found, ast.FunctionDef):
        raise NotLowered(f"{code.co_qualname} is no function with a name")
    ast.increment_lineno(found, code.co_firstlineno - 1)
    return found


class Scope:
    """The names of one call of a function.

    Args:
        names: the arguments' values, and then those of all names.
        around: the names around the function.
    """

    def __init__(self, code: CodeType, names: dict[str, Any], around: dict[str, Any]):
        self.code, self.names, self.around = code, names, around
        self.locals = {*code.co_varnames, *code.co_cellvars}
        self.node: ast.AST = tree_of(code)  # that is lowered now
        self.returns: list[int] = []  # rows that jump to the end
        self.result: Any = None

    @property
    def place(self) -> str:
        """file:line."""
        return f"{os.path.basename(self.code.co_filename)}:{getattr(self.node, 'lineno', 0)}"


class Expressions(Code):
    """Expressions of a text."""

    me: Any  # of a text that is lowered, as its job, and what lowering.py and primitives.py add
    job: Any
    run: Any
    counted: Any
    inlined: Any

    def value(self, scope: Scope, node: ast.AST) -> Any:
        """What an expression is.

        Raises:
            NotLowered: the engine does not understand it.
        """
        way = getattr(self, f"on_{type(node).__name__}", None)
        return way(scope, node) if way else self.evaluated(scope, node)

    def evaluated(self, scope: Scope, node: ast.AST) -> Any:
        """What Python makes of an expression."""
        return eval(compile(ast.Expression(node), "text", "eval"), {**scope.around, **scope.names})  # type: ignore[arg-type]

    def on_Constant(self, scope: Scope, node: ast.Constant) -> Any:
        return node.value

    def on_Name(self, scope: Scope, node: ast.Name) -> Any:
        if node.id in scope.names:
            return scope.names[node.id]
        if node.id in scope.locals:
            raise NotLowered(f"{node.id} is not bound here, or only in a branch or loop before")
        return scope.around[node.id] if node.id in scope.around else getattr(builtins, node.id)

    def on_Attribute(self, scope: Scope, node: ast.Attribute) -> Any:
        return getattr(self.value(scope, node.value), node.attr)

    def on_Tuple(self, scope: Scope, node: ast.Tuple) -> tuple:
        return tuple(self.spread(scope, node.elts))

    def on_List(self, scope: Scope, node: ast.List) -> list[Any]:
        return self.spread(scope, node.elts)

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
        return self.operated(node.op, self.value(scope, node.left), self.value(scope, node.right))

    def operated(self, sign: ast.operator, x: Any, y: Any) -> Any:
        """X sign y."""
        try:
            return operator_of(type(sign).__name__)(x, y)
        except TypeError as error:
            raise NotLowered(f"{type(sign).__name__} of numbers that are not known before ranks run") from error

    def on_UnaryOp(self, scope: Scope, node: ast.UnaryOp) -> Any:
        value = (self.tested if isinstance(node.op, ast.Not) else self.value)(scope, node.operand)
        if isinstance(node.op, ast.Not):
            return negated(value)
        return -value if isinstance(node.op, ast.USub) else +value

    def on_BoolOp(self, scope: Scope, node: ast.BoolOp) -> Any:
        return self.either(scope, node, self.value)

    def tested(self, scope: Scope, node: ast.expr) -> Any:
        """Whether an expression holds: a number that is 0 where it does not."""
        return self.either(scope, node, self.tested) if isinstance(node, ast.BoolOp) else truth(self.value(scope, node))

    def either(self, scope: Scope, node: ast.BoolOp, value_of: Callable[[Scope, ast.expr], Any]) -> Any:
        """The first operand that decides, or the last."""
        stops = isinstance(node.op, ast.Or)
        value = value_of(scope, node.values[0])
        for one in node.values[1:]:
            if not symbolic(value):
                if bool(value) == stops:
                    return value
                value = value_of(scope, one)
                continue
            held = self.put(op.MOVE, self.a_number(value), 0)
            with self.where(held == 0 if stops else held):
                self.move(held.at, self.a_number(value_of(scope, one)))
            value = held
        return value

    def a_number(self, value: Any) -> Any:
        """A value of which numbers alone are one.

        Raises:
            NotLowered: it is none.
        """
        if not isinstance(value, Number | int | float):
            raise NotLowered(f"{described(value)} as an operand of and, or")
        return value

    def on_Compare(self, scope: Scope, node: ast.Compare) -> Any:
        found, x = True, self.value(scope, node.left)
        for sign, right in zip(node.ops, node.comparators, strict=True):
            y = self.value(scope, right)
            found, x = both(found, self.compared(sign, x, y)), y
        return found

    def compared(self, sign: ast.cmpop, x: Any, y: Any) -> Any:
        """Whether a comparison of two values holds."""
        if isinstance(sign, (ast.Is, ast.IsNot)):
            of_message = isinstance(x, Message) and y is None
            alike = negated(x.is_there) if of_message else x == y if isinstance(x, Number) and y is not None else x is y
            return alike if isinstance(sign, ast.Is) else negated(alike)
        if isinstance(sign, (ast.In, ast.NotIn)):
            inside = self.as_range(y).has(x) if symbolic((x, y)) else x in y
            return inside if isinstance(sign, ast.In) else negated(inside)
        return operator_of(type(sign).__name__)(x, y)

    def as_range(self, value: Any) -> Range:
        """A group of ranks: a range upwards, or one rank.

        Raises:
            NotLowered: it is none.
        """
        if isinstance(value, Range):
            return value
        if isinstance(value, range) and value.step > 0:
            return Range(value.start, value.stop, value.step)
        rank: Any = value
        if isinstance(value, Number | int):
            return Range(rank, rank + 1)
        raise NotLowered(f"{described(value)} as a group of ranks: a rank or a range upwards")

    def on_IfExp(self, scope: Scope, node: ast.IfExp) -> Any:
        test = self.tested(scope, node.test)
        if not symbolic(test):
            return self.value(scope, node.body if test else node.orelse)
        jump = self.jump(unless=test)
        found = self.value(scope, node.body)
        held = shaped(found, Number(self, self.together(numbers(found))))
        over = self.jump()
        self.here(jump)
        self.assign("what is chosen", held, self.value(scope, node.orelse))
        self.here(over)
        return held

    def on_YieldFrom(self, scope: Scope, node: ast.YieldFrom) -> Any:
        return self.run(self.value(scope, node.value))

    # ---- sequences

    def length(self, value: Any) -> Any:
        """How many elements there are."""
        sequence: Any = value
        return sequence.length if isinstance(value, Symbol) else len(value)

    by_len = length

    def element(self, value: Any, k: Any) -> Any:
        """value[k], where k is not below 0."""
        if isinstance(value, range) and symbolic(k):
            return value.start - k if value.step == -1 else value.start + k * value.step
        if isinstance(value, (list, tuple)) and symbolic(k):
            if not is_numeric(value):
                raise NotLowered(f"an element of {described(value)} that depends on the rank or the time")
            if isinstance(value[0], tuple):
                return tuple(self.looked_up(column, k) for column in zip(*value, strict=True))
            return self.looked_up(value, k)
        return value[k]

    def elements(self, value: Any) -> list[Any]:
        """All elements of a sequence whose length is known.

        Raises:
            NotLowered: it is not.
        """
        if not isinstance(value, Symbol):
            return [*value]
        if symbolic(length := self.length(value)):
            raise NotLowered(f"{described(value)} where its length has to be known before ranks run")
        return [self.element(value, k) for k in range(length)]

    def on_Subscript(self, scope: Scope, node: ast.Subscript) -> Any:
        base, k = self.value(scope, node.value), self.value(scope, node.slice)
        if not symbolic(k) or isinstance(base, Part | List | Lazy):
            return base[k]
        if isinstance(base, (list, tuple)):
            return self.element(base, k)
        if not isinstance(base, (range, Range)):
            return Coefficient(self)
        group, wraps = self.as_range(base), isinstance(node.slice, ast.BinOp) and isinstance(node.slice.op, ast.Mod)
        return group[k] if wraps or isinstance(k, slice) else group[k % group.length]  # it may be below 0

    def on_Slice(self, scope: Scope, node: ast.Slice) -> slice:
        return slice(*(self.value(scope, one) if one else None for one in (node.lower, node.upper, node.step)))

    def on_ListComp(self, scope: Scope, node: ast.ListComp | ast.GeneratorExp) -> Any:
        """Python's, where it needs to know no symbol; else a list that is made when ranks run."""
        asks_for_none = any(isinstance(one, ast.Is | ast.IsNot) for one in ast.walk(node))
        whole = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
        if not asks_for_none and (found := self.tried(lambda: self.evaluated(scope, whole))):
            return found[0]
        (one,), inner = node.generators, copy.copy(scope)
        source, made = self.value(scope, one.iter), self.fresh()
        inner.names = {name: value for name, value in scope.names.items() if name not in bound(one.target)}

        def turn(k):
            self.bind(inner, one.target, self.element(source, k))
            jumps = [self.jump(unless=self.tested(inner, test)) for test in one.ifs]
            made.append(self.value(inner, node.elt))
            self.here(*jumps)

        self.counted(self.length(source), turn)
        return made

    on_GeneratorExp = on_ListComp

    # ---- calls

    def on_Call(self, scope: Scope, node: ast.Call) -> Any:
        function, given = self.value(scope, node.func), self.spread(scope, node.args)
        return self.called(function, given, {str(one.arg): self.value(scope, one.value) for one in node.keywords})

    def called(self, function: Any, given: list[Any], named: dict[str, Any]) -> Any:
        """A function is called by Python if it can, else followed; what it gives of symbols is a coefficient if neither works."""
        varies, owner = symbolic([*given, *named.values()]), getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        if function is getattr(builtins, name, None) and (varies or name in ("enumerate", "zip", "reversed")):
            if not hasattr(self, f"by_{name}"):
                raise NotLowered(f"{name} of what is not known before ranks run")
            return getattr(self, f"by_{name}")(*given, **named)
        if isinstance(owner, (list, dict, set)) and name not in READING:
            raise NotLowered(
                f".{name}() of a {type(owner).__name__} that begins with elements and is changed in another function"
            )
        if isinstance(owner, (list, tuple, range)) and name == "index" and varies:
            return self.found_at(owner, given[0])
        if inspect.isgeneratorfunction(function) or isinstance(owner, (Symbol, Part, type(self.me))):
            return function(*given, **named)
        if not varies and (found := self.tried(lambda: function(*given, **named))):
            return found[0]
        if inspect.ismethod(function):
            function, given = function.__func__, [owner, *given]
        if not varies:
            return self.followed(function, given, named)
        found = self.tried(lambda: self.followed(function, given, named))
        return found[0] if found else Coefficient(self)

    def followed(self, function: Any, given: list[Any], named: dict[str, Any]) -> Any:
        """What a function without waiting returns, statement by statement."""
        arguments = inspect.signature(function).bind(*given, **named)
        arguments.apply_defaults()
        code = function.__code__
        free = zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True)
        return self.inlined(code, {**dict(free), **arguments.arguments}, function.__globals__)

    def by_range(self, *ends: Any) -> Range:
        first, stop = ends[:2] if len(ends) > 1 else (0, ends[0])
        step = ends[2] if len(ends) > 2 else 1
        if symbolic(step) or step < 1:
            raise NotLowered("a range downwards whose ends are not known before ranks run")
        return Range(first, stop, step)

    def by_int(self, x: Any) -> Number:
        return self.put(op.WHOLE, x, 0)

    def by_float(self, x: Any) -> Any:
        return x

    def by_bool(self, x: Any) -> Any:
        found = truth(x)
        return found != 0 if symbolic(found) else bool(found)

    def by_min(self, *given: Any) -> Any:
        return self.fold(lambda x, y: folded(min, x, y), given)

    def by_max(self, *given: Any) -> Any:
        return self.fold(lambda x, y: folded(max, x, y), given)

    def by_sum(self, given: Any) -> Any:
        return self.fold(operator.add, (given,), [0])

    def fold(self, both_of: Any, given: tuple, begin: Sequence[int] = ()) -> Any:
        """The least, the most or the sum of numbers, or of those of a list, which are gone through when ranks run."""
        several = given[0] if len(given) == 1 else given
        if not isinstance(several, List):
            return reduce(both_of, [*begin, *self.elements(several)])
        n, held = several.length, self.put(op.MOVE, begin[0] if begin else several[0], 0)
        self.counted(n, lambda k: self.move(held.at, both_of(held, several[k])))
        return held

    def by_enumerate(self, of: Any) -> Any:
        return Lazy(self.length(of), lambda k: (k, self.element(of, k))) if isinstance(of, Symbol) else [*enumerate(of)]

    def by_zip(self, *several: Any, strict: bool = False) -> Any:
        if not any(isinstance(one, Symbol) for one in several):
            return [*zip(*several, strict=strict)]
        each = [(one, isinstance(one, Coefficient)) for one in several]
        return Lazy(
            self.length(several[0]), lambda k: tuple(one if whole else self.element(one, k) for one, whole in each)
        )

    def by_reversed(self, of: Any) -> Any:
        return of[::-1]

    def found_at(self, group: Any, x: Any) -> Any:
        """Where a number is in a group."""
        if isinstance(group, range):
            return self.as_range(group).index(x)
        where = {one: k for k, one in reversed([*enumerate(group)])}
        return self.looked_up([where.get(rank, -1) for rank in range(1 + max(where))], x)

    # ---- names

    def bind(self, scope: Scope, target: ast.expr, value: Any) -> None:
        """Give a name a value, or names those of a tuple."""
        if isinstance(target, ast.Name):
            self.name(scope, target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = [self.copied(one) for one in self.elements(value)]
            for one, part in zip(target.elts, parts, strict=True):
                self.bind(scope, one, part)
        elif isinstance(target, ast.Attribute) and self.value(scope, target.value) is self.me and target.attr == "step":
            self.emit(op.IN_STEP, value)
        elif isinstance(target, ast.Subscript) and isinstance(held := self.value(scope, target.value), List):
            held[self.value(scope, target.slice)] = value
        else:
            raise NotLowered(f"{ast.unparse(target)} is set")

    def name(self, scope: Scope, name: str, value: Any) -> None:
        """Give a name a value: in its registers, where those of a loop or a branch hold it.

        Raises:
            NotLowered: it has been of another kind.
        """
        held = scope.names.get(name)
        if isinstance(held, List) and self.depth:
            if not isinstance(value, (list, tuple)):
                raise NotLowered(f"{name} is one list, then another")
            self.emit(op.NEW_LIST, Plain(held.which.at), Plain(held.number))
            for one in value:
                held.append(one)
        elif self.is_cell(held):
            self.assign(name, held, value)
        else:
            scope.names[name] = self.copied(value)

    def assign(self, name: str, held: Any, value: Any) -> None:
        """Copy a value to the registers of another one."""
        if isinstance(held, Message) and value is None:
            self.move(held.at, op.NONE)
        elif shape(held) != shape(value):
            raise NotLowered(f"{name} is of one kind, vector or stride, then of another")
        else:
            for one, now in zip(numbers(held), numbers(value), strict=True):
                self.move(one.at, now)

    def is_cell(self, value: Any) -> bool:
        """Whether a value lies in registers that change."""
        return any(isinstance(one, Number) and one.at in self.cells for one in numbers(value))

    def copied(self, value: Any) -> Any:
        """A value that does not change when that of a name does."""
        return shaped(value, Number(self, self.together(numbers(value)))) if self.is_cell(value) else value


def is_numeric(value: Any) -> bool:
    """Whether a sequence has known numbers alone, or tuples of as many."""
    if (
        value
        and isinstance(value, list | tuple)
        and all(isinstance(one, tuple) and len(one) == len(value[0]) for one in value)
    ):
        return all(map(is_numeric, value))
    return all(isinstance(one, (int, float)) for one in value)


@cache
def bound(*nodes: ast.AST) -> frozenset[str]:
    """Names that nodes bind."""
    every = [one for node in nodes for one in ast.walk(node)]
    inner = {id(name) for one in every if isinstance(one, ast.comprehension) for name in ast.walk(one.target)}
    stored = (
        one for one in every if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and id(one) not in inner
    )
    return frozenset(one.id for one in stored)
