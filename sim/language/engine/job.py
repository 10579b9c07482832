"""A job as arrays, run to its end: they grow where the kernel says that something is short."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, count
from types import ModuleType
from typing import Any

import numpy as np

from sim.base.errors import WrongSetting, WrongText
from sim.language import event
from sim.language.engine import building, layout, machine
from sim.language.engine.layout import GOES_ON, KINDS, NONE
from sim.language.engine.primitives import Program
from sim.language.engine.programs import in_the_way, program_of
from sim.language.engine.values import BEYOND, NotLowered
from sim.language.hosts import devices
from sim.language.job import Job, Result, dead_end, first_measured
from sim.language.rank import drawn
from sim.language.text import Text
from sim.laws.base import NOTHING, ONES
from sim.laws.randomness import BLOCK, Stream
from sim.model.costs import COLD_AFTER_S, COLD_FROM_S
from sim.platform.polling import STAGES


def _compiled() -> ModuleType | None:
    """The kernel, if it was compiled from these files; else the plain files may run."""
    try:
        from sim.language.engine import _kernel  # type: ignore[attr-defined]
    except ImportError:
        return None
    return _kernel if building.digest() == getattr(_kernel, "SOURCE", "") else None


_kernel = _compiled()
NOT_COMPILED = "the engine is not compiled from this source: install the package anew, where a C compiler is"
AT_FIRST = 1024  # numbers of lists
KINDS_DRAWN = len(layout.FACTORS)
WRONG = {
    **dict.fromkeys((layout.DIVIDE, layout.FLOOR_DIVIDE, layout.MODULO, layout.PART), "division by zero"),
    **dict.fromkeys((layout.GET, layout.SET, layout.REMOVE), "an element that there is not"),
    **dict.fromkeys((layout.SAME_SIZE, layout.TAKE, layout.RING, layout.POST), "another size, or no such rank"),
    layout.WAIT_ALL: "fewer handles than are waited for",
}
LOOKS = 2**9  # of the event world at whether it is over, which are some seconds
ROOMS = {
    layout.SHORT_OF_EVENTS: ("event", "event_room"),
    layout.SHORT_OF_MESSAGES: ("message", "message_room"),
    layout.SHORT_OF_TEXTS: ("text", "texts"),
    layout.SHORT_OF_ITEMS: ("item", "item_room"),
}
OF_DEVICE = "device_cores", "device_turn", "device_contention", "device_switching"
WINDOWS = "window_pair", "window_bytes", "window_free"
PAUSE = 2**14  # events, some milliseconds


class Run:
    """One run of a job.

    Args:
        program: the text's, which does not depend on the replication.
        kernel: the compiled module; None: the plain files.
        most_bytes: that its arrays may have.
        rings: whether one loop may go around ring allreduces; else messages of all of them are events.
    """

    def __init__(
        self,
        job: Job,
        text: Text,
        program: Program,
        kernel: ModuleType | None = _kernel,
        most_bytes: float = math.inf,
        rings: bool = True,
    ):
        self.job, self.text, self.program, self.kernel, self.most_bytes = job, text, program, kernel, most_bytes
        self.ranks = job.ranks
        self.arrays: dict[str, np.ndarray] = {}
        self.state: Any = kernel.State() if kernel else layout.State()
        self._begin()
        self.state.rings = int(rings and self.state.factor_sole[layout.DELAYS] == 0 and not in_the_way(job, program))

    # ---- arrays

    def _new(self, name: str, size: int) -> np.ndarray:
        kind = np.float64 if name in layout.DOUBLES else np.int64
        return np.full(size, layout.BEGIN[name], kind) if name in layout.BEGIN else np.zeros(size, kind)

    def _set(self, name: str, array: Any) -> None:
        self.arrays[name] = np.asarray(array, np.float64 if name in layout.DOUBLES else np.int64)
        setattr(self.state, name, self.arrays[name] if self.kernel else layout.Numbers(self.arrays[name].tolist()))

    def _now(self, name: str) -> np.ndarray:
        """What an array is now."""
        return self.arrays[name] if self.kernel else np.array(getattr(self.state, name), self.arrays[name].dtype)

    def _begin(self) -> None:
        job, program, n, S = self.job, self.program, self.ranks, self.state
        lists = [*program.lists]
        for number, below in program.draws.items():
            lists[number] = [drawn(job.seed, job.replication, step) % below for step in range(job.steps)]
        lengths, known, ranks = [len(one) for one in lists], len(lists), np.arange(n)
        starts = program.texts or job.background_s or job.message_background_s or job.local_background_s
        made, of_passes, of_work = devices(job)
        # Where a rank computes one thing at a time, one that shares a device with none has no turns there.
        if not (starts or job.poll_s):
            ranks_of = Counter(chain.from_iterable(map(set, zip(of_passes, of_work, strict=True))))
            made = [one if ranks_of[k] > 1 else one._replace(turn_s=math.inf) for k, one in enumerate(made)]
        cores = [device.cores if 0 < device.turn_s < np.inf else 0 for device in made]
        bandwidths, levels = zip(*job.levels, strict=True)
        ports = 2 * len(levels) * n
        sizes = {
            "event": 8 * n + 64, "text": n, "rank": n, "register": n * program.width, "list": known + n * program.own_lists,
            "item": sum(lengths) + AT_FIRST, "message": 2 * n + 16, "port": ports, "bucket": ports if job.fair else 0,
            "step": job.steps + 1,  # one for ranks that go on when the last is over
            "core": sum(cores), "device": len(made), "device's stage": len(made) * len(STAGES), "kind": KINDS_DRAWN,
            "stream": KINDS_DRAWN * n,
        }  # fmt: skip
        self._check_room(sum(8 * sizes.get(each, 0) for each in layout.ARRAYS.values()))
        S.text_bits = 22 if starts else 1
        S.count_bits = 63 - S.text_bits - max(1, n.bit_length())
        registers = np.zeros((n, program.width))
        registers[:, 0] = ranks
        begin = {
            "code": np.ravel(program.rows), "constants": [*program.constants, 0.0], "registers": registers.ravel(),
            "items": [number for one in lists for number in one], "list_begin": np.cumsum([0, *lengths])[:-1],
            "list_length": lengths, "list_room": lengths, "heap_what": ranks * KINDS + GOES_ON,
            "message_next": [*range(1, sizes["message"]), NONE], "text_rank": ranks, "heap_key": ranks << (S.text_bits + S.count_bits),
            "rank_host": [*map(job.host, range(n))], "rank_speed": job.speeds or np.ones(n),
            "rank_device": of_work, "rank_passes": of_passes,
            **dict(zip(OF_DEVICE, zip(*made, strict=True), strict=True)), "device_core": np.cumsum([0, *cores])[:-1],
            "core_device": np.repeat(np.arange(len(made)), cores), "place": np.concatenate(levels), "bandwidth": bandwidths,
            "port_level": np.full(sizes["bucket"], job.fair.burst_bytes if job.fair else 0.0),
            "poll_rate": job.poll_rates, "poll_lasts": [lasts_s for _, lasts_s in STAGES],
            "factor_sole": [self._sole(self._numbers(of)) for of in layout.FACTORS],
        }  # fmt: skip
        for name, each in layout.ARRAYS.items():
            first = begin.get(name, ())
            array = self._new(name, max(sizes.get(each, 0), len(first)))
            array[: len(first)] = first
            self._set(name, array)
        for of, names in ((job, layout.OF_JOB), (job.fair, layout.OF_FAIR), (job.windows, layout.OF_WINDOWS)):
            for name, kind in names.items() if of else ():
                setattr(S, name, kind(getattr(of, name)))
        S.events, S.items_used = n, sum(lengths)
        S.event_room, S.item_room, S.message_room = (sizes[each] for each in ("event", "item", "message"))
        S.texts = S.left = n
        S.width, S.fixed_lists, S.own_lists, S.levels = program.width, known, program.own_lists, len(levels)
        S.free_text = S.ringing = S.running = NONE
        S.vector_items, S.look_due = sum(layer.items for layer in job.layers), math.inf
        S.last_row = max(k for k, row in enumerate(program.rows) if row[0] == layout.END)
        S.may_overtake, S.shares_ports = bool(job.windows or job.fair or job.local_wakes), bool(job.fair)
        if job.windows:
            self._more_windows()
        S.cold_from_s, S.cold_after_s, S.round_trip_s = COLD_FROM_S, COLD_AFTER_S, 2 * job.latency_s
        S.spins, S.sole_sleep = self.text.spins, self._sole(self._numbers("sleep"))

    def _check_room(self, size_bytes: float) -> None:
        if size_bytes > self.most_bytes:
            raise self.job.too_large("engine", size_bytes, self.most_bytes)

    def _grow(self, each: str, more: int) -> None:
        """More places for all that there is one of for each `each`."""
        names = [name for name, kind in layout.ARRAYS.items() if kind == each]
        self._check_room(sum(array.nbytes for array in self.arrays.values()) + 8 * more * len(names))
        for name in names:
            self._set(name, np.concatenate([self._now(name), self._new(name, more)]))

    def _more(self, status: int) -> None:
        """Twice as many events, numbers of lists, messages or texts; places for the latter two that are free are a chain."""
        S, (each, name) = self.state, ROOMS[status]
        room = getattr(S, name)
        self._grow(each, room)
        setattr(S, name, 2 * room)
        if each == "text":
            self._grow("register", room * S.width)
            self._grow("list", room * S.own_lists)
        if each in ("text", "message"):
            chain, first = self._now(f"{each}_next"), f"free_{each}"
            chain[room:] = [*range(room + 1, 2 * room), getattr(S, first)]
            self._set(f"{each}_next", chain)
            setattr(S, first, room)

    def _more_windows(self) -> None:
        old = zip(*(self._now(name).tolist() for name in WINDOWS), strict=True)
        room = self.state.window_room = max(64, 4 * self.state.window_room)
        table = [(NONE, 0.0, 0.0)] * room
        for one in old:
            k = one[0] % room
            while table[k][0] != NONE:
                k = (k + 1) % room
            if one[0] != NONE:
                table[k] = one
        for name, array in zip(WINDOWS, zip(*table, strict=True), strict=True):
            self._set(name, array)

    # ---- random numbers

    def _numbers(self, of: str, call: int = 0) -> Callable[[int], Any]:
        """By rank, its numbers of a kind."""
        return lambda rank: self.job.noise(rank, self.text.servers, of, call)

    def _sole(self, of_rank: Callable[[int], Any]) -> float:
        """What all numbers of all ranks are; -1 if they differ."""
        one = of_rank(self.text.servers)
        if one.sole is None:
            return -1.0
        alike = isinstance(one, Stream) or one is ONES or one is NOTHING
        return one.sole if alike or all(of_rank(rank).sole == one.sole for rank in range(self.ranks)) else -1.0

    def _drawn(self, of_rank: Callable[[int], Any], rounds: int) -> np.ndarray:
        """Draws of all ranks' rounds, shape (rounds, ranks)."""
        servers, one = self.text.servers, of_rank(self.text.servers)
        if not isinstance(one, Stream):
            return np.stack([of_rank(rank).first(rounds) for rank in range(self.ranks)], axis=1)
        out = np.empty((rounds, self.ranks))
        for block, first in enumerate(range(0, rounds, BLOCK)):
            part = out[first : first + BLOCK]
            one.draws.fill(part[:, :servers], range(servers), block)
            one.draws.fill(part[:, servers:], range(1, self.ranks - servers + 1), block)
        return out

    def _more_sleeps(self) -> None:
        S = self.state
        rounds, calls = self._rounds(S.sleeps), max(1, S.sleep_calls + (max(self._now("rank_calls")) >= S.sleep_calls))
        drawn = [self._drawn(self._numbers("sleep", call), rounds) for call in range(calls)]
        self._set("sleep", np.concatenate(drawn).ravel())
        S.sleeps, S.sleep_calls = rounds, calls

    def _more_noise(self) -> None:
        """Numbers of each kind: by rounds, shape (rounds, ranks), or by what each rank has had of it."""
        n, room = self.ranks, self._now("factor_room").reshape(-1, self.ranks)
        parts, begin, far, used = [np.empty(0)], np.zeros_like(room), np.ones(len(room)), 0
        for of, (counted, more) in layout.BY_RANK.items():
            room[of] = np.where(self._now(counted) + more < room[of], room[of], np.maximum(BLOCK, 2 * room[of]))
        room[: layout.UPDATES] = self._rounds(int(room[layout.PASSES, 0]))
        for of, name in enumerate(layout.FACTORS):
            if self._now("factor_sole")[of] >= 0:
                continue
            begin[of] = used + np.concatenate([[0], np.cumsum(room[of])[:-1]])
            if of in layout.BY_RANK:
                of_rank = self._numbers(name)
                parts += [of_rank(rank).first(count) for rank, count in enumerate(room[of].tolist())]
            else:
                begin[of], far[of] = used + np.arange(n), n
                parts.append(self._drawn(self._numbers(name), int(room[of, 0])).ravel())
            used = sum(map(len, parts))
        for name, array in (("s", np.concatenate(parts)), ("_begin", begin), ("_room", room), ("_far", far)):
            self._set(f"factor{name}", array.ravel())

    def _rounds(self, there: int) -> int:
        """For how many rounds numbers are drawn next."""
        if self._now("rank_round").max(initial=0) < there:  # before its first round a rank has the first one's
            return there
        ahead = 1 + self.job.steps // 8  # rounds of ranks that are ahead of the others in the last step
        return min(self.job.steps + ahead, BLOCK) if not there else 2 * there

    # ---- running

    def result(self, is_over: Callable[[int], bool] | None = None) -> Result:
        """Run to the end.

        Args:
            is_over: asked now and then with the number of steps that are complete; the run ends with them once it says so.

        Raises:
            RunFailed: all texts wait for ever.
            WrongText: sizes differ, something is divided by zero, or more is asked for than there is.
        """
        S, run = self.state, self.kernel.run if self.kernel else machine.simulate
        more = {layout.SHORT_OF_SLEEPS: self._more_sleeps, layout.SHORT_OF_NOISE: self._more_noise}
        more[layout.SHORT_OF_WINDOWS] = self._more_windows
        S.pause_at = PAUSE
        while (status := run(S)) != layout.DONE:
            if status == layout.PAUSED:
                if is_over and is_over(complete := self._complete()):
                    return self._found(complete)
                S.pause_at = S.happened + PAUSE
            elif status in ROOMS:
                self._more(status)
            elif status in more:
                more[status]()
            else:
                self._fail(status)
        if S.left:
            self._fail(layout.WAITS)
        return self._found(self.job.steps)

    def _complete(self) -> int:
        """Steps that all ranks have ended which go through the rounds."""
        rounds = self._now("rank_round")[self._now("rank_leads") > 0]
        return int(min(rounds, default=0))

    def _found(self, complete: int) -> Result:
        ends_s = self._now("step_end")
        served = self._now("step_served")
        served = served + np.minimum(self._now("step_replicated"), np.maximum(0.0, self._now("step_computed") - served))
        S, steps = self.state, min(complete, self.job.steps)
        ended = (ends_s >= 0) & (np.arange(len(ends_s)) < steps)
        idle_s = self._now("rank_idle") + self._now("rank_idle_after") * (self._now("rank_counted") <= S.measured_to)
        idle_s *= self._now("rank_counted") > S.measured_from
        if S.left and complete:  # it ends early: the share of the time until the last round that any rank has ended
            since_s = np.maximum(self._now("rank_since"), S.measured_from)
            waits = (self._now("rank_busy") == 0) & (self._now("rank_main") > 0)
            idle_s = idle_s + waits * np.maximum(0.0, S.measured_to - since_s)
            first = first_measured(self.job.warmup, complete)
            measured_s = ends_s[complete - 1] - (ends_s[first - 1] if first else 0.0)
            idle_s *= measured_s / (S.measured_to - S.measured_from)
        return Result(ends_s[ended].tolist(), (served / S.vector_items)[ended].tolist(), idle_s.tolist())

    def _place(self, t: int) -> str:
        return f"rank {self._now('text_rank')[t]}, {self.program.places[self._now('text_at')[t]]}"

    def _fail(self, status: int) -> None:
        """Say what goes wrong, with its line: in the event world's words, where that soon comes to it."""
        if status == layout.INEXACT:
            place = self.program.places[self._now("text_at")[self.state.running]]
            raise NotLowered(f"{place}: {BEYOND}")
        if status != layout.ENDLESS:
            looks = count()
            with suppress(WrongSetting):  # it takes too much memory
                event.run(self.job, self.text, None, lambda _: next(looks) >= LOOKS, self.most_bytes)
        if status == layout.WAITS:
            waiting = np.flatnonzero(self._now("text_in"))  # else it is NOTHING
            raise dead_end(self.text.name, [*map(self._place, waiting.tolist())])
        said = WRONG.get(self.program.rows[self._now("text_at")[self.state.running]][0], "the engine cannot go on")
        if status == layout.ENDLESS:
            said = f"{layout.MOST_AT_ONCE:,} requests without any time passing"
        raise WrongText(f"{self.text.name}, {self._place(self.state.running)}: {said}")


def run(
    job: Job,
    text: Text,
    kernel: ModuleType | None = _kernel,
    is_over: Callable[[int], bool] | None = None,
    most_bytes: float = math.inf,
    rings: bool = True,
) -> Result:
    """Run a job to its end by the engine.

    Args:
        is_over: asked now and then with the number of steps that are complete; the run ends with them once it says so.
        most_bytes: of its arrays.
        rings: whether one loop may go around ring allreduces.

    Raises:
        NotLowered: the engine does not understand the text, or has not all digits of a number.
        RunFailed: all texts wait for ever.
        WrongText: sizes differ, or a rank or an element is asked for that there is not.
    """
    text.checked(job)
    return Run(job, text, program_of(job, text), kernel, most_bytes, rings).result(is_over)
