"""Statements of texts, and the programs of all roles."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sim.base import own
from sim.engine.kernel import layout, ops
from sim.engine.lowering.own_calls import OwnCalls
from sim.engine.lowering.program import y
from sim.engine.lowering.values import ME, NOTHING, Again, Frame, NotLowered, TooFewRegisters, Value, loaded, tree_of
from sim.protocols import is_ours
from sim.protocols.base import Protocol
from sim.worlds.texts import role_of

if TYPE_CHECKING:
    from sim.engine.lowering.program import Code


# What is folded may raise these.
FOLDING = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, TypeError, ValueError)


class Statements(OwnCalls):
    """A method for each kind of statement."""

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Statements, up to one after which nothing is reached."""
        for node in body:
            if not self.frame.live:
                return
            found = getattr(self, f"_do_{type(node).__name__}", None)
            if found is None:
                self.fail(node)
            try:
                found(node)
            except FOLDING as error:
                self.fail(node, f"{type(error).__name__}: {error}")

    def _do_Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _do_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def _do_Assign(self, node: ast.Assign) -> None:
        self.assign_all(node.targets, node.value)

    def _do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign_all([node.target], node.value)

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript) and not self.frame.is_ours:
            self._change_item(node.target, node)
            return
        left = self.value(loaded(node.target))
        self.assign(node.target, self.binary(type(node.op), left, self.value(node.value), node))

    def _change_item(self, target: ast.Subscript, node: ast.AugAssign) -> None:
        """An item of a list becomes what an operator makes of it; its place is looked at once."""
        many, at = self.value(target.value), self.bound(self.value(target.slice))
        if many.kind != "list":
            self.fail(node)
        left = self.item(many, at, node)
        self.put(many, at, self.binary(type(node.op), left, self.value(node.value), node), node)

    def _do_Return(self, node: ast.Return) -> None:
        value = NOTHING if node.value is None else self.value(node.value)
        self.returned(value, node)
        if node is not tree_of(self.frame.function)[0].body[-1]:
            self.code.emit(ops.JMP, self.frame.end)

    def _do_Break(self, node: ast.Break) -> None:
        self._leaves(self.breaks, node)

    def _do_Continue(self, node: ast.Continue) -> None:
        self._leaves(self.continues, node)

    def _leaves(self, labels: list[str], node: ast.AST) -> None:
        """Go to where the loop around ends, or goes on."""
        self.code.emit(ops.JMP, labels[-1]) if labels else self.fail(node)
        self.left.add(labels[-1])
        self.frame.live = False

    def _do_If(self, node: ast.If) -> None:
        test, frame = self.test(node.test), self.frame
        known = self.known(test)
        if known is not None:
            self.block(node.body if known else node.orelse)
            return
        other, end, before = self.tag(), self.tag(), set(frame.assigned)
        self.code.emit(ops.BRZ, self.truth(test, node), other)
        self.block(node.body)
        live, frame.live, then, frame.assigned = frame.live, True, frame.assigned, before
        if node.orelse:
            self.code.emit(ops.JMP, end)
        self.code.label(other)
        self.block(node.orelse)
        if live:
            frame.assigned = frame.assigned & then if frame.live else then
        frame.live = frame.live or live
        self.code.label(end)

    def _do_While(self, node: ast.While) -> None:
        if node.orelse:
            self.fail(node)
        begin, end, before = self.tag(), self.tag(), set(self.frame.assigned)
        self.code.label(begin)
        test = self.test(node.test)
        if (known := self.known(test)) is None:
            self.code.emit(ops.BRZ, self.truth(test, node), end)
        elif not known:
            return
        self.around(begin, end, lambda: self.block(node.body), lambda: None)
        self.frame.assigned = before
        self.frame.live = not known or end in self.left

    def _do_For(self, node: ast.For) -> None:
        if node.orelse:
            self.fail(node)
        before = set(self.frame.assigned)

        def each(item: Value) -> None:
            self.frame.assigned = set(before)
            self.assign(node.target, item, loop=True)
            self.block(node.body)

        if self._is_steps(node.iter):
            self._rounds(node, each)
        else:
            self.over(self.value(node.iter), node, each)
        self.frame.assigned = before

    def _is_steps(self, node: ast.expr) -> bool:
        """Whether a loop is over the rounds."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "steps"):
            return False
        return self.value(node.func.value).kind == "me" and not (node.args or node.keywords)

    def _rounds(self, node: ast.For, each: Callable[[Value], None]) -> None:
        """All rounds; each sets the rank's step."""
        stop = Value("const", self.scenario.rounds)
        register, begin, end = self.counter(Value("const", 0), lambda: stop, node)
        self.code.emit(ops.MOV, y(layout.STEP), register)
        self.around(begin, end, lambda: each(Value("reg", register)), lambda: self._end_round(register))

    def _end_round(self, register: int) -> None:
        if self.scenario.by_all_ranks:
            self.code.emit(ops.ROUND)
        self.count_on(register)

    def programs(self) -> Code:
        """The code of all ranks.

        Raises:
            NotLowered: a text does not fit.
            TooFewRegisters: it needs more of them.
        """
        protocol = self.scenario.protocol
        if not is_ours(protocol):
            own.SOURCES.update(own.sources(type(protocol)))
        while True:
            try:
                return self._lowered(protocol)
            except Again:
                self._begin(self.scenario, self.tables, self.registers)

    def _lowered(self, protocol: Protocol) -> Code:
        """The code of all ranks, as far as what is known of names holds."""
        roles: dict[tuple, list[int]] = {}
        self.groups = self.scenario.groups(self.scenario.hosts)
        leads = set(self.groups.senders)
        by_server = self.scenario.servers if protocol.layerwise else 0
        for rank in range(self.scenario.ranks):
            own_variables = rank if rank < by_server else -1
            roles.setdefault((role_of(self.scenario, rank), rank in leads, own_variables), []).append(rank)
        for (role, leads_others, _), self.ranks in roles.items():
            self.next, self.book_sets = 0, {}
            self.frame = Frame(Protocol.worker, {}, set())  # what comes before the text is ours
            self.code.starts[self.ranks] = len(self.code.lines)
            self._place(leads_others)
            self._program(getattr(type(self.scenario.protocol), role))
        if self.most > self.code.top:
            raise TooFewRegisters
        return self.code

    def _place(self, leads: bool) -> None:
        """Whose gradients these ranks add up and send, and to whom: the others of their hosts, where these are added up there."""
        of, code = self.scenario, self.code
        groups = {rank: self.groups.of.get(rank, [rank]) for rank in self.ranks}
        self.neighbours, self.aggregators = Value("items", []), Value("const", range(of.servers))
        if not leads and self.ranks[0] >= of.servers:
            self.aggregators = Value("reg", code.by_rank({rank: group[0] for rank, group in groups.items()}))
        self._list_senders()
        most = max(len(group) for group in groups.values()) if leads else 1
        if most == 1:
            return
        self.neighbours = self.listed(Value("items", []), ast.Pass())
        for place in range(1, most):
            end = self.tag()
            other = code.by_rank({rank: (*group, *[-1] * most)[place] for rank, group in groups.items()})
            code.emit(ops.BRZ, self.alu(ops.AT_MOST, code.constant(0), other).at, end)
            code.emit(ops.APUSH, self.neighbours.at, other)
            code.label(end)

    def _list_senders(self) -> None:
        """The workers that send to servers."""
        of = self.scenario
        found = self.groups.senders
        if len(found) == of.workers:
            self.senders = Value("const", range(of.servers, of.ranks))
        elif self.ranks[0] < of.servers:
            self.senders = self.listed(Value("items", [Value("const", rank) for rank in found]), ast.Pass())

    def _program(self, text: Callable) -> None:
        if text in (Protocol.worker, Protocol.server, Protocol.master, Protocol.alone):
            raise NotLowered(f"{text.__name__}: no text")
        try:
            self.inline(text, [Value("const", self.scenario.protocol), ME], {})
        except FOLDING as error:
            raise NotLowered(f"{type(error).__name__}: {error}") from error
        self.code.emit(ops.END)
