"""Names: what was assigned to one, or registers of its own if several places assign it; and fields and items that are assigned."""

from __future__ import annotations

import ast

from sim.engine.kernel import ops
from sim.engine.lowering.scope import Scope
from sim.engine.lowering.values import Again, Value, loaded

OWN_ROOM = 64  # items of a user's list, besides four a rank
BOUND = ("const", "reg", "letter", "list", "set", "items", "me")  # kinds of what a name may be
TWO_KINDS = "a name of two kinds"


class Assigning(Scope):
    """Scopes in which names, fields and items are assigned."""

    def bind(self, target: ast.Name, value: Value) -> None:
        """Assign a name of a user's."""
        frame, name = self.frame, target.id
        if value.kind not in BOUND:
            self.fail(target, f"a name of a {value.kind}")
        if name not in frame.several:
            frame.names[name] = self.bound(value)
        elif name not in frame.places:
            frame.places[name] = frame.names[name] = self.place_of(name, value, target)
        else:
            frame.names[name] = frame.places[name]
            self._replace(name, value, target)
        frame.assigned.add(name)

    def place_of(self, name: str, value: Value, target: ast.Name) -> Value:
        """Registers of a name's own, and its first value."""
        is_number = value.kind == "reg" or (value.kind == "const" and isinstance(value.at, int | float))
        if not (is_number or value.kind == "letter" or value.is_none):
            self.fail(target, f"assigned at several places, and no number: a {value.kind}")
        place = self.variable(value, target)
        place.changes, place.whole = True, (self.frame.function, name) not in self.inexact
        self._note_whole((self.frame.function, name), place, value)
        return place

    def _replace(self, name: str, value: Value, target: ast.Name) -> None:
        """A further value of a name."""
        place = self.frame.places[name]
        if place.kind == "letter" and (value.kind == "letter" or value.is_none):
            self.move_letter(place, value)
        elif place.kind == "reg" and value.kind in ("reg", "const") and not value.is_none:
            self._note_whole((self.frame.function, name), place, value)
            self.code.emit(ops.MOV, place.at, self.scalar(value, target))
        else:
            self.fail(target, TWO_KINDS)

    def _note_whole(self, key: object, place: Value, value: Value) -> None:
        """Take note that something does not hold integers alone.

        Raises:
            Again: it was taken to.
        """
        if place.kind in ("reg", "list") and place.whole and not value.is_whole:
            self.inexact.add(key)
            raise Again

    def bound(self, value: Value) -> Value:
        """A value that no assignment changes; lists and sets are the same ones under each of their names."""
        if value.kind == "items":
            return Value("items", [self.bound(one) for one in value.at])
        return self.kept(value) if value.changes else value

    def push(self, made: Value, value: Value, node: ast.AST) -> None:
        """Put a number at the end of a list."""
        if not self.frame.is_ours:
            self._note_whole(("list", made.at), made, value)
        self.code.emit(ops.APUSH, made.at, self.scalar(value, node))

    def put(self, many: Value, at: Value, value: Value, node: ast.AST) -> None:
        """Replace an item of a list."""
        if not self.frame.is_ours:
            self.integer(at, node)
            self._note_whole(("list", many.at), many, value)
        self.code.emit(ops.APUT, many.at, self.scalar(at, node), self.scalar(value, node))

    def new_list(self, room: int) -> Value:
        """A list, at each rank of the role."""
        number = self.code.list_of(room, self.ranks)
        return Value("list", number, ("list", number) not in self.inexact)

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
