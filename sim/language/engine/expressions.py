"""Expressions of a text: Python's operators work out what is known, and make rows of symbols."""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import os
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial, reduce
from operator import add, eq, ge, gt, le, lt, ne
from types import CodeType
from typing import Any

from sim.language.engine import layout as op
from sim.language.engine.rows import Code
from sim.language.engine.values import (
    Coefficient,
    Lazy,
    List,
    Message,
    NotLowered,
    Number,
    Part,
    Range,
    Symbol,
    both,
    described,
    folded,
    negated,
    numbers,
    shape,
    symbolic,
    truth,
)

# Expressions that Python makes of their operands' values.
OPERATIONS = {ast.Attribute, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp, ast.AugAssign, ast.Call}
COMPARED = {ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge, ast.Eq: eq, ast.NotEq: ne}
READING = ("index", "count", "get", "keys", "items", "values", "copy")  # methods that change no list, dictionary or set


@cache
def operation(node: ast.expr | ast.AugAssign) -> tuple[list[ast.expr], Callable[..., Any]]:
    """The operands of an expression, and what Python makes of their values."""
    operands: list[ast.expr] = []
    if isinstance(node, ast.AugAssign):
        node = ast.BinOp(node.target, node.op, node.value)

    def replaced(one: Any) -> Any:
        if isinstance(one, list):
            return [replaced(each) for each in one]
        if isinstance(one, ast.Starred | ast.keyword):
            return type(one)(**{**vars(one), "value": replaced(one.value)})
        if isinstance(one, ast.expr):
            operands.append(one)
            return ast.Name(f"x{len(operands)}")
        return one

    whole = type(node)(**{name: replaced(one) for name, one in ast.iter_fields(node)})
    names = ", ".join(f"x{k + 1}" for k in range(len(operands)))
    return operands, eval(f"lambda {names}: {ast.unparse(whole)}")


@cache
def tree_of(code: CodeType) -> ast.FunctionDef:
    """The source of a function; NotLowered if it has none."""
    with suppress(OSError, TypeError, SyntaxError):
        (found,) = ast.parse(textwrap.dedent(inspect.getsource(code))).body
        if isinstance(found, ast.FunctionDef):
            ast.increment_lineno(found, code.co_firstlineno - 1)
            return found
    raise NotLowered(f"{code.co_qualname} has no source, or no name")


class Scope:
    """The names of one call of a function, at first its arguments, and those around the function."""

    def __init__(self, code: CodeType, names: dict[str, Any], around: dict[str, Any]):
        self.code, self.names, self.around = code, names, around
        self.locals = {*code.co_varnames, *code.co_cellvars}
        self.file = os.path.basename(code.co_filename)
        self.node: ast.stmt = tree_of(code)  # that is lowered now
        self.returns: list[int] = []  # rows that jump to the end
        self.result: Any = None


class Expressions(Code):
    """Expressions of a text. What is not understood raises NotLowered."""

    me: Any  # of a text that is lowered, as its job, and what lowering.py and primitives.py add
    job: Any
    run: Any
    counted: Any
    inlined: Any

    def value(self, scope: Scope, node: ast.AST) -> Any:
        """What an expression is."""
        if type(node) is ast.Constant:
            return node.value
        if way := getattr(self, f"on_{type(getattr(node, 'op', node)).__name__}", None):
            return way(scope, node)
        if type(node) not in OPERATIONS:
            return self.evaluated(scope, node)
        operands, python = operation(node)
        values = [self.value(scope, one) for one in operands]
        if type(node) is ast.Call:
            values[0] = partial(self.called, values[0])
        return python(*map(self.copied, values) if type(node) in (ast.Tuple, ast.List) else values)

    def evaluated(self, scope: Scope, node: ast.AST) -> Any:
        """What Python makes of an expression."""
        return eval(compile(ast.Expression(node), "text", "eval"), {**scope.around, **scope.names})  # type: ignore[arg-type]

    def on_Name(self, scope: Scope, node: ast.Name) -> Any:
        if node.id in scope.names:
            return scope.names[node.id]
        if node.id in scope.locals:
            raise NotLowered(f"{node.id} is not bound here, or only in a branch or loop before")
        return scope.around[node.id] if node.id in scope.around else getattr(builtins, node.id)

    def on_Not(self, scope: Scope, node: ast.UnaryOp) -> Any:
        return negated(self.tested(scope, node.operand))

    def on_Or(self, scope: Scope, node: ast.BoolOp) -> Any:
        return self.either(scope, node, self.value)

    on_And = on_Or

    def tested(self, scope: Scope, node: ast.expr) -> Any:
        """Whether an expression holds: a number that is 0 where it does not."""
        return self.either(scope, node, self.tested) if isinstance(node, ast.BoolOp) else truth(self.value(scope, node))

    def either(self, scope: Scope, node: ast.BoolOp, value_of: Callable[[Scope, ast.expr], Any]) -> Any:
        """The first operand that decides, or the last."""
        value = value_of(scope, node.values[0])
        for one in node.values[1:]:
            ways = (lambda value=value: value), partial(value_of, scope, one)
            value = self.chosen(truth(value), *(ways if isinstance(node.op, ast.Or) else ways[::-1]))
        return value

    def on_IfExp(self, scope: Scope, node: ast.IfExp) -> Any:
        ways = partial(self.value, scope, node.body), partial(self.value, scope, node.orelse)
        return self.chosen(self.tested(scope, node.test), *ways)

    def chosen(self, test: Any, way: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """What a way gives where a test holds, and the other elsewhere."""
        if not symbolic(test):
            return way() if test else other()
        jump = self.jump(unless=test)
        held = self.in_registers(way())
        over = self.jump()
        self.here(jump)
        self.assign("what is chosen", held, other())
        self.here(over)
        return held

    def on_Compare(self, scope: Scope, node: ast.Compare) -> Any:
        values = [self.value(scope, one) for one in (node.left, *node.comparators)]
        return reduce(both, map(self.compared, node.ops, values, values[1:]))

    def compared(self, sign: ast.cmpop, x: Any, y: Any) -> Any:
        """Whether a comparison of two values holds."""
        if type(sign) in COMPARED:
            return COMPARED[type(sign)](x, y)
        if isinstance(sign, (ast.In, ast.NotIn)):
            found = self.has(y, x) if symbolic((x, y)) else x in y
        elif isinstance(x, Message) and y is None:
            found = negated(x.is_there)
        else:
            found = x == y if isinstance(x, Number) and y is not None else x is y
        return found if isinstance(sign, (ast.Is, ast.In)) else negated(found)

    def has(self, group: Any, x: Any) -> Any:
        """Whether a number is in a group, or among those of a list."""
        if not isinstance(group, (List, list, tuple, set)):
            return self.as_range(group).has(x)
        found = self.put(op.MOVE, 0, 0)

        def turn(one):
            if shape(one) != Number or shape(x) != Number:
                raise NotLowered(f"whether {described(x)} is among others")
            self.move(found.at, folded(max, found, one == x))

        if isinstance(group, List):
            self.counted(group.length, lambda k: turn(group[k]))
        else:
            for one in group:
                turn(one)
        return found

    def as_range(self, value: Any) -> Range:
        """A group of ranks: a range upwards, or one rank."""
        if isinstance(value, (Number, int)):
            return Range(value, value + 1)
        if isinstance(value, range):
            return Range(value.start, value.stop, value.step)
        if not isinstance(value, Range):
            raise NotLowered(f"{described(value)} as a group of ranks: a rank or a range upwards")
        return value

    def on_YieldFrom(self, scope: Scope, node: ast.YieldFrom) -> Any:
        return self.run(self.value(scope, node.value))

    # ---- sequences

    def length(self, value: Any) -> Any:
        """How many elements there are."""
        return value.length if isinstance(value, Symbol) else len(value)  # type: ignore[attr-defined]

    def element(self, value: Any, k: Any) -> Any:
        """value[k], where k is not below 0."""
        if not symbolic(k) or isinstance(value, (Symbol, Part)):
            return value[k]
        if isinstance(value, range):
            return value.start + k * value.step
        if isinstance(value[0], tuple):
            return tuple(self.looked_up(column, k) for column in zip(*value, strict=True))
        return self.looked_up(value, k)

    def elements(self, value: Any) -> list[Any]:
        """All elements of a sequence whose length is known."""
        return [self.element(value, k) for k in range(self.length(value))] if isinstance(value, Symbol) else [*value]

    def on_Subscript(self, scope: Scope, node: ast.Subscript) -> Any:
        base, k = self.value(scope, node.value), self.value(scope, node.slice)
        if symbolic(k) and isinstance(base, (range, Range)):
            base, wraps = self.as_range(base), isinstance(node.slice, ast.BinOp) and isinstance(node.slice.op, ast.Mod)
            k = k if wraps or isinstance(k, slice) else k % base.length  # it may be below 0
        known = isinstance(base, (Symbol, Part, range, list, tuple))
        return self.element(base, k) if known or not symbolic(k) else Coefficient(self, op.NONE)

    def on_Slice(self, scope: Scope, node: ast.Slice) -> slice:
        return slice(*(self.value(scope, one) if one else None for one in (node.lower, node.upper, node.step)))

    def on_ListComp(self, scope: Scope, node: ast.ListComp | ast.GeneratorExp) -> Any:
        """Python's, where it needs to know no symbol; else a list that is made when ranks run."""
        asks_for_none = any(isinstance(one, (ast.Is, ast.IsNot)) for one in walked(node))
        whole = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
        if not asks_for_none and (found := self.tried(lambda: self.evaluated(scope, whole))):
            return [*map(self.copied, found[0])]
        (one,), inner = node.generators, copy.copy(scope)
        source, made = self.value(scope, one.iter), self.fresh()
        source = source if isinstance(source, (Symbol, range)) else [*source]
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

    def called(self, function: Any, *given: Any, **named: Any) -> Any:
        """A function is called by Python if it can, else followed; what it gives of symbols is a coefficient if neither works."""
        varies, owner = symbolic([*given, *named.values()]), getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        if varies and function is getattr(builtins, name, None):
            if name not in BUILTINS:
                raise NotLowered(f"{name} of what is not known before ranks run")
            return BUILTINS[name](self, *given, **named)
        if isinstance(owner, (list, dict, set)) and name not in READING:
            raise NotLowered(f".{name}() of a {type(owner).__name__} with elements, in another function")
        if isinstance(owner, (list, tuple, range)) and name == "index" and varies:
            return self.found_at(owner, *given)
        if inspect.isgeneratorfunction(function) or isinstance(owner, (Symbol, Part, type(self.me))):
            return function(*given, **named)
        call = partial(self.followed, function) if varies else function
        if found := self.tried(lambda: call(*given, **named)):
            return found[0]
        return Coefficient(self, op.NONE) if varies else self.followed(function, *given, **named)

    def followed(self, function: Any, *given: Any, **named: Any) -> Any:
        """What a function without waiting returns, statement by statement."""
        if inspect.ismethod(function):
            return self.followed(function.__func__, function.__self__, *given, **named)
        arguments = inspect.signature(function).bind(*given, **named)
        arguments.apply_defaults()
        around = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
        return self.inlined(function.__code__, {**around, **arguments.arguments}, function.__globals__)

    def fold(self, both_of: Callable[[Any, Any], Any], *given: Any, begin: Sequence[int] = ()) -> Any:
        """The least, the most or the sum of numbers, or of those of a list, which are gone through when ranks run."""
        several = given[0] if len(given) == 1 else given
        if not isinstance(several, List):
            return reduce(both_of, [*begin, *self.elements(several)])
        n, held = several.length, self.put(op.MOVE, begin[0] if begin else several[0], 0)
        self.counted(n, lambda k: self.move(held.at, both_of(held, several[k])))
        return held

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
            for one, part in zip(target.elts, self.elements(value), strict=True):
                self.bind(scope, one, part)
        elif isinstance(target, ast.Attribute) and self.value(scope, target.value) is self.me and target.attr == "step":
            self.emit(op.IN_STEP, value)
        elif isinstance(target, ast.Subscript) and isinstance(held := self.value(scope, target.value), List):
            held[self.value(scope, target.slice)] = value
        else:
            raise NotLowered(f"{ast.unparse(target)} is set")

    def name(self, scope: Scope, name: str, value: Any) -> None:
        """Give a name a value: in its registers, where those of a loop or a branch hold it."""
        held = scope.names.get(name)
        if hasattr(value, "__next__") and not inspect.isgenerator(value):
            raise NotLowered(f"{name} is what can be gone through once")
        if isinstance(held, List) and self.depth:
            if not isinstance(value, (list, tuple)):
                raise NotLowered(f"{name} is one list, then another")
            self.filled(held, value)
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


BUILTINS: dict[str, Callable[..., Any]] = {  # of what is not known
    "len": Expressions.length,
    "range": lambda _, *ends: Range(*ends) if len(ends) > 1 else Range(0, *ends),
    "int": lambda code, x: code.put(op.WHOLE, x, 0),
    "float": lambda _, x: x,
    "bool": lambda _, x: truth(x) != 0,
    "min": lambda code, *given: code.fold(partial(folded, min), *given),
    "max": lambda code, *given: code.fold(partial(folded, max), *given),
    "sum": lambda code, given: code.fold(add, given, begin=(0,)),
    "enumerate": lambda code, of: Lazy(code.length(of), lambda k: (k, code.element(of, k))),
    "zip": lambda code, *each, strict=False: Lazy(
        reduce(partial(folded, min), [code.length(one) for one in each if not isinstance(one, Coefficient)]),
        lambda k: tuple(code.element(one, k) for one in each),
    ),
}


@cache
def walked(*nodes: ast.AST) -> tuple[ast.AST, ...]:
    """Nodes, and all within them."""
    return tuple(one for node in nodes for one in ast.walk(node))


@cache
def bound(*nodes: ast.AST) -> frozenset[str]:
    """Names that nodes bind."""
    return frozenset(one.id for one in walked(*nodes) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
