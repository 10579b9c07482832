"""Calls of functions: verbs, constructors, methods of sets and lists, and functions over `me`, which are inlined."""

from __future__ import annotations

import ast
import inspect
import os
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sim.collectives.base import Exchange, hand, swap, take
from sim.engine.kernel import ops
from sim.engine.lowering.values import ME, NOTHING, Frame, Value, tree_of
from sim.engine.lowering.verbs import NO, Named, Values, Verbs
from sim.protocols.own import SOURCES
from sim.verbs import gather
from sim.verbs.me import Layer, Note, Partition, Variable

if TYPE_CHECKING:
    from sim.protocols.base import Protocol


class Functions(Verbs):
    """Calls, and what functions return."""

    def _of_Call(self, node: ast.Call) -> Value:
        runs, self.runs = self.runs, False
        callee = self.value(node.func)
        if callee.kind == "verb" and not (runs or self.frame.is_ours or callee.at == "run_out"):
            self.fail(node, "without `yield from`")
        if callee.kind == "verb" and callee.at == "beside":
            return self.beside(*node.args)
        given: Values = []
        for one in node.args:
            given += self.value(one.value).at if isinstance(one, ast.Starred) else [self.value(one)]
        named = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        if callee.kind == "verb":
            return self.primitive(callee.at, given, named, node)
        if callee.kind == "method":
            of, name = callee.at
            return self.method(of, name, given, node)
        return self._built(callee.at, given, named, node) or self._called(callee.at, given, named, node, runs)

    def _built(self, function: Any, given: Values, named: Named, node: ast.Call) -> Value | None:
        """What Python's own functions, and those of messages, make of values that differ from run to run."""
        return (
            self._counted(function, given, node)
            or self._said(function, given, named)
            or self._made(function, given, node)
        )

    def _counted(self, function: Any, given: Values, node: ast.Call) -> Value | None:
        """What Python's own functions make."""
        if function is isinstance:
            known = given[0].kind == "const" and isinstance(given[0].at, given[1].at)
            return Value("const", known or given[0].kind == "reg")
        if function is len and given[0].kind in ("set", "list"):
            return Value("reg", self.truth(given[0], node))
        if function is len and given[0].kind == "ready":
            return self.alu(ops.MINUS, given[0].at + 1, given[0].at)
        if function in (min, max) and len(given) == 2 and any(one.kind == "reg" for one in given):
            operation = ops.LEAST if function is min else ops.MOST
            return self.alu(operation, *(self.scalar(one, node) for one in given))
        if function is super and not given:
            return Value("const", super(_holder(self.scenario.protocol, self.frame.function), self.scenario.protocol))
        if function is len and given[0].kind == "counter":
            return Value("reg", given[0].at[1])
        if function is Counter and given and given[0].kind == "counter":
            return given[0]
        if function is reversed and given[0].kind == "const" and isinstance(given[0].at, range):
            return Value("const", given[0].at[::-1])
        return None

    def _said(self, function: Any, given: Values, named: Named) -> Value | None:
        """Parts of a gradient, and what messages carry."""
        if function is Layer:
            return Value("layer", dict(zip(("variable", "share"), given, strict=False)) | named)
        if function is Variable:
            return Value("variable", given[0])
        if function is Partition:
            return Value("partition", tuple(given))
        if function is Note:
            parts = dict(zip(("version", "last"), given, strict=False)) | named
            return Value("note", {"version": NOTHING, "last": NO} | parts)
        return None

    def _made(self, function: Any, given: Values, node: ast.Call) -> Value | None:
        """A set of ranks, a list, or a dict with one value for each."""
        if function is deque:
            return self.listed(given[0] if given else Value("items", []), node)
        if function is set and given and self.known(given[0]) is False:  # a loop while there are some is left out
            return Value("items", [])
        if function is set and not (given and given[0].kind == "const" and isinstance(given[0].at, range)):
            made = self.code.set_of(0, self.scenario.ranks, self.ranks)
            self.code.emit(ops.SETFILL, made, 0, 0)
            many = given[0] if given else Value("items", [])
            self.over(many, node, lambda one: self.code.emit(ops.SETADD, made, self.scalar(one, node)))
            return Value("set", made)
        if function is set:
            whole = given[0].at
            made = self.code.set_of(whole.start, whole.stop, self.ranks)
            self.code.emit(ops.SETFILL, made, whole.start, whole.stop)
            return Value("set", made)
        if function == dict.fromkeys:
            whole, value = given[0].at, self.scalar(given[1], node)
            if isinstance(whole, tuple):
                return self._counts(whole, value)
            made = self.code.list_of(whole.stop, self.ranks)
            self.code.emit(ops.AFILL, made, whole.start, whole.stop, value)
            return Value("list", made)
        return None

    def _counts(self, keys: tuple[int, ...], value: int) -> Value:
        """A dict of small integers with the same count for each, for a Counter."""
        made, left = self.code.list_of(max(keys, default=0) + 1, self.ranks), self.fresh()
        for key in keys:
            self.code.emit(ops.APUT, made, self.code.constant(key), value)
        self.code.emit(ops.MOV, left, self.code.constant(len(keys)))
        return Value("counter", (Value("list", made), left))

    def _called(self, function: Any, given: Values, named: Named, node: ast.Call, runs: bool) -> Value:
        """A function that is known: folded, an instruction of ours, or inlined."""
        constant = all(one.kind == "const" for one in (*given, *named.values()))
        if not (self.frame.is_ours or _is_known(function)):
            self.fail(node)
        if function in EXCHANGES and not constant:
            return self.exchange(function, given, named, node)
        if not (runs or self.frame.is_ours) and inspect.isgeneratorfunction(inspect.unwrap(function)):
            self.fail(node, "without `yield from`")
        folds = inspect.isbuiltin(function) or isinstance(function, type)
        if constant and (folds or _is_ours(function)):
            return Value("const", function(*(one.at for one in given), **{name: one.at for name, one in named.items()}))
        macro = getattr(self, f"_macro_{getattr(function, '__name__', '')}", None)
        if macro and inspect.unwrap(function).__module__.startswith("sim.verbs."):
            return macro(*given[1:], **named)
        if inspect.ismethod(function):
            return self.inline(function.__func__, [Value("const", function.__self__), *given], named)
        return self.inline(function, given, named) if inspect.isfunction(function) else self.fail(node)

    def _macro_gather(self, peers: Value) -> Value:
        """The loop of the verb, and what stands for it where rank 0 is a hub."""
        end, of = self.tag(), self.scenario
        if peers.at == range(1, of.ranks):
            self.code.emit(ops.COLLECT, end)
        self.inline(gather, [ME, peers], {})
        self.code.label(end)
        return NOTHING

    def exchange(self, function: Any, given: Values, named: Named, node: ast.Call) -> Value:
        """An exchange whose peers are numbers of the run, and whose pieces are known."""
        names = list(Exchange._fields) if function is Exchange else list(inspect.signature(function).parameters)
        parts = dict(zip(names, given, strict=False)) | named
        if function is swap:
            parts = {"to": parts["peer"], "source": parts.pop("peer"), **parts}
        elif function is hand:
            parts["sent"] = parts.pop("piece")
        elif function is take:
            parts["taken"] = parts.pop("piece")
        if any(value.kind != "const" for name, value in parts.items() if name not in ("to", "source")):
            self.fail(node, "pieces that are known before the run are needed")
        of = Exchange(**{name: value.at for name, value in parts.items() if name not in ("to", "source")})
        return Value("exchange", (of, parts.get("to", NOTHING), parts.get("source", NOTHING)))

    def method(self, of: Value, name: str, given: Values, node: ast.Call) -> Value:
        """A method of a set or a list."""
        emit = self.code.emit
        if of.kind == "set" and name in ("add", "remove", "discard"):
            emit(ops.SETADD if name == "add" else ops.SETDEL, of.at, self.scalar(given[0], node))
        elif of.kind == "set" and name == "difference_update":
            self.over(given[0], node, lambda one: emit(ops.SETDEL, of.at, self.scalar(one, node)))
        elif of.kind == "list" and name == "extend":
            self.over(given[0], node, lambda one: emit(ops.APUSH, of.at, self.scalar(one, node)))
        elif of.kind == "list" and name == "append":
            emit(ops.APUSH, of.at, self.scalar(given[0], node))
        elif of.kind == "list" and (name == "popleft" or (name == "get" and given[1].at == 0)):
            register = self.fresh()
            pops = name == "popleft"
            emit(*((ops.APOP, register, of.at) if pops else (ops.AGET, register, of.at, self.scalar(given[0], node))))
            return Value("reg", register)
        else:
            self.fail(node)
        return NOTHING

    def inline(self, function: Callable, given: Values, named: Named) -> Value:
        """The body of a function in place of its call; what it returns."""
        function = inspect.unwrap(function)
        tree, several = tree_of(function)
        parameters = [one.arg for one in tree.args.args]
        defaults = {name: Value("const", one) for name, one in zip(parameters[::-1], _defaults(function), strict=False)}
        frame = Frame(function, defaults | dict(zip(parameters, given, strict=False)) | named, several)
        frame.end = self.tag()
        for name in several & set(parameters):
            frame.names[name] = self.variable(frame.names[name], tree)
        outer, self.frame = getattr(self, "frame", frame), frame
        self.block(tree.body)
        if frame.live and frame.result is not None:
            self.returned(NOTHING, tree)
        self.code.label(frame.end)
        result = frame.result or NOTHING
        for (
            line
        ) in frame.nones:  # an absent letter has sender -1; where a function gives nothing, the line does nothing
            absent = [result.at, self.code.constant(-1)] if result.kind == "letter" else [0, 0]
            self.code.lines[line][1:3] = absent
        self.frame = outer
        return result

    def returned(self, value: Value, node: ast.AST) -> None:
        """One `return`: the first that gives something says where the result is."""
        frame = self.frame
        frame.live = False
        if value.kind == "const" and value.at is None:
            frame.nones.append(len(self.code.lines))
            self.code.emit(ops.MOV, 0, self.code.constant(-1))
        elif frame.result is None:
            frame.result = value if value.kind != "const" else self.variable(value, node)
        elif frame.result.kind == "letter" and value.at != frame.result.at:
            self.move_letter(frame.result, value)
        elif frame.result.kind == "list":
            self.fill(frame.result, value, node)
        elif frame.result.kind == "reg":
            self.code.emit(ops.MOV, frame.result.at, self.scalar(value, node))


def _is_ours(function: Any) -> bool:
    """Whether it is a method of ours that gives something at once."""
    module = getattr(function, "__module__", None) or ""
    return inspect.ismethod(function) and module.startswith("sim.") and not inspect.isgeneratorfunction(function)


PLAIN = int | float | str | tuple | range | slice | bool
PURE = {abs, bool, float, int, len, max, min, range, round, slice, str, sum, tuple}  # of what is known before the run
MODULES = {"math", "operator"}
EXCHANGES = {hand, take, swap, Exchange}


def _holder(protocol: Protocol, function: Callable) -> type:
    """The class whose text a function is."""
    texts = ((one, vars(one).get(function.__name__)) for one in type(protocol).__mro__)
    return next(one for one, text in texts if text is not None and inspect.unwrap(text) is function)


def _is_known(function: Any) -> bool:
    """Whether a user's text may call it: a function of ours or of its own module, or one that gives the same each time."""
    module = getattr(function, "__module__", None) or ""
    if inspect.isbuiltin(function) or isinstance(function, type):
        owner = getattr(function, "__self__", None)
        fixed = function in PURE or module in MODULES or module.startswith("sim.")
        return fixed or isinstance(owner, PLAIN)
    return module.startswith("sim.") or os.path.abspath(inspect.getsourcefile(function) or "") in SOURCES


def _defaults(function: Callable) -> tuple:
    """Defaults of the last parameters, the last first."""
    return (getattr(function, "__defaults__", None) or ())[::-1]
