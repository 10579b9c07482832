"""Calls of functions: verbs, constructors, methods of sets and lists, and functions over `me`, which are inlined."""

from __future__ import annotations

import ast
import inspect
from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from sim.base.home import installed
from sim.collectives.base import Exchange, hand, swap, take
from sim.engine.kernel import ops
from sim.engine.lowering.assigning import BOUND
from sim.engine.lowering.known import is_known, is_of_jobs
from sim.engine.lowering.names import names_of
from sim.engine.lowering.values import NOTHING, Frame, Value, tree_of
from sim.engine.lowering.verbs import NO, Named, Values, Verbs
from sim.verbs.me import Layer, Note, Partition, Variable

if TYPE_CHECKING:
    from sim.protocols.base import Protocol


class Functions(Verbs):
    """Calls, and what functions return."""

    def _of_Call(self, node: ast.Call) -> Value:
        runs, self.runs = self.runs, False
        callee = self.value(node.func)
        if not self.frame.is_ours:
            return self.own_call(callee, node, runs)
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

    def own_call(self, callee: Value, node: ast.Call, runs: bool) -> Value:
        """A call in a user's text."""
        raise NotImplementedError

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
        if function is range and any(one.kind == "reg" for one in given):
            return self._span(given, node)
        if function is len and given[0].kind == "items":
            return Value("const", len(given[0].at))
        if function is len and given[0].kind in ("set", "list"):
            return Value("reg", self.truth(given[0], node))
        if function is len and given[0].kind == "ready":
            return self.alu(ops.MINUS, given[0].at + 1, given[0].at)
        if function in (min, max) and len(given) == 2 and any(one.kind == "reg" for one in given):
            operation = ops.LEAST if function is min else ops.MOST
            first, second = given
            whole = first.is_whole and second.is_whole
            return self.alu(operation, self.scalar(first, node), self.scalar(second, node), whole)
        if function is super and not given:
            return Value("const", super(_holder(self.scenario.protocol, self.frame.function), self.scenario.protocol))
        if function is reversed and given[0].kind == "const" and isinstance(given[0].at, range):
            return Value("const", given[0].at[::-1])
        return None

    def _span(self, given: Values, node: ast.Call) -> Value:
        """A range between numbers of the run, one after another."""
        if len(given) > len(("start", "stop")):
            self.fail(node)
        first, stop = (Value("const", 0), *given)[-2:]
        for one in (first, stop):
            self.integer(one, node)
        return Value("span", (first, self.bound(stop)))

    def _said(self, function: Any, given: Values, named: Named) -> Value | None:
        """Parts of a gradient, and what messages carry."""
        if function is Layer:
            return Value("layer", dict(zip(("variable", "share"), given, strict=False)) | named)
        if function is Variable:
            return Value("variable", given[0])
        if function is Partition:
            index, of = inspect.signature(Partition).bind(*given, **named).arguments.values()
            return Value("partition", (index, of))
        if function is Note:
            parts = inspect.signature(Note).bind(*given, **named).arguments
            return Value("note", {"version": NOTHING, "last": NO} | parts)
        return None

    def _made(self, function: Any, given: Values, node: ast.Call) -> Value | None:
        """A set of ranks, a list, or a dict with one value for each."""
        if function is deque:
            return self.listed(given[0] if given else Value("items", []), node)
        if function is set and given and self.known(given[0]) is False:  # a loop while there are some is left out
            return Value("items", [])
        if function is set and given and given[0].kind == "const" and isinstance(given[0].at, range):
            whole = given[0].at
            made = self.code.set_of(whole.start, whole.stop, self.ranks)
            self.code.emit(ops.SETFILL, made, whole.start, whole.stop)
            return Value("set", made)
        if function is set:
            return self.set_of(given[0] if given else Value("items", []), node)
        if function == dict.fromkeys:
            whole, value = given[0].at, self.scalar(given[1], node)
            made = self.code.list_of(max(whole, default=0) + 1, self.ranks)
            for key in whole if isinstance(whole, tuple) else ():
                self.code.emit(ops.APUT, made, self.code.constant(key), value)
            if isinstance(whole, range):
                self.code.emit(ops.AFILL, made, whole.start, whole.stop, value)
            return Value("list", made)
        return None

    def _called(self, function: Any, given: Values, named: Named, node: ast.Call, runs: bool) -> Value:
        """A function that is known: folded, an instruction of ours, or inlined."""
        constant = all(one.kind == "const" for one in (*given, *named.values()))
        if not (self.frame.is_ours or is_known(function)):
            self.fail(node)
        if constant and not self.may_call(function, given, named):
            self.fail(node)
        if isinstance(function, Hashable) and function in EXCHANGES and not (constant and self.frame.is_ours):
            return self.exchange(function, given, named, node)
        folds = inspect.isbuiltin(function) or isinstance(function, type)
        if constant and (folds or _is_ours(function)):
            return Value("const", function(*(one.at for one in given), **{name: one.at for name, one in named.items()}))
        macro = getattr(self, f"_macro_{getattr(function, '__name__', '')}", None)
        if macro and inspect.unwrap(function).__module__.startswith(installed("sim.verbs.")):
            known = all(one.kind == "const" for one in (*given[1:], *named.values()))
            if not (self.frame.is_ours or known):
                self.fail(node, "what is known before the run is needed")
            return macro(*given[1:], **named)
        if inspect.ismethod(function):
            return self.inline(function.__func__, [Value("const", function.__self__), *given], named, node)
        return self.inline(function, given, named, node) if inspect.isfunction(function) else self.fail(node)

    def may_call(self, function: Any, given: Values, named: Named) -> bool:
        """Whether a user's text may have Python call a function before the run, if that is how it is called."""
        builtin = inspect.isbuiltin(function) or isinstance(function, type)
        return self.frame.is_ours or not builtin or is_of_jobs(function) or self.may_fold(*given, *named.values())

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
        if not (self.frame.is_ours or (of.kind, name) in METHODS):
            self.fail(node)
        if of.kind == "set" and not self.frame.is_ours:
            self.integer(given[0], node)
        if of.kind == "set" and name == "remove" and not self.frame.is_ours:
            self.needs(self.inside(self.scalar(given[0], node), of, node))
        if of.kind == "set" and name in ("add", "remove", "discard"):
            emit(ops.SETADD if name == "add" else ops.SETDEL, of.at, self.scalar(given[0], node))
        elif of.kind == "list" and name == "extend":
            self.over(given[0], node, lambda one: self.push(of, one, node))
        elif of.kind == "list" and name == "append":
            self.push(of, given[0], node)
        elif of.kind == "list" and (name == "popleft" or (name == "get" and given[1].at == 0)):
            register = self.fresh()
            pops = name == "popleft"
            emit(*((ops.APOP, register, of.at) if pops else (ops.AGET, register, of.at, self.scalar(given[0], node))))
            return Value("reg", register)
        else:
            self.fail(node)
        return NOTHING

    def inline(self, function: Callable, given: Values, named: Named, node: ast.AST | None = None) -> Value:
        """The body of a function in place of its call; what it returns."""
        function = inspect.unwrap(function) if function.__module__.startswith(installed("sim.")) else function
        tree, several = tree_of(function)
        frame = Frame(function, {}, several)
        frame.end = self.tag()
        if node is not None:  # it is no role's text itself
            frame.called_by, frame.called_at = self.frame, node
        self.bind_arguments(frame, tree, given, named)
        self.block(tree.body)
        if frame.live and frame.result is not None:
            self.returned(NOTHING, tree)
        self.code.label(frame.end)
        result = frame.result or NOTHING
        if frame.nones and not frame.is_ours and not (result.is_none or result.kind == "letter"):
            self.fail(tree, "returns None, or something else")
        absent = [result.at, self.code.constant(-1)] if result.kind == "letter" else [0, 0]  # which does nothing
        for line in frame.nones:
            self.code.lines[line][1:3] = absent
        self.frame = frame.called_by or frame
        return result

    def bind_arguments(self, frame: Frame, tree: ast.FunctionDef, given: Values, named: Named) -> None:
        """The arguments of a function, as Python hands them over."""
        function, around = frame.function, frame.called_by
        while around is not None:
            if around.function is function:
                self.fail(tree, "calls itself")
            around = around.called_by
        simple = not (tree.args.vararg or tree.args.kwarg or hasattr(function, "__wrapped__"))
        bound = inspect.signature(function).bind(*given, **named)
        bound.apply_defaults()
        self.frame = frame
        if not frame.is_ours:
            frame.local, frame.several = names_of(function)
        for name, one in bound.arguments.items():
            value = one if isinstance(one, Value) else Value("const", one)
            if frame.is_ours:
                frame.names[name] = self.variable(value, tree) if name in frame.several else value
            else:
                self.bind(ast.Name(name, ast.Store()), value) if simple else self.fail(tree)

    def returned(self, value: Value, node: ast.AST) -> None:
        """One `return`: the first that gives something says where the result is; a user's function gives one kind."""
        frame, ours = self.frame, self.frame.is_ours
        frame.live = False
        if value.is_none:
            frame.nones.append(len(self.code.lines))
            self.code.emit(ops.MOV, 0, self.code.constant(-1))
        elif not (ours or value.kind in BOUND):
            self.fail(node)
        elif frame.result is None:
            tree, _ = tree_of(frame.function)
            only = node is tree.body[-1] and sum(isinstance(one, ast.Return) for one in ast.walk(tree)) == 1
            stays = only or (ours and value.kind != "const")
            frame.result = self.bound(value) if stays else self.variable(value, node)
        elif ours and frame.result.kind == "list":
            self.fill(frame.result, value, node)
        elif not ours or value.at != frame.result.at:
            self.or_else(frame.result, value, node)


def _is_ours(function: Any) -> bool:
    """Whether it is a method of ours that gives something at once."""
    module = getattr(function, "__module__", None) or ""
    return (
        inspect.ismethod(function)
        and module.startswith(installed("sim."))
        and not inspect.isgeneratorfunction(function)
    )


EXCHANGES = {hand, take, swap, Exchange}
METHODS = {("set", "add"), ("set", "remove"), ("set", "discard"), ("list", "append"), ("list", "extend")}


def _holder(protocol: Protocol, function: Callable) -> type:
    """The class whose text a function is."""
    texts = ((one, vars(one).get(function.__name__)) for one in type(protocol).__mro__)
    return next(one for one, text in texts if text is not None and inspect.unwrap(text) is function)
