"""A scenario as the kernel's arrays; and what its run comes to: ends of steps, waits and idle shares."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import numpy as np

from sim.answers.bottleneck import Arrivals
from sim.engine.draws import draws_of, poll_shares, rows_of
from sim.engine.kernel import layout, loop, ops
from sim.engine.kernel.cores import TICK_S
from sim.engine.kernel.layout import CONTENDED, DRAWS, FREE, GO, PIECES, SHARED
from sim.engine.kernel.state import State
from sim.event import plain
from sim.event.machines.cores import THREADS_TURN_S
from sim.event.ranks.amounts import Amounts
from sim.laws import LogNormal
from sim.model.sparse_rows import HEADER_BYTES, Load
from sim.protocols import is_ours
from sim.randomness import Stream, generator
from sim.verbs import fusion
from sim.worlds.time_budget import Patience

if TYPE_CHECKING:
    from sim.engine.lowering.program import Code
    from sim.engine.tables import Listed
    from sim.job.scenario import Place, Scenario

LEAST, EACH = 4096, 64  # messages that may be on their way: so many, and so many more for each rank
SHARES = 60  # blocks of shares of sleeps between polls
WEIGHTS = 4096  # of a rank's flows
TIES = 256  # events that come together
LINES = ("compute", "partition", "take_up", "reduce", "update", "pack", "call", "reduce_rows")  # by layout's numbers
DRAWN = ("sleep", "computing", "input", "update")
EVENTS = 2**18  # after which a run pauses: some tens of milliseconds
MOST_MISSED = 2**20  # updates that a gradient has missed
NOBODY = -1
MAKING = threading.Lock()  # one thread draws and makes arrays at a time: what is drawn is kept for all
INTEGERS = np.int64


class Job:
    """One run.

    Args:
        code: the programs of all ranks.
        tables: the collectives that they call.
        columns: steps for which random numbers are drawn at first.
        room: factor on the room for messages on their way, for waits, and for draws that are used by number.
    """

    def __init__(
        self, scenario: Scenario, code: Code, tables: Listed, replication: int = 0, room: int = 1
    ):
        self.scenario, self.replication, self.code, self.tables = scenario, replication, code, tables
        self.room, self.most = room, room * (EACH * scenario.ranks + LEAST)
        self.contended = not plain.by_arithmetic(scenario)
        self.mode = CONTENDED if self.contended else FREE if scenario.apart else SHARED
        self.layered = "NEGO" in code.uses
        self.variables = max(1, len(scenario.summed)) if self.layered else 1
        of, self.meters = scenario, bool(scenario.protocol.counts_updates and scenario.served)
        steps = scenario.rounds + 8 if not scenario.protocol.counts_updates else 3 * scenario.rounds + 60
        arrays = {
            "tie": np.zeros(TIES, layout.EVENT),
            "instruction": code.program(),
            "line": self._lines(),
            "size": self._sizes(),
            "step_end": np.zeros(scenario.updates + 1, layout.STEP_END),
            "missed": np.zeros(min(of.updates + 2, MOST_MISSED) if self.meters else 1, INTEGERS),
            "wait": np.zeros(self.most, layout.WAIT),
            **self._rounds(),
            **self._sides(),
            **self._one_by_one(),
        }
        parts = (
            self._programs(),
            self._post(),
            self._hosts(),
            self._draws(steps),
            self._layers(),
            self._flows(),
            self._delays(steps),
            self._threads(steps),
            tables.arrays(),
        )
        for part in parts:
            arrays |= part
        self.state = State(arrays, self._constants() | self._counters())

    def _rounds(self) -> dict[str, np.ndarray]:
        """What all ranks do in each step, where it is over when the last one has ended it."""
        of = self.scenario
        ranks, rounds = (of.ranks, of.rounds) if of.by_all_ranks else (1, 1)
        return {"round": np.zeros(rounds, layout.ROUND), "own_end": np.zeros((ranks, rounds))}

    def _constants(self) -> dict[str, float]:
        """Numbers that do not change: layout.CONSTANTS."""
        of, link, local, cluster = (
            self.scenario,
            self.scenario.network,
            self.scenario.local,
            self.scenario.cluster,
        )
        amounts, costs, slow = Amounts(of), of.costs, not plain.queues(of)
        integers = {
            "mode": self.mode, "variables": self.variables, "ranks": of.ranks, "first": of.servers, "polls": cluster.poll_s > 0,
            "cores_suffice": of.cores_suffice and not local.wakes, "in_library": of.protocol.in_library,
            "sleeps": not of.protocol.in_library, "counts_updates": of.protocol.counts_updates,
            "stores": link.store_and_forward, "divides": self.contended or slow, "quick": not self.contended and not amounts.rests,
            "nothing": of.summed_items + 1, "local_wakes": local.wakes, "threaded": of.threaded, "layerwise": of.protocol.layerwise, "rounds": of.rounds, "warm_ends": of.warmup * of.updates_per_step,
            "meters": self.meters, "least_ends": Patience(of).least_warmup * of.updates_per_step, "in_parts": of.traffic.in_parts, "most_minibatches": self._most_minibatches, "own": not is_ours(of.protocol), "all_ranks": of.by_all_ranks, "evaluate_every": of.evaluate_every if of.test_size else 0, "fair": link.fair, "tcp": link.tcp is not None,
            "rings": of.apart and self.mode == FREE and not (slow or of.servers or self.layered),
        }  # fmt: skip
        floats = {
            "latency_s": link.latency_s, "overhead_s": link.overhead_s, "gap_s": link.gap_s, "byte_s": 1 / link.bandwidth_bytes_per_s,
            "bandwidth": link.bandwidth_bytes_per_s, "credit": 1 / (link.sustained_bytes_per_s or math.inf),
            "local_latency_s": local.latency_s, "local_overhead_s": local.overhead_s, "local_gap_s": local.gap_s,
            "local_bandwidth": local.bandwidth_bytes_per_s, "oversleep_s": cluster.oversleep_s, "poll_s": cluster.poll_s,
            "background_s": costs.background(of.batch), "link_background_s": link.background_s, "local_background_s": local.background_s,
            "evaluate_s": costs.evaluate(of.test_size) if of.test_size else 0.0, "resume_s": of.costs.resume_s, "batch": of.batch, "input_s": amounts.input_s,
            "to_device_s": amounts.to_device_s, "compute_s": amounts.compute_s, "pack_s": amounts.pack_s,
            "to_host_s": amounts.to_host_s, "loop_s": costs.loop_s, "agree_s": costs.agree_s,
            "negotiate_s": costs.negotiate_s * (of.workers > 1), "negotiated_bytes": 256.0,
            "fusion_bytes": getattr(of.protocol, "fusion_bytes", 0), "buffer_bytes": link.buffer_bytes, "ramp_bytes": link.ramp_bytes,
            "eager_bytes": math.inf if link.eager_bytes is None else link.eager_bytes,
            "forward": amounts.layer_shares(getattr(of.protocol, "order", ""))[0] if self.layered else 1.0,
        }  # fmt: skip
        if link.tcp:
            floats |= {"window_bytes": link.tcp.initial_window_bytes * link.tcp.connections, "trip_s": 2 * link.latency_s,
                       "most_window_bytes": link.tcp.window_bytes * link.tcp.connections}  # fmt: skip
        return integers | floats

    def _counters(self) -> dict[str, float]:
        """Counters that do not begin at 0; where cores are shared each rank begins at an event of its own."""
        ranks = self.scenario.ranks
        begun = {"scheduled": ranks, "sequence": ranks} if self.contended else {"todo": ranks}
        flows = self.most if self.scenario.network.fair else 1
        return {"alive": ranks, "free_messages": self.most, "free_departures": self.most, "free_flows": flows, "delays_left": self._delayed, "backgrounds_left": self._backgrounds, "pause": EVENTS, **begun}

    def _lines(self) -> np.ndarray:
        costs = self.scenario.costs
        each = [getattr(costs, name) or costs.reduce for name in LINES]  # rows are added as all else, if nobody said more
        return np.array([(one.base_s, one.slope_s, one.cold_s, one.floor_s) for one in each], layout.LINE)

    def _programs(self) -> dict[str, np.ndarray]:
        """Ranks and their strands, what these keep, and who begins."""
        of, code, strands = self.scenario, self.code, 2 * self.scenario.ranks
        sets, lists = code.sets or [(0, 0, 0)], code.lists or [(0, 0)]
        return {
            "strand": self._strands(),
            "rank": self._ranks(),
            "todo": self._todo(),
            "register": np.concatenate([code.registers] * 2).astype(float),
            "rank_set": np.array(sets, layout.RANK_SET),
            "bit": np.zeros(max(1, int(code.set_room.sum())), INTEGERS),
            "member": np.zeros((strands, len(sets)), INTEGERS),
            "number_list": np.array(lists, layout.NUMBER_LIST),
            "item": np.zeros(max(1, int(code.list_room.sum()))),
            "length": np.zeros((strands, len(lists)), INTEGERS),
            "turn": self._turns(),
            "inbox": np.full(6 * of.ranks, NOBODY, INTEGERS).view(layout.INBOX),
        }

    def _strands(self) -> np.ndarray:
        ranks, code = self.scenario.ranks, self.code
        strands = np.zeros(2 * ranks, layout.STRAND)
        strands["rank"], strands["number"] = np.tile(np.arange(ranks), 2), np.arange(2 * ranks)
        strands["cycle_s"], strands["previous"], strands["waits_for"] = -math.inf, NOBODY, NOBODY
        strands["pc"][:ranks] = code.starts
        strands["set_at"][:ranks], strands["list_at"][:ranks] = code.set_starts, code.list_starts
        return strands

    def _ranks(self) -> np.ndarray:
        of = self.scenario
        ranks, hosts = np.zeros(of.ranks, layout.RANK), np.array(of.hosts, INTEGERS)
        ranks["host"], ranks["since_s"], ranks["number"], ranks["updates"] = (
            hosts,
            math.inf,
            np.arange(of.ranks),
            math.inf,
        )
        ranks["updates"][0], ranks["delayed"], ranks["slept"], ranks["updated_s"] = of.updates, NOBODY, NOBODY, -math.inf
        ranks["layers_s"], ranks["awaits"], ranks["neighbour"] = -1.0, NOBODY, NOBODY
        for group in of.groups(of.hosts).of.values() if of.protocol.layerwise else ():
            ranks["leader"][group], ranks["together"][group], ranks["neighbour"][group] = group[0], len(group), [*group[1:], NOBODY]
        if of.protocol.layerwise:
            ranks["held"][: of.servers] = [(Amounts(of).held_by(server) or [NOBODY])[0] for server in range(of.servers)]
        gpus = self._shared_gpus
        ranks["shared_gpu"] = [gpus.get(place, NOBODY) for place in of.gpus]
        ranks["gpu"] = [bool(of.machines[host].gpus) for host in of.hosts]
        ranks["group"] = hosts if self.contended and not of.cluster.shared_cores else 0
        ranks["speed"], ranks["cores"] = of.speeds, [of.machines[host].cores for host in of.hosts]
        for rank in range(min(of.ranks, of.servers + 1)):  # workers are alike
            ranks["update_bytes"][rank:] = of.traffic.updated_bytes(rank)[0] if rank < of.servers or of.summed else 0
        return ranks

    def _turns(self) -> np.ndarray:
        turns = np.zeros(self.scenario.ranks + 1, layout.TURN)  # the last one is that of other threads
        turns["core"] = NOBODY
        return turns

    def _todo(self) -> np.ndarray:
        """All ranks in the order in which the event world begins them, the first one last."""
        of = self.scenario
        workers_first = of.servers == 1 and not self.contended
        order = [*range(of.servers, of.ranks), *range(of.servers)] if workers_first else range(of.ranks)
        todo = np.zeros(4 * of.ranks + 64, INTEGERS)
        todo[: of.ranks] = list(order)[::-1]
        return todo

    def _post(self) -> dict[str, np.ndarray]:
        """Messages, and events of ranks that begin."""
        most, ranks = self.most, self.scenario.ranks
        events = np.zeros(2 * most, layout.EVENT)
        if self.contended:
            events["kind"], events["a"][:ranks], events["key"][:ranks] = GO, np.arange(ranks), np.arange(1, ranks + 1)
        return {
            "event": events,
            "message": np.zeros(most, layout.MESSAGE),
            "free_message": np.arange(most),
            "departure": np.zeros(most, layout.DEPARTURE),
            "free_departure": np.arange(most),
        }

    def _hosts(self) -> dict[str, np.ndarray]:
        """Ports and cores."""
        of, shared, found, at = self.scenario, self.scenario.cluster.shared_cores, [], 0
        turn_s = THREADS_TURN_S if of.threaded else TICK_S
        for host in of.machines[:1] if shared else of.machines if self.contended else ():
            found.append((0.0, host.speed, host.contention, turn_s, shared or host.cores, 0, at))
            at += shared or host.cores
        groups = np.array(found or [(0.0, 1.0, 0.0, TICK_S, 1, 0, 0)], layout.GROUP)
        cores = np.zeros(max(at, 1), layout.CORE)
        cores["group"] = np.repeat(np.arange(len(groups)), groups["cores"])
        return {
            "port": np.zeros(max(of.hosts) + 1, layout.PORT),
            "window": np.zeros(of.ranks**2 if of.network.tcp else 1, layout.WINDOW),
            "group": groups,
            "core": cores,
            "task": np.zeros((len(cores), self._tasks if self.contended else 1), layout.TASK),
            **self._gpus(),
        }

    @property
    def _tasks(self) -> int:
        """Tasks of a core, at most."""
        return 2 * self.scenario.ranks + 4 + self.room * (32 + 2 * PIECES * self.scenario.ranks) * self.scenario.threaded

    def _gpus(self) -> dict[str, np.ndarray]:
        """GPUs that ranks share."""
        of = self.scenario
        places = self._shared_gpus
        gpus = np.zeros(max(1, len(places)), layout.GPU)
        for at, place in enumerate(places):
            gpus["speed"][at], gpus["switching"][at] = of.machines[place.host].speed, of.machines[place.host].switching
        return {"gpu": gpus, "gpu_work": np.zeros((len(gpus), of.ranks if places else 1), layout.GPU_WORK)}

    @property
    def _shared_gpus(self) -> dict[Place, int]:
        """The GPUs of a job whose ranks share some, by number."""
        of = self.scenario
        places = [place for place in of.gpus if place] if of.gpus_shared else []
        return {place: at for at, place in enumerate(dict.fromkeys(places))}

    @property
    def _backgrounds(self) -> int:
        """Steps whose background work is not done, at most."""
        return 16 * self.room * self.scenario.ranks if self.scenario.threaded else 1

    def _threads(self, columns: int) -> dict[str, np.ndarray]:
        """What other threads do, and when."""
        return {
            "background": np.zeros(self._backgrounds, layout.BACKGROUND),
            "free_background": np.arange(self._backgrounds),
            "moment": self._moments(PIECES * columns),
        }

    def _moments(self, columns: int) -> np.ndarray:
        """Shares of a step's time after which pieces of its background work begin, in order; shape (ranks, pieces of all steps)."""
        of = self.scenario
        if not of.threaded:
            return np.zeros((of.ranks, 1))
        drawn = [
            generator(of.seed, self.replication, of.worker_number(rank), "background").random(columns)
            for rank in range(of.ranks)
        ]
        return np.sort(np.array(drawn).reshape(of.ranks, -1, PIECES)).reshape(of.ranks, columns)

    def _draws(self, columns: int) -> dict[str, np.ndarray]:
        of = self.scenario
        polls = np.zeros((of.ranks, 1))
        if self.contended and of.cluster.poll_s:
            polls = np.array([poll_shares(of, self.replication, rank, SHARES * self.room) for rank in range(of.ranks)])
        return {"poll": polls, **dict(zip(DRAWN, draws_of(of, self.replication, columns), strict=True))}

    @property
    def _delayed(self) -> int:
        """Letters whose delay is not over, at most."""
        return self.most if self.scenario.protocol.delay_std_s else 1

    def _delays(self, columns: int) -> dict[str, np.ndarray]:
        """Induced delays of the messages that a rank receives, and letters whose delay is not over."""
        return {
            "delay": self._delay_s(columns),
            "delayed": np.zeros(self._delayed, layout.DELAYED),
            "free_delayed": np.arange(self._delayed),
            "letter": np.zeros((self._delayed, layout.LETTER)),
        }

    def _delay_s(self, columns: int) -> np.ndarray:
        of = self.scenario
        if not of.protocol.delay_std_s:
            return np.zeros((of.ranks, 1))
        each = range(of.ranks)
        return rows_of(lambda rank: of.draws.delays(self.replication, of.worker_number(rank)), columns, each)

    def _sizes(self) -> np.ndarray:
        """SIZE of messages to and from each server, and last of those between workers."""
        of, most = self.scenario, self._most_minibatches
        found = np.zeros((3 + most, of.servers + 1), layout.SIZE)
        found["bytes"], found["count"] = HEADER_BYTES, 1
        for server, loads in enumerate(self._loads(1)):
            for what, name in ((ops.PARAMETERS, "answer_bytes"), (ops.REQUEST, "request_bytes")):
                found[what, server] = sum(getattr(load, name) for load in loads), len(loads)
        for minibatches in range(1, most + 1):
            row = ops.GRADIENT if minibatches == 1 else ops.REQUEST + minibatches - 1
            for server, loads in enumerate(self._loads(minibatches)):
                found[row, server] = sum(load.gradient_bytes for load in loads), len(loads)
        return found

    def _loads(self, minibatches: int) -> list[list[Load]]:
        """What travels to and from each server, and last between workers: a message each."""
        of = self.scenario
        each = [of.traffic.loads(server, minibatches) for server in range(of.servers)]
        return [*each, [load for loads in each for load in loads]]

    @property
    def _most_minibatches(self) -> int:
        """Minibatches of one message, at most, where its size depends on them."""
        of = self.scenario
        groups = of.groups(of.hosts).of.values() if of.traffic.sends_rows else ()
        return max([1, *(len(group) for group in groups)])

    def _sides(self) -> dict[str, np.ndarray]:
        """What is added or updated side by side, where rows travel."""
        of = self.scenario
        costs, seconds = of.costs, [0.0]
        found = np.zeros((self._most_minibatches + 1, of.servers + 1), layout.ROWS)

        def add(row: int, column: int, parts_s: list[float]) -> None:
            found[row, column] = len(seconds), len(seconds) + len(parts_s)
            seconds.extend(parts_s)

        for minibatches in range(1, self._most_minibatches + 1) if of.traffic.in_parts else ():
            for server, loads in enumerate(self._loads(minibatches)):
                add(minibatches - 1, server, [self._sum_s(load) for load in loads])
        for rank in range(of.servers + 1) if of.traffic.in_parts else ():
            sizes = of.traffic.updated_bytes(rank) if rank < of.servers or of.summed or of.gathered_variables else []
            add(self._most_minibatches, rank, [costs.update(size) for size in sizes])
        return {"sides": found, "side_s": np.array(seconds)}

    def _one_by_one(self) -> dict[str, np.ndarray]:
        """Variables that travel one by one."""
        of, amounts = self.scenario, Amounts(self.scenario)
        ranks, variables = (of.ranks, len(amounts.variables)) if of.protocol.layerwise else (1, 1)
        return {
            "variable_bytes": np.array(amounts.variable_bytes if of.protocol.layerwise else [0.0], float),
            "server_of": np.array(amounts.server_of if of.protocol.layerwise else [0], INTEGERS),
            "at_hand": np.zeros((ranks, variables), INTEGERS),
            "added": np.zeros((ranks, variables), INTEGERS),
        }

    def _sum_s(self, load: Load) -> float:
        costs = self.scenario.costs
        return (costs.reduce_rows if load.rows and costs.reduce_rows else costs.reduce)(load.gradient_bytes)

    def _layers(self) -> dict[str, np.ndarray]:
        """Which gradients are ready when, where they are computed layer by layer."""
        of, count = self.scenario, self.variables
        bounds = np.cumsum([0, *(variable.size for variable in of.summed)], dtype=INTEGERS)
        bounds[-1] += 1
        backward = parts = np.zeros(count)
        if self.layered:
            order = getattr(of.protocol, "order", "")
            backward = np.asarray(Amounts(of).layer_shares(order)[1], np.float64)
            parts = np.array(fusion.layer_shares([one.size for one in of.workload.variables], order)[::-1], np.float64)
        return {
            "variable_bound": bounds,
            "backward": backward,
            "part": parts,
            "ready": np.zeros((of.ranks, count)),
            "gradient": np.zeros(count * (of.rounds + 2), layout.GRADIENT),
        }

    def _flows(self) -> dict[str, np.ndarray]:
        """What messages need that share ports."""
        of, link, ranks = self.scenario, self.scenario.network, self.scenario.ranks
        weights = np.ones((ranks, 1))
        if link.fair and link.unfairness:
            law, key = LogNormal(cv=link.unfairness), (of.seed, self.replication)
            each = range(ranks)
            weights = rows_of(
                lambda rank: Stream(law, *key, of.worker_number(rank), "share"), WEIGHTS * self.room, each
            )
        buckets = np.zeros(2 * (max(of.hosts) + 1), layout.BUCKET)
        buckets["rate"], buckets["queue"] = link.bandwidth_bytes_per_s, link.queue_bytes
        buckets["depth"] = buckets["level"] = link.burst_bytes
        most, peers = (self.most, (ranks, ranks)) if link.fair else (1, (1, 1))
        return {
            "flow": np.zeros(most, layout.FLOW),
            "free_flow": np.arange(most),
            "active": np.zeros(most, INTEGERS),
            "bucket": buckets,
            "callback": np.zeros(2 * most, layout.CALLBACK),
            "stream": np.full(peers, NOBODY, INTEGERS),
            "announced": np.full(peers, NOBODY, INTEGERS),
            "weight": weights,
        }

    def run(self) -> int:
        """Run to the end, or until it pauses, with further draws where those that there are do not suffice; the status."""
        self.state.record["pause"] = self.state.record["events"] + EVENTS
        status, columns = loop.run(self.state.record), 0
        while status == DRAWS:
            with MAKING:
                for name, used, draw in (("delay", "came", self._delay_s), ("moment", "begun", self._moments)):
                    width, each = self.state.arrays[name].shape[1], PIECES if name == "moment" else 1
                    if each * self.state.arrays["rank"][used].max() >= width > 1:
                        self.state.place(name, draw(2 * width))
                        break
                else:
                    columns = 2 * max(columns, *(self.state.arrays[name].shape[1] for name in DRAWN[:3]))
                    calls = max(1, int(self.state.record["calls"][0]))
                    for name, rows in zip(DRAWN, draws_of(self.scenario, self.replication, columns, calls), strict=True):
                        self.state.place(name, rows)
            status = loop.run(self.state.record)
        return status

    @property
    def bytes(self) -> int:
        """Of all arrays."""
        return sum(array.nbytes for array in self.state.arrays.values())

    @property
    def arrivals(self) -> Arrivals:
        """How stale gradients are, and how busy the parts of the job, after the warm-up."""
        of, arrays, ends_s = self.scenario, self.state.arrays, self.state.arrays["step_end"]["at_s"]
        warm, rank, port = of.warmup * of.updates_per_step, arrays["rank"], arrays["port"]
        each_s = ends_s[self.updates - 1] - (ends_s[warm - 1] if warm else 0.0)
        taken_s = np.max([port[name] for name in ("out_busy_s", "in_busy_s", "out_credit_s", "in_credit_s")], axis=0)
        serving = np.isin(np.arange(len(port)), of.hosts[: of.servers])
        moved_s, worker = taken_s - port["busy_before_s"], np.arange(of.ranks) >= of.servers
        busy_s = {
            "compute": (rank["computed_s"] - rank["computed_before_s"])[worker],
            "worker port": moved_s[~serving],
            "server port": moved_s[serving],
            "server apply": (rank["applied_s"] - rank["applied_before_s"])[~worker],
        }
        busy = {name: min(1.0, float(seconds.max(initial=0.0) / each_s)) for name, seconds in busy_s.items()}
        (missed,) = arrays["missed"]["value"].nonzero()
        return Arrivals({int(one): int(arrays["missed"]["value"][one]) for one in missed}, busy)

    @property
    def updates(self) -> int:
        """How many rank 0, or all, have made."""
        return int(self.state.record["ends"][0])

    @property
    def ran_out(self) -> int:
        """How often a rank had no more partitions to compute, and time left."""
        return int(self.state.arrays["rank"]["ran_out"].sum())

    @property
    def samples(self) -> np.ndarray:
        """Of each step's updates."""
        each = self.scenario.updates_per_step
        steps = self.state.record["ends"][0] // each
        return self.state.arrays["step_end"]["samples"][: steps * each].reshape(steps, each).sum(axis=1)

    def rank_step_s(self, warmup: int, steps: int) -> np.ndarray:
        """Seconds of each rank's own steps after the warm-up, shape (steps, ranks)."""
        return np.diff(self.state.arrays["own_end"]["value"][:, :steps], axis=1, prepend=0.0)[:, warmup:].T

    @property
    def ends_s(self) -> np.ndarray:
        """When each step ended."""
        each = self.scenario.updates_per_step
        count = self.state.record["ends"][0] // each
        return self.state.arrays["step_end"]["at_s"][each - 1 : count * each : each]

    def idle_fraction(self, warmup: int) -> np.ndarray:
        """Each rank's waits between the end of the warm-up and the last update, as a share of that time.

        Args:
            warmup: steps; the scenario's, or the least where a run ended among them.
        """
        ends_s = self.ends_s
        start_s, end_s = (ends_s[warmup - 1] if warmup else 0.0), ends_s[-1]
        waits = self.state.arrays["wait"][: int(self.state.record["waits"][0])]
        inside_s = np.clip(np.minimum(waits["to_s"], end_s) - np.maximum(waits["from_s"], start_s), 0, None)
        inside_s = np.bincount(waits["rank"], inside_s, self.scenario.ranks).astype(float)
        inside_s += self.state.arrays["rank"]["waited_s" if warmup == self.scenario.warmup else "early_s"]
        return inside_s / (end_s - start_s)
