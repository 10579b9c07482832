"""The clock of the event world, its ranks, and what a run comes to.

Events of one moment happen in the order of (rank, number of the text, that text's count of requests); a message's are its post's,
so that it goes before whatever its text does next.
"""

from __future__ import annotations

import math
import resource
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count

from sim.language.event.cores import made
from sim.language.event.flows import Flows
from sim.language.event.links import Links
from sim.language.event.mail import Mail
from sim.language.event.ranks import Busy, Costs, OtherThreads, Polls
from sim.language.event.task import Task
from sim.language.event.valueless import Valueless
from sim.language.hosts import devices
from sim.language.job import Job, Result, dead_end, first_measured
from sim.language.pieces import Handle, Message
from sim.language.rank import Rank
from sim.language.samples import Samples
from sim.language.text import Text

LOOKS = 256  # events from one look at the memory and the clock to the next, where a run may end early
RANK_BYTES, CORE_BYTES, RSS_BYTES = 25e3, 800, 1024  # of a rank and of a core of a host; the unit of a process's memory


class EventWorld:
    """The ranks of one job in simulated time; `task_class` runs a text.

    Args:
        values: what computes with values (sim.language.learning); None computes nothing.
        most_bytes: of memory, besides what the process has taken before.
    """

    task_class = Task

    def __init__(self, job: Job, text: Text, values=None, most_bytes: float = math.inf):
        text.checked(job)
        ranks = range(job.ranks)
        self.job, self.text, self.values = job, text, values or Valueless()
        self._most_bytes, self._before_bytes = most_bytes, peak_bytes()
        found, of_passes, of_work = devices(job)
        self._check_room(RANK_BYTES * job.ranks + CORE_BYTES * sum(device.cores for device in found))
        self.time_s, self._events, self._serial = 0.0, list[tuple](), count()
        self.ranks = [Rank(rank, job, text.servers, self, text.data == "shared") for rank in ranks]
        self.values.begin(self.ranks)
        self.mail = [Mail(self, job.noise(rank, text.servers, "delay")) for rank in ranks]
        self.links, self.busy = Flows(self) if job.fair else Links(self), [Busy(self) for _ in ranks]
        every = [made(self, device) for device in found]
        self.of_passes, self.cores = ([every[number] for number in of] for of in (of_passes, of_work))
        polled = job.poll_s > 0
        self.polls = [
            Polls(self, job, self.cores[rank], job.noise(rank, text.servers, "pause")) for rank in ranks if polled
        ]
        beside = max(job.background_s, job.message_background_s, job.local_background_s) > 0
        self.threads = [
            OtherThreads(self, me, job.noise(me.rank, text.servers, "moment")) for me in self.ranks if beside
        ]
        self.sleeps = [job.sleeps(rank, text.servers) for rank in ranks]
        self.costs = [Costs(job, me, text.servers, self) for me in self.ranks]
        self.samples = Samples(self.ranks)
        # Of each rank, the texts with a message that it sends or takes; the first of them does so now.
        self.lines = [deque[Task]() for _ in ranks]
        self.started = [0 for _ in ranks]  # texts of each rank besides the main one
        self.followers = defaultdict[int, dict[Task, int]](dict)  # of each rank: tasks, and the turn in which they wait
        self.tasks: dict[tuple[int, int], Task] = {}  # that have not ended, by rank and number
        self._ends_s, self._left, self._happened = dict[int, float](), job.ranks, 0
        self._ended_s = [0.0 for _ in ranks]  # when main texts have ended

    # ---- the clock

    def now_s(self, me: Rank) -> float:
        """The clock of a rank, seconds: all have the same."""
        return self.time_s

    def at(self, time_s: float, key: tuple[int, int, int], call: Callable[[], object]) -> None:
        """Call at a time that has not passed; of one moment, the least key goes first."""
        heappush(self._events, (time_s, *key, next(self._serial), call))

    def run(self, is_over: Callable[[int], bool] | None = None) -> Result:
        """Run until all main texts have ended; other texts that are then under way are given up.

        Args:
            is_over: asked now and then with the number of steps that are complete; the run ends with them once it says so.

        Raises:
            RunFailed: all texts wait for one another for ever.
            WrongSetting: the job takes more memory than it may.
        """
        for me in self.ranks:
            self.start(self.task_class(self, me, self.text(me), 0))
        while self._left:
            if not self._events:
                waiting = [f"{task.place()} for {task.waits_for}" for _, task in sorted(self.tasks.items())]
                raise dead_end(self.text.name, waiting)
            self.time_s, *_, call = heappop(self._events)
            call()
            self._happened += 1
            if self._happened % LOOKS == 0:
                self._check_room(peak_bytes() - self._before_bytes)
                if is_over and is_over(self._complete()):
                    return self._result(self._complete())
        return self._result(self.job.steps)

    def _check_room(self, size_bytes: float) -> None:
        if size_bytes > self._most_bytes:
            raise self.job.too_large("event world", size_bytes, self._most_bytes)

    def _complete(self) -> int:
        """Steps that all ranks have ended which go through the rounds."""
        return min((me.round for me in self.ranks if me.leads), default=0)

    def _result(self, complete: int) -> Result:
        steps = [step for step in sorted(self._ends_s) if step < complete]
        ends_s = [self._ends_s[step] for step in steps]
        first = first_measured(self.job.warmup, len(steps))
        from_s, to_s = self._ends_s.get(first - 1, 0.0), ends_s[-1] if ends_s else 0.0
        ended_s = [self.time_s if (rank, 0) in self.tasks else end_s for rank, end_s in enumerate(self._ended_s)]
        idle_s = [busy.idle_s(from_s, min(to_s, end_s)) for busy, end_s in zip(self.busy, ended_s, strict=True)]
        return Result(ends_s, [self.samples.of(step) for step in steps], idle_s)

    # ---- texts

    def start(self, task: Task) -> None:
        """Begin a text now, behind what happens now to ranks and texts of lower numbers."""
        self.tasks[task.me.rank, task.number] = task
        self.at(self.time_s, task.key, task.waker(task.turn))  # unless it is stopped before

    def ended(self, task: Task) -> None:
        """A text has ended: those that wait for it look again."""
        rank = task.me.rank
        self.tasks.pop((rank, task.number))
        looking = task.handle.waiting
        if task.number == 0:
            self._left -= 1
            self._ended_s[rank] = self.time_s
            self.mail[rank].end()
            followers = self.followers.pop(rank, {}).items()
            looking = [*looking, *((one, turn) for one, turn in followers if not one.may_come())]
        self.done(task.handle, looking)

    def taken(self, message: Message) -> None:
        """A message is taken, or lost: who waits for that looks again."""
        if message.is_awaited and message.taken:
            self.done(message.taken, message.taken.waiting)

    def done(self, handle: Handle, looking: Iterable[tuple[Task, int]]) -> None:
        """A handle is done: texts that wait for it look again, each in its turn."""
        handle.done_s = self.time_s
        for one, turn in looking:
            self.at(self.time_s, one.key, one.waker(turn))

    # ---- rounds

    def begin_round(self, me: Rank) -> None:
        """A rank begins its next round."""

    def end_round(self, me: Rank) -> None:
        """A rank that goes through the rounds has ended one."""
        self._ends_s[me.step] = self.time_s
        self.values.ended(me)


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return RSS_BYTES * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
