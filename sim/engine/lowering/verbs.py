"""Primitives of `me`, and verbs that are a few instructions: collectives, negotiation and gradients by layer."""

from __future__ import annotations

import ast
import math
from typing import Any

from sim import collectives
from sim.base.errors import WrongText
from sim.collectives.base import DENSE, Exchange
from sim.engine.kernel import layout, ops
from sim.engine.kernel.calls import NOBODY
from sim.engine.lowering.expressions import Expressions
from sim.engine.lowering.program import y
from sim.engine.lowering.values import NOTHING, Value
from sim.engine.tables import ROWS
from sim.verbs.fusion import agreement_s
from sim.verbs.me import GRADIENT, PARAMETERS
from sim.worlds.arguments import check_arguments

Values = list[Value]
Named = dict[str, Value]
PLAIN = {"sleep": ops.SLEEP, "fetch": ops.FETCH, "update": ops.UPDATE, "compute": ops.COMPUTE}  # without arguments
PEERS = {"reg": ops.ONE, "set": ops.SET, "list": ops.LIST}
AUTO, YES, NO, NEVER = (Value("const", one) for one in ("auto", True, False, math.inf))


class Verbs(Expressions):
    """Instructions of primitives."""

    def peers(self, value: Value, node: ast.AST) -> tuple[int, int, int]:
        """Ranks, as an instruction has them."""
        if value.kind == "const":
            many = value.at if isinstance(value.at, range) else range(value.at, value.at + 1)
            if not (many.step == 1 and (not many or (many.start >= 0 and many.stop <= self.scenario.ranks))):
                self.fail(node, "there are no such ranks")
            return ops.RANGE, many.start, many.stop
        if value.kind == "reg":
            self.integer(value, node)
        if value.kind == "items":
            return self.peers(value.at[0] if len(value.at) == 1 else self.listed(value, node), node)
        return (PEERS[value.kind], value.at, 0) if value.kind in PEERS else self.fail(node)

    def _holds(self) -> bool:
        """Whether these ranks hold parameters, which an update makes anew."""
        some = self.ranks if self.serves else self.ranks[:1]  # workers are alike
        return all(self.scenario.traffic.updated_bytes(rank) for rank in some)

    @property
    def serves(self) -> bool:
        """Whether these ranks are servers, or the master."""
        return self.ranks[0] < self.scenario.servers

    def setting(self, value: Value, node: ast.AST) -> Any:
        """An argument that is known before the run."""
        return value.at if value.kind == "const" else self.fail(node, "what is known before the run is needed")

    def whole_setting(self, value: Value, node: ast.AST) -> int:
        """An integer that is known before the run, from 1 to the batch."""
        found = self.setting(value, node)
        return found if isinstance(found, int) and 1 <= found <= self.scenario.batch else self.fail(node)

    def primitive(self, name: str, given: Values, named: Named, node: ast.Call) -> Value:
        """A primitive of `me`."""
        if name == "update" and not (self.frame.is_ours or self._holds()):
            return self.mistake()
        if name in PLAIN and not (given or named):
            self.code.emit(PLAIN[name])
            return NOTHING
        found = getattr(self, f"_do_{name}", None)
        if found is None:
            self.fail(node)
        return found(node, *given, **named) or NOTHING

    def _do_update(self, node: ast.Call, variables: Value) -> None:
        for one in variables.at if variables.kind == "items" else self.fail(node):
            self.code.emit(ops.UPDATEV, self.scalar(one, node))

    def _do_compute(self, node: ast.Call, part: Value) -> None:
        if part.kind == "layer" and self.scenario.protocol.layerwise:
            last = part.at.get("last", NO)
            self.code.emit(ops.LAYER, self.scalar(part.at["share"], node), self.scalar(last, node))
            return
        if part.kind != "partition" or part.at[1].kind != "const":
            self.fail(node)
        self.code.emit(ops.PART, self.integer(part.at[0], node), self.whole_setting(part.at[1], node))

    def _do_compute_until(self, node: ast.Call, deadline_s: Value, partitions: Value) -> None:
        self.code.emit(ops.UNTIL, self.scalar(deadline_s, node), self.whole_setting(partitions, node))

    def _do_cycle(self, node: ast.Call, seconds: Value) -> None:
        self.code.emit(ops.CYCLE, self.scalar(seconds, node))

    def _do_evaluate(self, node: ast.Call) -> None:
        if self.scenario.test_size:
            self.code.emit(ops.EVALUATE)

    def is_wrong(self, name: str, given: Values, named: Named) -> bool:
        """Whether the event world refuses arguments that are known before the run."""
        if not all(one.kind == "const" for one in (*given, *named.values())):
            return False
        words = {key: one.at for key, one in named.items()}
        try:
            check_arguments(name, tuple(one.at for one in given), words, self.scenario)
        except WrongText:
            return True
        return False

    def _do_exchange(self, node: ast.Call, exchange: Value) -> Value:
        """One exchange with another rank."""
        if exchange.kind == "const" and isinstance(exchange.at, Exchange):
            peers = (Value("const", peer) for peer in (exchange.at.to, exchange.at.source))
            exchange = Value("exchange", (exchange.at, *peers))
        if exchange.kind != "exchange" or exchange.at[0].ahead or exchange.at[0].kind != DENSE:
            self.fail(node)
        of, *peers = exchange.at
        if self.is_wrong("exchange", [Value("const", of)], {}):
            return self.mistake()
        to, source = (self.code.constant(NOBODY) if one.is_none else self.integer(one, node) for one in peers)
        brings = of.taken.stop == self.scenario.summed_items + 1 and of.taken.start < of.taken.stop
        self.code.emit(ops.SWAP, to, source, of.sent_bytes, int(of.adds), int(brings), of.taken_bytes)
        return NOTHING

    def _macro_reduce(self, algorithm: Value, piece: Value) -> Value:
        """One call on some items of the gradient."""
        code, of = self.code, piece.at
        code.emit(ops.CALL, self.tables.algorithm(algorithm.at, of), code.constant(of.start), code.constant(of.stop))
        return NOTHING

    def _do_run_out(self, node: ast.Call) -> None:
        register = y(layout.RAN_OUT)
        self.code.emit(ops.ALU, ops.PLUS, register, register, self.code.constant(1))

    def _do_add(self, node: ast.Call, letter: Value) -> None:
        self.code.emit(ops.ADD, self.there(letter, node).at)

    def _do_take_up(self, node: ast.Call, letter: Value) -> None:
        self.code.emit(ops.TAKEUP, self.there(letter, node).at)

    def _do_receive(
        self, node: ast.AST, peers: Value, until_s: Value | None = None, variable: Value | None = None
    ) -> Value:
        if variable is not None:
            self.code.emit(ops.AWAITV, self.scalar(variable, node))
            return NOTHING
        letter, deadline = Value("letter", self.fresh(layout.LETTER), sure=until_s is None), 0
        if until_s is not None and not (until_s.kind == "const" and until_s.at == math.inf):
            deadline = 1 + self.kept(Value("reg", self.scalar(until_s, node))).at
        self.code.emit(ops.RECV, letter.at, *self.peers(peers, node), deadline)
        return letter

    def _do_send(self, node: ast.Call, what: Value, peers: Value, wait: Value = YES) -> None:
        if what.kind == "note":  # which is never waited for
            version, last = what.at["version"], int(self.setting(what.at["last"], node))
            register = ops.OWN if version.is_none else self.integer(version, node)
            self.code.emit(ops.SEND, ops.NOTE, *self.peers(peers, node), 0, register, last)
            return
        if what.kind == "variable":
            self.code.emit(ops.SENDV, self.scalar(what.at, node))
            return
        if peers.kind == "set" and not self.frame.is_ours:
            self.fail(node, "a set has no order")
        if what.kind != "const" or (what.at is not GRADIENT and what.at is not PARAMETERS):
            self.fail(node)
        if self.serves is not (what.at is PARAMETERS):
            self.mistake()
        kind = ops.GRADIENT if what.at is GRADIENT else ops.PARAMETERS
        self.code.emit(ops.SEND, kind, *self.peers(peers, node), int(self.setting(wait, node)), ops.OWN, 0)

    def beside(self, computing: ast.expr, communicating: ast.expr) -> Value:
        """Both texts, each inlined where a strand of its own begins."""
        thread, after = self.tag(), self.tag()
        self.code.emit(ops.FORK, thread)
        self.runs = True
        self.value(computing)
        self.code.emit(ops.JOIN, 1)
        self.code.emit(ops.JMP, after)
        self.code.label(thread)
        self.runs = True
        self.value(communicating)
        self.code.emit(ops.JOIN, 0)
        self.code.label(after)
        return NOTHING

    def _macro_compute_by_layer(self, order: Value) -> Value:
        self.code.emit(ops.LAYERS)
        return NOTHING

    def _macro_allgather(self) -> Value:
        """Rows of each sparse variable, which all workers add up."""
        code = self.code
        for load in self.scenario.gathered_loads:
            stop = code.constant(load.rows + load.numbers)
            code.emit(ops.GATHER, self.tables.choice(ROWS), code.constant(0), stop)
        return NOTHING

    def _macro_allreduce(self, algorithm: Value = AUTO, fused: Value = YES) -> Value:
        of, code = self.scenario, self.code
        meets = of.protocol.in_library and of.cluster.poll_s
        if of.summed:
            code.emit(ops.BEGINSUM)
        for piece in collectives.pieces(of.summed, fused.at):
            code.emit(ops.AGREE, 0)
            if meets:
                code.emit(ops.MEET, self.tables.choice("barrier"))
            code.emit(ops.AGREE, 1)
            first = self.tables.algorithm(algorithm.at, piece)
            code.emit(ops.CALL, first, code.constant(piece.start), code.constant(piece.stop))
        return NOTHING

    def _macro_barrier(self, group: Value) -> Value:
        of = self.scenario
        if len(group.at) > 1 and group.at == range(of.servers):
            self.code.emit(ops.BARRIER, self.tables.barrier_of(of.servers))
        elif len(group.at) > 1:
            self.fail(ast.parse("barrier"), "a barrier of others than servers")
        return NOTHING

    def _macro_negotiate(self, by_name: Value = NO) -> Value:
        at, constant = self.fresh(5), self.code.constant
        self.code.emit(ops.NEGO, at, *map(constant, agreement_s(self.scenario, by_name.at)))
        self.code.emit(ops.AGREE, 1)
        return Value("ready", at)

    def _macro_reduce_fused(self, algorithm: Value, ready: Value, fusion_bytes: Value) -> Value:
        """Pieces of gradients that are summed together, which are copied into one buffer and out of it."""
        code, at, first = self.code, self.fresh(5), self.tables.algorithm(algorithm.at)
        begin, alone, end = self.tag(), self.tag(), self.tag()
        code.emit(ops.PASS, end)
        for k in range(2):
            code.emit(ops.MOV, at + k, ready.at + k)
        code.label(begin)
        code.emit(ops.BRZ, self.alu(ops.LESS, at, at + 1).at, end)
        code.emit(ops.FUSE, at)
        code.emit(ops.BRZ, at + 4, alone)
        code.emit(ops.COPYB, at + 2, at + 3)
        code.emit(ops.CALL, first, at + 2, at + 3)
        code.emit(ops.COPYB, at + 2, at + 3)
        code.emit(ops.JMP, begin)
        code.label(alone)
        code.emit(ops.CALL, first, at + 2, at + 3)
        code.emit(ops.JMP, begin)
        code.label(end)
        return NOTHING
