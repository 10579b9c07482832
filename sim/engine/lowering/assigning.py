"""Assignments: a name is what was assigned to it, or has a place of its own if it is assigned several times."""

from __future__ import annotations

import ast

from sim.engine.kernel import ops
from sim.engine.lowering.binding import Binding
from sim.engine.lowering.values import Value, loaded

OWN_ROOM = 64  # items of a user's list, besides four a rank


class Assigning(Binding):
    """Scopes in which names, fields and items are assigned."""

    def fill(self, made: Value, many: Value, node: ast.AST) -> None:
        """Make a list hold what another one does."""
        if many.at != made.at or many.kind != "list":
            self.code.emit(ops.ACLEAR, made.at)
            self.over(many, node, lambda item: self.push(made, item, node))

    def assign_all(self, targets: list[ast.expr], expression: ast.expr) -> None:
        """An assignment to one target or several: the whole value is there before the first target changes."""
        value = self.value(expression)
        if isinstance(expression, ast.List) and value.kind == "items":
            value = self.listed(value, expression)
        elif self.frame.is_ours and isinstance(expression, ast.Name | ast.Attribute | ast.Tuple):
            value = self.kept(value)  # what it is now, whatever becomes of the other name
        for target in targets:
            if not isinstance(target, ast.Tuple):
                self.assign(target, value)
                continue
            if value.kind != "items" or len(value.at) != len(target.elts):
                self.fail(target, "as many values are needed")
            for one, item in zip(target.elts, value.at, strict=True):
                self.assign(one, item)

    def listed(self, many: Value, node: ast.AST) -> Value:
        """A new list of some items."""
        made = self.new_list(4 * self.scenario.ranks + (8 if self.frame.is_ours else OWN_ROOM))
        self.fill(made, many, node)
        return made

    def assign(self, target: ast.expr, value: Value, loop: bool = False) -> None:
        """One target; of a loop it is another one each time."""
        if isinstance(target, ast.Name) and not self.frame.is_ours:
            self.bind(target, value)
        elif isinstance(target, ast.Name):
            self._assign_name(target, value, loop)
        elif isinstance(target, ast.Attribute):
            place = self.value(loaded(target))
            if place.kind != "reg" or not self.frame.is_ours:
                self.fail(target)
            self.code.emit(ops.MOV, place.at, self.scalar(value, target))
        elif isinstance(target, ast.Subscript):
            many, at = self.value(target.value), self.value(target.slice)
            if many.kind != "list":
                self.fail(target)
            self.put(many, at, value, target)
        else:
            self.fail(target)

    def _assign_name(self, target: ast.Name, value: Value, loop: bool) -> None:
        names, name = self.frame.names, target.id
        if name not in self.frame.several or loop:
            names[name] = value
            return
        place = names.get(name)
        if place is None or (place.kind != value.kind and value.kind != "const"):
            names[name] = self.variable(value, target)
        elif place.kind == "reg":
            self.code.emit(ops.MOV, place.at, self.scalar(value, target))
        elif place.kind == "letter":
            self.move_letter(place, value)
        elif place.kind == "list" and self.frame.is_ours:
            self.fill(place, value, target)
        else:
            self.fail(target, "assigned as several kinds of things")
