"""`python -m sim.protocols.check`: a protocol of one's own in every world that can run it, and each mistake in one line."""

import dataclasses
import re

import pytest
from test_commands import refused

from real.run import drifted
from sim import protocols
from sim.language.engine import job as engine
from sim.protocols import check
from sim.recording import conformance

HEAD = """
from dataclasses import dataclass
from sim.language.text import Text
from sim.language.verbs import compute, gather, push, send, spread

@dataclass(frozen=True)
class Own(Text):
    servers = 1

"""
GATHERS = """
    def __call__(self, me):
        for _ in me.steps():
            if me.rank == me.master:
                yield from send(me, me.weights, me.workers)
                samples = yield from gather(me, me.workers, me.gradient)
                yield from me.update(samples=samples)
            else:
                yield from me.take(me.master, me.weights)
                yield from me.sleep()
                yield from compute(me)
                yield from push(me, me.servers)
"""
REFUSED = GATHERS.replace("me.steps():", "me.steps():\n            assert f'{me.now():.3f}'")


@pytest.fixture
def checked(module, here):
    """Checks a class without a real run: the exit code, what was printed, and what was complained of."""

    def check_text(text: str, *options: str) -> tuple[int, str, str]:
        return check_name(f"{module(HEAD + text)}:Own", *options)

    def check_name(name: str, *options: str) -> tuple[int, str, str]:
        done = here(check.PROGRAM, name, *options)
        return done.returncode, done.stdout, done.stderr

    check_text.name = check_name
    return check_text


@pytest.mark.slow
@pytest.mark.parametrize("name", protocols.PROTOCOLS)
def test_all_of_ours_pass(checked, name):
    more = {"amb-dg": ["--set", "partitions=4"], "hierarchical": ["--set", "group=1"]}.get(name, [])
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
    assert re.search(
        r"^trained +4 workers end with the weights of one process that has all samples$", said, re.MULTILINE
    )


@pytest.mark.usefixtures("installed")
def test_a_text_that_the_engine_does_not_understand_is_the_event_worlds(checked):
    code, said, _ = checked(REFUSED)
    assert code == 0
    assert re.search(r"^engine +answers none of the jobs; refused: mine\d+.py:\d+: ", said, re.MULTILINE)


DROPS = """
    k: int = 1
    servers, by_arrival = 1, True

    def __call__(self, me):
        yield from compute(me)  # ahead of the first round
        for step in me.steps():
            if me.rank == me.master:
                yield from spread(me, me.weights, me.workers)
                added = 0
                while added < self.k:
                    message = yield from me.take(me.workers)
                    if message.step == step:
                        yield from me.mix(me.gradient, message)
                        added += 1
                yield from me.update(samples=self.k * me.batch)
            else:
                yield from me.take(me.master, me.weights)
                yield from compute(me)
                yield from push(me, me.servers)
"""


def test_a_text_may_drop_late_gradients_if_it_says_so(checked):
    code, said, complaint = checked(DROPS)
    assert (code, complaint) == (0, "")
    assert "came too late" in said


def test_a_text_that_drops_gradients_is_told_how_to_say_so(checked):
    code, _, complaint = checked(DROPS.replace("servers, by_arrival = 1, True", "servers = 1"))
    assert code == 1
    assert "samples were computed" in complaint
    assert "on purpose says so: by_arrival = True" in complaint


GATHER, UPDATE = "gather(me, me.workers, me.gradient)", "yield from me.update(samples=samples)"
SLEEP, SEND_ALL = "yield from me.sleep()", "yield from send(me, me.weights, me.workers)"
MISTAKES = {  # of a text, and what is said
    "a deadlock": (SEND_ALL, "pass", r"all wait for ever: rank 0, .* \(1 workers, stragglers none"),
    "a gradient that counts twice": ("(samples=samples)", "(samples=2 * samples)", "samples were computed, and"),
    "a gradient that is left": (GATHER, "gather(me, me.workers[:2], me.gradient)", "samples were computed.*3 w"),
    "a message to nobody": (
        SLEEP,
        "yield from me.post(me.weights, me.rank)",
        "rank 1 takes none .* rank 1 posts to it",
    ),
    "a coin of its own": (SLEEP, f"if id(object()) % 7: {SLEEP}", "two simulations differ"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(checked, mistake):
    line, other, expected = MISTAKES[mistake]
    assert line in GATHERS
    code, said, complaint = checked(GATHERS.replace(line, other))
    assert (code, said) == (1, "")
    assert re.search(f"^sim.protocols.check: .*({expected}).*$", complaint), complaint
    assert complaint.count("\n") == 1


@pytest.mark.usefixtures("installed")
def test_worlds_that_differ_are_told(checked, monkeypatch):
    run = engine.Run.result

    def late(self, *given):
        found = run(self, *given)
        return dataclasses.replace(found, ends_s=[end_s * (1 + 1e-6) for end_s in found.ends_s])

    monkeypatch.setattr(engine.Run, "result", late)
    code, _, complaint = checked(GATHERS)
    assert code == 1
    assert "two simulations differ, of the event world and of the engine" in complaint


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "code"), [((64, 64), 0), ((64, 32), 1), ((64, 96), 1)])
def test_samples_that_are_lost_or_counted_twice_are_told(checked, monkeypatch, samples, code):
    monkeypatch.setattr(conformance, "gradients", lambda _: conformance.Gradients(*samples))
    assert checked(GATHERS)[0] == code
    assert checked(DROPS)[0] == (samples == (64, 96))  # late gradients may be dropped there


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ddp", "4 workers end with the weights of one process that has all samples"),
        ("gradient-coding", "4 workers end with the weights of one process that has all samples"),
        ("ps-async", "4 workers end up to [0-9.]+% of the largest weight from one process that has all samples"),
        ("local-sgd", "4 workers end up to [0-9.]+% of .*; ranks end up to [0-9.]+% apart"),
        ("fsdp", "4 workers end with the weights of one process that has all samples"),
        ("pipeline --workload transformer_small", "4 workers end with the weights of one process that has all samples"),
    ],
)
def test_what_a_text_trains_is_beside_its_definition(name, said):
    assert re.fullmatch(said, check.trained(check.jobs_of(check.parser().parse_args(name.split()))[-1]))


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
def test_a_wrong_setting_is_one_line(here, words, expected):
    assert expected in refused(here(check.PROGRAM, *words))


COMPUTE = "yield from compute(me)"
LOOPS = GATHERS.replace(COMPUTE, f"{COMPUTE}\n                while me.rank == 2:\n                    pass")
SLEEPS = GATHERS.replace(SLEEP, f"while me.rank == 2: {SLEEP}")


NO_END = "no end within 0.2 s of processor time"


@pytest.mark.parametrize(
    ("text", "said_of"),
    [(LOOPS, rf"mine\d+.py:\d+: {NO_END}"), (SLEEPS, f"({NO_END}|requests without any time passing)")],
)
def test_a_text_that_does_not_end_is_ended(checked, text, said_of):
    """Whether or not it calls primitives; those are counted too, and which limit comes first is the machine's to say."""
    assert text != GATHERS
    code, said, complaint = checked(text, "--time-limit", "0.2")
    assert (code, said, complaint.count("\n")) == (1, "", 1)
    assert re.search(rf"check: .*{said_of}.*\(2 workers", complaint)


def test_the_time_limit_is_in_its_range(checked):
    code, said, complaint = checked(GATHERS, "--time-limit", "0")
    assert (code, said) == (2, "")
    assert "--time-limit: given 0.0; allowed: seconds from 0.01" in complaint


def test_replicas_that_drift_apart_are_told():
    header = check.jobs_of(check.parser().parse_args(["allreduce"]))[4].header("event")
    alike, apart = (dataclasses.replace(header, details={"parameters_crc32": sums}) for sums in ([3, 3], [3, 4]))
    served = dataclasses.replace(apart, servers=1)  # workers hold what came last
    assert [drifted(one) for one in (header, alike, served)] == [[], [], []]
    assert drifted(apart) == [
        "the parameters of 2 ranks end as 2 different ones: replicas drift apart where gradients are not summed alike at all ranks"
    ]
