"""Calls in users' texts: what Python would hand over, and what the event world would refuse."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from sim.engine.lowering.assigning import BOUND
from sim.engine.lowering.functions import Functions
from sim.engine.lowering.known import is_generator, is_known, is_verb
from sim.engine.lowering.values import ME, Value
from sim.engine.lowering.verbs import Named, Values
from sim.verbs.me import PRIMITIVES, Me, Note, Partition
from sim.worlds.texts import AT_ONCE

SAID, COUNTED, TAKE_ALL = (Partition, Note), (len, min, max, range, super), (sum, min, max, tuple)
GIVEN = (*BOUND, "partition", "note", "exchange")  # kinds of arguments
OWN_PRIMITIVES = set(PRIMITIVES) - {"cycle", "copy", "departed"} | {"run_out"}


class OwnCalls(Functions):
    """Scopes of users' calls."""

    def own_call(self, callee: Value, node: ast.Call, runs: bool) -> Value:
        """A call in a user's text, which Python would make too."""
        if callee.kind not in ("verb", "method", "const") or any(one.arg is None for one in node.keywords):
            self.fail(node)
        if runs is not ((callee.kind == "verb" and callee.at != "run_out") or is_generator(callee)):
            self.fail(node, "no verb after `yield from`" if runs else "without `yield from`")
        if callee.kind == "verb" and callee.at == "beside":
            return self._beside_own(node)
        given = [value for one in node.args for value in self._given(one, callee)]
        named = {str(one.arg): self.value(one.value) for one in node.keywords}
        if callee.kind == "verb":
            return self._own_primitive(callee.at, given, named, node)
        if callee.kind == "method":
            return self.fail(node) if named or len(given) != 1 else self.method(callee.at[0], callee.at[1], given, node)
        return self._own_function(callee.at, given, named, node, runs)

    def _own_primitive(self, name: str, given: Values, named: Named, node: ast.Call) -> Value:
        """A primitive of `me`; only a letter is something to go on with."""
        if name not in OWN_PRIMITIVES:
            self.fail(node)
        bound = inspect.signature(getattr(Me, name)).bind(ME, *given, **named)
        found = self.primitive(name, list(bound.args[1:]), bound.kwargs, node)
        return found if found.kind == "letter" else Value("nothing")

    def _own_function(self, function: Any, given: Values, named: Named, node: ast.Call, runs: bool) -> Value:
        """A function of Python's, of ours, or of the user's."""
        if function in SAID:
            return self._said(function, given, named) or self.fail(node)
        if function in COUNTED and not named and (counted := self._counted(function, given, node)) is not None:
            return counted
        if function is set and not named and len(given) < 2:
            return self._made(set, given, node) or self.fail(node)
        if function in TAKE_ALL:
            given = [self.known_items(one) for one in given]
        if is_verb(function):
            self._check_verb(function, given, named, node)
            if self.is_wrong(f"{function.__name__}(me)", given[1:], named):
                return self.mistake()
        found = self._called(function, given, named, node, runs)
        if found.kind == "reg" and found.at < 0:
            return self.kept(found)
        return Value("nothing") if found.is_none and is_verb(function) else found

    def _check_verb(self, function: Callable, given: Values, named: Named, node: ast.Call) -> None:
        """A verb begins with `me`, and numbers that it takes are integers, but for seconds."""
        for name, value in inspect.signature(inspect.unwrap(function)).bind(*given, **named).arguments.items():
            if (name == "me") is not (value.kind == "me"):
                self.fail(node)
            is_float = value.kind == "const" and isinstance(value.at, float)
            if not name.endswith("_s") and (is_float or (value.kind == "reg" and not value.whole)):
                self.fail(node, f"{name} is no integer")

    def _given(self, node: ast.expr, callee: Value) -> Values:
        """The values of one argument."""
        if isinstance(node, ast.Starred):
            many = self.value(node.value)
            if many.kind == "const" and type(many.at) in (tuple, list, range):
                return [Value("const", one) for one in many.at]
            return many.at if many.kind == "items" else self.fail(node)
        if isinstance(node, ast.GeneratorExp) and callee.at in TAKE_ALL:
            self.conditions.add(node)
        value = self.value(node)
        return [value] if value.kind in GIVEN else self.fail(node)

    def _beside_own(self, node: ast.Call) -> Value:
        """Two texts of a user, of which each has registers of its own."""
        for text in node.args:
            inside = text.args if isinstance(text, ast.Call) and not text.keywords else [text]
            for one in inside:
                if self.value(one).kind not in ("const", "me"):
                    self.fail(one, "a text beside another has arguments that are known before the run")
        return self.fail(node) if node.keywords or len(node.args) != AT_ONCE else self.beside(*node.args)

    def of_property(self, of: Value, name: str, node: ast.AST) -> Value:
        """A property of a user's class."""
        found = inspect.getattr_static(of.at, name)
        get = found.fget if isinstance(found, property) else None
        if get is None or not is_known(get) or inspect.isgeneratorfunction(get):
            self.fail(node)
        return self.inline(get, [of], {}, node)
