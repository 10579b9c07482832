"""`python -m sim.protocols.check`: a protocol of one's own in every world that can run it, and each mistake in one line."""

import dataclasses
import re
import signal
import time

import pytest
from test_own_protocols import WORKER

from sim import command, protocols
from sim.base import deadline
from sim.protocols import check
from sim.recording import conformance

HEAD = """
import itertools
from dataclasses import dataclass
from sim.protocols.base import Protocol
from sim.verbs.me import GRADIENT, PARAMETERS
from sim.verbs import gather, take

COUNT = itertools.count()

@dataclass(frozen=True)
class Own(Protocol):
"""
TAKES = f"""
{WORKER}
    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            for _ in me.workers:
                letter = yield from take(me, me.workers)
                yield from me.add(letter)
            yield from me.update()
"""
GATHERS = f"""{WORKER}
    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers)
            yield from me.update()
"""
REFUSED = GATHERS.replace("me.steps():", "me.steps():\n            assert len({rank: 0 for rank in me.workers})")


@pytest.fixture
def checked(module, capsys):
    """Checks a class without a real run: the exit code, what was printed, and what was complained of."""

    def check_text(text: str, *options: str) -> tuple[int, str, str]:
        return check_name(f"{module(HEAD + text)}:Own", *options)

    def check_name(name: str, *options: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            command.run(check.PROGRAM, lambda: check.main([name, "--simulate-only", *options]))
        return ended.value.code, *capsys.readouterr()

    check_text.name = check_name
    return check_text


@pytest.mark.slow
@pytest.mark.parametrize("name", protocols.PROTOCOLS)
def test_all_of_ours_pass(checked, name):
    more = {"amb-dg": ["--set", "partitions=4"]}.get(name, [])
    model = "bigram" if name == "hybrid" else "mlp"
    code, said, complaint = checked.name(name, "--workload", model, *more)
    assert (code, complaint) == (0, "")
    computed, applied = re.search(r"gradients +([\d,]+) samples computed, ([\d,]+) applied once", said).groups()
    assert 0 < int(applied.replace(",", "")) <= int(computed.replace(",", ""))


@pytest.mark.usefixtures("installed")
def test_a_text_for_all_worlds_is_answered_alike(checked):
    code, said, _ = checked(GATHERS)
    assert code == 0
    assert re.search(r"^simulated +24 jobs of 1 to 4 workers; none deadlocks", said, re.MULTILINE)
    assert re.search(r"^engine +answers 24 of the jobs, as the event world does$", said, re.MULTILINE)
    assert re.search(r"^real run +not asked for$", said, re.MULTILINE)


@pytest.mark.usefixtures("installed")
def test_a_text_that_the_subset_of_the_engine_cannot_say_is_the_event_worlds(checked):
    code, said, _ = checked(REFUSED)
    assert code == 0
    assert re.search(
        r"^engine +answers none of the jobs; refused: \w+\.py:\d+: not in the subset: ", said, re.MULTILINE
    )


DROPS = f"""
    k: int = 1
{WORKER}
    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers, wait=False)
            added = 0
            while added < self.k:
                letter = yield from take(me, me.workers)
                if letter.version == me.version:
                    yield from me.add(letter)
                    added += 1
            yield from me.update()
"""


def test_a_text_may_drop_late_gradients_if_it_says_so(checked):
    code, said, complaint = checked(DROPS)
    assert (code, complaint) == (0, "")
    assert "came too late" in said


def test_a_text_that_drops_gradients_is_told_how_to_say_so(checked):
    code, _, complaint = checked(DROPS.replace("take(me, me.workers)", "me.receive(me.workers)"))
    assert code == 1
    assert "samples were computed" in complaint
    assert "on purpose receives them with take(me, ...)" in complaint


FIRST_SEND = """
    def worker(self, me):
        from sim.collectives.base import hand, take

        count = len(me.workers)
        for _ in me.steps():
            yield from me.compute()
            if count > 1:
                yield from me.exchange(hand((me.rank + 1) % count, slice(0, 9)))
                yield from me.exchange(take((me.rank - 1) % count, slice(0, 9), adds=True))
            yield from me.update()
"""
GATHER, ADD = "yield from gather(me, me.workers)", "yield from me.add(letter)"
SLEEP, SEND_ALL = "yield from me.sleep()", "yield from me.send(PARAMETERS, me.workers)\n"
MISTAKES = {  # of a text, and what is said
    "a deadlock": (GATHERS, SEND_ALL, "pass\n", r"deadlock in .*:Own: .* \(1 workers, stragglers none"),
    "a gradient added twice": (TAKES, ADD, f"{ADD}; {ADD}", "me.add adds the gradient of a letter, once"),
    "a gradient that is left": (GATHERS, GATHER, "yield from gather(me, me.workers[:2])", "samples were computed.*3 w"),
    "a coin of its own": (GATHERS, SLEEP, f"for _ in range(next(COUNT) % 7 > 0): {SLEEP}", "two simulations differ"),
    "all send before they receive": (
        FIRST_SEND,
        "count > 1",
        "count > 1",
        r"deadlock in .*: ranks 0, 1 wait for ever \(2 workers, stragglers none, on two ranks a host",
    ),
    "a misspelt verb": (GATHERS, "me.compute()", "me.compote()", "the nearest is me.compute"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(checked, mistake):
    text, line, other, expected = MISTAKES[mistake]
    assert line in text
    code, said, complaint = checked(text.replace(line, other))
    assert (code, said) == (1, "")
    assert re.search(f"^sim.protocols.check: .*({expected}).*$", complaint), complaint
    assert complaint.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "code"), [((64, 64), 0), ((64, 32), 1), ((64, 96), 1)])
def test_samples_that_are_lost_or_counted_twice_are_told(checked, monkeypatch, samples, code):
    monkeypatch.setattr(conformance, "gradients", lambda _: conformance.Gradients(*samples))
    assert checked(GATHERS)[0] == code
    assert checked(TAKES)[0] == (samples == (64, 96))  # late gradients may be dropped there


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["nothing:Own"], "--protocol: given 'nothing:Own'"),
        (["fmb", "--set", "x=1"], "--set: given 'x=1'"),
        (["fmb", "--workload", "nothing"], "--workload: given 'nothing'"),
        (["ps-backup", "--set", "backup=9"], "--set backup: given 9"),
        ([], "MODULE:CLASS"),
    ],
)
def test_a_wrong_setting_is_one_line(capsys, words, expected):
    with pytest.raises(SystemExit) as ended:
        command.run(check.PROGRAM, lambda: check.main([*words, "--simulate-only"]))
    said, complaint = capsys.readouterr()
    assert (ended.value.code, said, complaint.count("\n")) == (2, "", 1)
    assert expected in complaint


LOOPS = GATHERS.replace(
    "yield from me.compute()", "yield from me.compute()\n            while me.rank == 2:\n                pass"
)
SLEEPS = GATHERS.replace(SLEEP, f"while me.rank == 2: {SLEEP}")


NO_END = "no end within 0.2 s of processor time"


@pytest.mark.parametrize(
    ("text", "said_of"), [(LOOPS, NO_END), (SLEEPS, f"({NO_END}|20,000 verbs, and no time has passed)")]
)
def test_a_text_that_does_not_end_is_ended(checked, text, said_of):
    """Whether or not it calls verbs; those are counted too, and which limit comes first is the machine's to say."""
    assert text != GATHERS
    code, said, complaint = checked(text, "--time-limit", "0.2")
    assert (code, said, complaint.count("\n")) == (1, "", 1)
    assert re.search(rf"check: .*mine\d+.py:\d+: {said_of}.*\(2 workers", complaint)


def test_the_time_limit_is_in_its_range(checked):
    code, said, complaint = checked(GATHERS, "--time-limit", "0")
    assert (code, said) == (2, "")
    assert "--time-limit: given 0.0; allowed: seconds from 0.01" in complaint


def test_time_limits_end_with_what_they_limit():
    with deadline.within(0.05):
        pass
    begun_s = time.process_time()
    while time.process_time() - begun_s < 0.1:
        pass
    assert signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL


RACKS = """
    def worker(self, me):
        first, *others = me.workers
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.compute()
            if me.rank == first:
                yield from gather(me, others)
                yield from me.send(GRADIENT, me.master)
            else:
                yield from me.send(GRADIENT, first)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers[:1])
            yield from me.update()
"""


@pytest.mark.parametrize(
    ("text", "workers"), [(GATHERS, [2, 3]), (RACKS, [2, 3, 4]), (GATHERS + "            _ = me.hosts\n", [2, 3, 4])]
)
def test_real_runs_are_of_two_and_three_workers_and_four_where_racks_matter(module, text, workers):
    jobs = check.jobs_of(check.parser().parse_args([f"{module(HEAD + text)}:Own"]))
    traces = [check.simulated(job) for job in jobs]
    assert [job.workers for job in check.real_jobs(jobs, traces)] == workers
    assert [job.workers for job in check.real_jobs(jobs[:1], traces[:1])] == [1]


def test_replicas_that_drift_apart_are_told():
    header = check.simulated(check.jobs_of(check.parser().parse_args(["allreduce"]))[4]).header
    alike, apart = (dataclasses.replace(header, details={"parameters_crc32": sums}) for sums in ([3, 3], [3, 4]))
    served = dataclasses.replace(apart, servers=1)  # workers hold what came last
    assert [conformance.drifted(one) for one in (header, alike, served)] == [[], [], []]
    assert conformance.drifted(apart) == [
        "the parameters of 2 ranks end as 2 different ones: replicas drift apart where gradients are not summed alike at all ranks"
    ]
