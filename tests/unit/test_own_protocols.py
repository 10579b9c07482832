"""A user's own protocol runs as those of the registry do, and an ordinary mistake in one is one line."""

import json
import re
from importlib import import_module
from unittest import mock

import event
import pytest

from real.launching import mpirun as launch
from sim import command, protocols, simulation
from sim import run as sim_run
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.model import workload
from sim.protocols.base import VERBS, Protocol
from sim.protocols.fmb import FixedMinibatch
from sim.recording import traces

HEAD = """
from __future__ import annotations
import random
from dataclasses import dataclass, field
from typing import ClassVar
from sim.base.errors import WrongSetting
from sim.protocols.base import Protocol
from sim.protocols.fmb import FixedMinibatch
from sim.verbs.me import GRADIENT, PARAMETERS, Gradient, Layer, Note, Partition, Variable
from sim.protocols.horovod import Horovod
from sim.collectives.base import Exchange
from sim.verbs import allreduce, gather, pull, push, reduce, take

"""
MASTER = """
    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            yield from gather(me, me.workers)
            yield from me.update()
"""
WORKER = """
    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            yield from me.sleep()
            yield from me.compute()
            yield from me.send(GRADIENT, me.master)
"""
OWN = f"@dataclass(frozen=True)\nclass Own(Protocol):\n    rounds: int = 2\n{WORKER}{MASTER}"
ROUNDS = """
@dataclass(frozen=True)
class Own(Protocol):
    rounds: int = 2
    name = "rounds"

    def worker(self, me):
        for _ in me.steps():
            yield from me.take_up((yield from me.receive(me.master)))
            for _ in range(self.rounds):
                yield from me.compute()
                yield from me.send(GRADIENT, me.master)

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            for _ in range(self.rounds):
                yield from gather(me, me.workers)
            yield from me.update()
"""
JOB = ["--stragglers", "none", "--steps", "5", "--warmup", "1"]


@pytest.fixture
def module(module):
    """Writes a module of a user's behind what it imports; its name."""
    return lambda text, head=HEAD: module(head + text)


@pytest.fixture
def told(capsys):
    """Run sim.run; its exit code and what it said on stderr, which is to be one line if it failed."""

    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            command.run("sim.run", lambda: sim_run.main([*JOB, *words]))
        said = capsys.readouterr().err
        assert said.count("\n") == (end.value.code != 0), said
        return end.value.code, said

    return run


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("world", ["event", "engine"])
def test_one_of_ones_own_runs_in_both_worlds(module, capsys, world):
    own = f"{module(ROUNDS)}:Own"
    words = ["--protocol", own, "--set", "rounds=3", "--world", world, "--json", "--replications", "1"]
    sim_run.main([*JOB, *words])
    answer = json.loads(capsys.readouterr().out)
    asked = answer["scenario"]
    assert (asked["protocol"], answer["world"], asked["settings"]) == (own, world, {"rounds": 3})
    assert answer["samples_per_step"]["mean"] == 3 * 3 * workload.read("toy_fc").batch


def test_a_trace_names_the_class_so_that_it_can_be_made_again(module, tmp_path, capsys):
    own, file = f"{module(ROUNDS)}:Own", str(tmp_path / "trace.parquet")
    sim_run.main([*JOB, "--protocol", own, "--set", "rounds=3", "--trace", file])
    header = traces.read(file).header
    assert header.protocol == own
    again = protocols.make(header.protocol, [f"{name}={value}" for name, value in header.settings.items()])
    assert again == protocols.make(own, ["rounds=3"])


def test_a_class_without_a_name_is_called_as_it_is(module):
    own = protocols.make(f"{module(OWN)}:Own")
    assert (own.name, protocols.name_of(own)) == ("Own", f"{type(own).__module__}:Own")


def test_a_class_of_ours_goes_by_its_name():
    assert protocols.name_of(FixedMinibatch()) == "fmb"
    assert protocols.name_of(protocols.make("sim.protocols.fmb:FixedMinibatch")) == "fmb"


COMPUTE, SEND, UPDATE = "yield from me.compute()", "yield from me.send(GRADIENT, me.master)", "yield from me.update()"
TAKE, ADD = "letter = yield from take(me, me.workers)", "yield from me.add(letter)"
RECEIVE, GATHER, SEND_ALL = (
    "yield from me.take_up((yield from me.receive(me.master)))",
    "yield from gather(me, me.workers)",
    "yield from me.send(PARAMETERS, me.workers)",
)
SUM = "yield from allreduce(me, 'ring')"
BESIDE = "yield from me.beside(me.compute(), me.sleep())"
CLASS = "@dataclass(frozen=True)\nclass Own(Protocol):\n"
LINES = {  # a line of the texts above, what stands in its place (of a verb without `yield from me`), what is said
    "a misspelt verb": (RECEIVE, ".recieve(me.master)", ":LINE: me has no recieve; .* me.receive$"),
    "a verb that is a function": (GATHER, ".gather(me.workers)", "gather is a function: `from trainsim.verbs import g"),
    "an unknown verb": (RECEIVE, ".xyzzy()", "me has no xyzzy; .* lists its verbs$"),
    "a loop in which no time passes": (COMPUTE, "while True: yield from me.fetch()", ":LINE: .* no time has passed"),
    "no update": (UPDATE, "pass", "6 updates are due .* made none: .*me.update"),
    "an update now and then": (UPDATE, f"{UPDATE} if _ % 2 else ()", "update 1 of rank 0 is made in step 1"),
    "two updates": (UPDATE, f"{UPDATE}; {UPDATE}", "me.update of no samples"),
    "an update in a worker": (SEND, f"{SEND}; {UPDATE}", "me.update is for ranks that hold"),
    "a verb without yield": (COMPUTE, "me.compute()", r":LINE: me.compute\(\) does nothing without `yield from`$"),
    "a push whose answer is lost": (SEND, "while push(me, [0]): pass", r"push\(me\) does nothing"),
    "yield without from": (COMPUTE, "yield me.compute()", ":LINE: .* all that a text may yield"),
    "a gradient that is lost": (COMPUTE, f"{COMPUTE}; {COMPUTE}", ":LINE: me.compute would replace a gradient"),
    "a sum that is lost": (GATHER, f"{GATHER}; {COMPUTE}", "me.compute would replace a sum"),
    "a gradient of nothing": (COMPUTE, "pass", "me.update of no samples"),
    "a gradient added twice": (GATHER, f"{TAKE}; {ADD}; {ADD}", "me.add adds the gradient of a letter, once"),
    "a gradient added before one is taken": (GATHER, ".add(None)", "receive the next one first"),
    "gradients as parameters": (GATHER, ".take_up((yield from me.receive(me.workers)))", "me.take_up takes up param"),
    "a rank that is not there": (SEND, ".send(GRADIENT, 7)", "me.send: 7 is no rank; there are 0 to 3$"),
    "a rank from the end": (SEND, ".send(GRADIENT, [-1])", "me.send: -1 is no rank"),
    "a world's attribute": (COMPUTE, f"me.now_s = 0; {COMPUTE}", "me.now_s is not a text's to set"),
    "a part that is none": (COMPUTE, ".compute('all')", ":LINE: me.compute: part 'all'; allowed: Partition"),
    "a partition beyond the last": (COMPUTE, ".compute(Partition(5, 4))", "allowed: an index from 0 to of - 1"),
    "a partition of a minibatch too small": (COMPUTE, ".compute(Partition(0, 9999))", "the batch, 1024$"),
    "a partition before the first": (COMPUTE, ".compute(Partition(1, 4))", r"begin with Partition\(0, 4\)"),
    "less than no computing": (COMPUTE, ".compute(Layer(0, -0.5, last=True))", "a share from 0 to 1$"),
    "a layer of no variable": (COMPUTE, ".compute(Layer(99, 0.5, last=True))", "variable, from 0 to 7$"),
    "a limit that is no number": (COMPUTE, ".compute_until(float('nan'), 4)", "deadline_s nan; allowed: seconds"),
    "no partitions": (COMPUTE, ".compute_until(9, partitions=0)", "partitions 0; allowed: an integer from 1 to"),
    "a cycle back in time": (COMPUTE, f".cycle(-1); {COMPUTE}", "cycle_s -1; allowed: seconds, 0 or more$"),
    "a message that is none": (SEND, ".send('gradient', me.master)", "what 'gradient'; allowed: GRADIENT"),
    "waiting until never": (SEND, f"{SEND}; yield from me.receive(0, until_s=float('nan'))", "until_s nan"),
    "parameters of a worker": (SEND, f".send(PARAMETERS, 0); {SEND}", ".* workers their GRADIENT"),
    "a gradient of the master": (SEND_ALL, f".send(GRADIENT, me.workers); {SEND_ALL}", ":LINE: me.send: the master"),
    "a message to itself": (SEND, f".send(Note(), me.rank); {SEND}", ":LINE: me.send: 1 is this rank itself$"),
    "a request that nobody answers": (SEND, f"yield from pull(me, [0]); {SEND}", "the master's text, .*: me.add adds"),
    "no text beside": (COMPUTE, ".beside(me.compute(), 3)", ":LINE: me.beside: communicating 3"),
    "a text beside without yield": (COMPUTE, f"me.sleep(); {BESIDE}", r"me.sleep\(\) does nothing without"),
    "an algorithm that is none": (COMPUTE, "yield from allreduce(me, 'rung')", r"algorithm 'rung'; .*ring"),
    "a sum beside a master": (COMPUTE, f"{COMPUTE}; yield from allreduce(me)", "workers of a master or servers sum"),
    "an exchange beside a master": (
        COMPUTE,
        f"{COMPUTE}; yield from me.exchange(Exchange(1, slice(0, 3), 1, slice(0, 3)))",
        ":LINE: me.exchange: exchange .*; allowed: empty pieces: workers of a master or servers sum nothing",
    ),
    "leaving": (SEND, "raise SystemExit(0)", ":LINE: SystemExit: 0$"),
    "an exception": (SEND, f"{SEND}; 1 / (_ - 3)", "Own, the worker's text, .*:LINE: ZeroDivisionError"),
    "a generator that ends": (SEND, "next(iter([]))", "RuntimeError: generator raised StopIteration$"),
    "a deadlock": (SEND_ALL, "pass", "deadlock in mine.*:Own: ranks 0, 1, 2, 3 wait for ever$"),
}
RING = f"""    def worker(self, me):
        for _ in me.steps():
            {COMPUTE}
            {SUM}
            {UPDATE}
"""
SERVERS = f"""    def server(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers)
            {GATHER}
            {UPDATE}

    def worker(self, me):
        for _ in me.steps():
            for server in me.servers:
                yield from me.take_up((yield from me.receive(server)))
            {COMPUTE}
            yield from me.send(GRADIENT, me.servers)
"""
TEXTS = {  # whole, and what is said of them
    "a last verb without yield": (WORKER + MASTER + "        me.evaluate()\n", r"me.evaluate\(\) does nothing"),
    "no verb": ("    def worker(self, me):\n        return 1\n" + MASTER, "no generator"),
    "no master": (WORKER, "it has no text: write `def master"),
    "too few updates": (
        (WORKER + MASTER).replace("_ in me.steps()", "_, _ in zip(range(4), me.steps())"),
        "6 updates are due .* made 4$",
    ),
    "rounds that nobody counts": ((WORKER + MASTER).replace("me.steps()", "range(6)"), "its steps are not counted"),
    "a check that fails": (
        f"{WORKER}{MASTER}\n    def check(self, scenario):\n        scenario.x()\n",
        "mine.*.py:[0-9]+: .* attribute 'x'",
    ),
    "a piece beyond the vector": (
        RING.replace(SUM, "yield from me.exchange(Exchange(0, slice(0, 10**9), 0, slice(0, 3)))"),
        r"me.exchange: exchange .*; allowed: a slice within slice\(0, \d+\), whose last item counts samples$",
    ),
    "a piece of another size than was sent": (
        RING.replace(
            SUM, "a, b = slice(0, 9), slice(0, 8); yield from me.exchange(Exchange(me.rank - 1, a, me.rank + 1, b))"
        )
        .replace("me.rank - 1", "(me.rank - 1) % len(me.workers)")
        .replace("me.rank + 1", "(me.rank + 1) % len(me.workers)"),
        "mine.*:[0-9]+: an exchange takes 32 bytes from rank [0-9], whose next message has 36: .* in order alone$",
    ),
    "a piece of every second item": (
        RING.replace(SUM, "yield from me.exchange(Exchange(0, slice(0, 9, 2), 0, slice(0, 9, 2)))"),
        "allowed: a slice of the items that workers sum$",
    ),
    "a piece from the end": (RING.replace(SUM, "yield from reduce(me, 'ring', slice(-9, 3))"), "reduce.* piece slice"),
    "a copy of nothing": (RING.replace(SUM, "yield from me.copy(None)"), "me.copy: piece None; allowed: a slice"),
    "an exchange with nobody": (
        RING.replace(SUM, "yield from me.exchange(Exchange(7, slice(0, 3)))"),
        "ranks to and source",
    ),
    "an exchange that is none": (RING.replace(SUM, "yield from me.exchange(3)"), "allowed: an Exchange of sim.coll"),
    "a ring that sums twice": (RING.replace(SUM, f"{SUM}; {SUM}"), r"allreduce\(me\) would sum twice"),
    "a ring that sends": (RING.replace(UPDATE, "yield from me.send(GRADIENT, [0])"), "me.send needs a master"),
}


@pytest.mark.parametrize("mistake", LINES)
def test_a_mistake_in_a_line_is_told_in_one(module, told, mistake):
    line, other, expected = LINES[mistake]
    other = f"yield from me{other}" if other.startswith(".") else other
    text = f"{CLASS}{WORKER}{MASTER}"
    assert line in text
    number = 1 + (HEAD + text[: text.index(line)]).count("\n")
    code, said = told("--protocol", f"{module(text.replace(line, other))}:Own")
    assert code == 1
    assert re.search(expected.replace("LINE", str(number)), said.strip()), said
    assert said.count("'s text") < 2, said  # another's, that waits for it, has no mistake


@pytest.mark.parametrize("mistake", TEXTS)
def test_a_mistake_in_a_text_is_told_in_one_line(module, told, mistake):
    text, expected = TEXTS[mistake]
    code, said = told("--protocol", f"{module(CLASS + text)}:Own")
    assert code == 1
    assert re.search(expected, said.strip()), said


ROWS = ["--workload", "bigram", "--protocol"]
WITH_SERVERS = {  # a text with servers, options and what is said
    "parameters for a server": (
        SERVERS.replace("PARAMETERS, me.workers", "PARAMETERS, 1 - me.rank"),
        ["--servers", "2", "--protocol"],
        "me.send: PARAMETERS go to workers$",
    ),
    "rows that nobody asked for": (SERVERS, ROWS, "me.send: rows of sparse variables are answers"),
    "rows of some partitions": (
        SERVERS.replace("me.workers)", "me.workers, wait=False)", 1).replace(
            COMPUTE, "yield from me.compute_until(9, 4)"
        ),
        ROWS,
        r"me.compute_until: deadline_s 9; allowed: none, but me.compute\(Partition",
    ),
    "gradients of variables and of all": (
        SERVERS.replace("me.send(GRADIENT, me.servers)", "me.send(Variable(0), 0); yield from me.send(GRADIENT, 0)"),
        ["--servers", "2", "--protocol"],
        r"me.send: variables travel one by one here, as Variable\(number\)$",
    ),
}


@pytest.mark.parametrize("mistake", WITH_SERVERS)
def test_what_no_real_rank_could_do_is_refused_where_it_is_simulated(module, told, mistake):
    text, words, expected = WITH_SERVERS[mistake]
    code, said = told(*words, f"{module(CLASS + text)}:Own")
    assert code == 1
    assert re.search(expected, said.strip()), said


@pytest.mark.parametrize("text", ["pass", "name = 'mine'\n    algorithm: str = 'ring'"])
def test_texts_of_ours_run_in_a_class_of_ones_own(module, text):
    """Horovod's hands two verbs to `beside`."""
    own = module(f"@dataclass(frozen=True)\nclass Own(Horovod):\n    {text}\n")
    mine, ours = protocols.make(f"{own}:Own"), protocols.make("horovod", ["algorithm=ring"] * ("ring" in text))
    answers = [
        simulation.simulate(Scenario(protocol, workload.read("mlp"), workers=3, steps=4), "event", 1)
        for protocol in (mine, ours)
    ]
    assert answers[0].step_s == pytest.approx(answers[1].step_s, rel=1e-12)


USES = {  # what a text of gradients that a master gathers has besides; what a protocol asks of it, and whether it does it
    "takes pieces": ("from sim.collectives.base import take", "take(1, slice(0, 0))", "by_arrival", False),
    "takes letters": ("from sim.verbs import take as one", "(yield from one(me, me.workers))", "by_arrival", True),
    "takes letters by module": ("import sim.verbs", "(yield from sim.verbs.take(me, me.workers))", "by_arrival", True),
    "calls its own take": ("", "(yield from self.take(me))", "by_arrival", False),
    "reads a setting": ("", "self.beside", "overlaps", False),
    "overlaps": ("", "(yield from me.beside(me.sleep(), me.sleep()))", "overlaps", True),
    "overlaps elsewhere": ("", "(yield from both(me))", "overlaps", True),
    "overlaps in an overridden method": ("", "(yield from self.base(me))", "overlaps", True),
    "asks for variables": ("from sim.model.workload import Variable", "Variable", "layerwise", False),
    "sends variables": ("from sim.verbs.me import Variable as Of", "(yield from me.send(Of(0), 0))", "layerwise", True),
    "rounds elsewhere": ("", "[one for one in rounds(me)]", "counts_updates", False),
}


@pytest.mark.parametrize("how", USES)
def test_what_a_text_does_is_what_it_calls_and_no_matter_of_names(module, how):
    imports, used, asked, expected = USES[how]
    text = f"""
{imports}
def both(me):
    yield from me.beside(me.sleep(), me.sleep())

def rounds(me):
    return me.steps()

class Base(FixedMinibatch):
    def base(self, me):
        yield from both(me)

@dataclass(frozen=True)
class Own(Base):
    beside: int = 2

    def take(self, me):
        yield from me.sleep()

    def base(self, me):
        yield from super().base(me)

    def master(self, me):
        for _ in {"range(9)" if asked == "counts_updates" else "me.steps()"}:
            print({used})
"""
    assert getattr(protocols.make(f"{module(text)}:Own"), asked) is expected


def declared(settings: str, decorator: str = "@dataclass(frozen=True)") -> str:
    return f"{decorator}\nclass Own(Protocol):\n    {settings}\n{WORKER}{MASTER}"


CLASSES = {  # declared so, set so, and what is said
    "no dataclass": (declared("pass", ""), [], "below @dataclass"),
    "no frozen dataclass": (declared("of: int = 3", "@dataclass"), [], r"below @dataclass\(frozen=True\)"),
    "a new setting": ("class Own(FixedMinibatch):\n    limit_s: float = 1.0\n", [], "below @dataclass"),
    "a list": (declared("of: list[float] = field(default_factory=list)"), [], "int, float, str, bool; of is list"),
    "a setting that is computed": (declared("of: int = field(init=False, default=1)"), [], "of is int with init=False"),
    "no default": (declared("of: int"), [], "of=VALUE: .* has no default"),
    "no integer": (declared("of: int | None = None"), ["of=x"], "an integer"),
    "a setting that is not there": (declared("of: int = field(default_factory=lambda: 3)"), ["x=1"], "allowed: of=3"),
    "a name with a type": (declared("name: str = 'own'"), [], "without a type"),
    "a name of ours": (declared("name = 'ps-async'"), [], "a name of its own"),
    "settings it does not take": (declared("def __post_init__(self): 1 / 0"), [], "mine.*.py:[0-9]+: ZeroDiv"),
}


@pytest.mark.parametrize("mistake", CLASSES)
def test_a_class_that_cannot_be_run_is_refused_in_one_line(module, told, mistake):
    text, settings, expected = CLASSES[mistake]
    code, said = told("--protocol", f"{module(text)}:Own", *(f"--set={setting}" for setting in settings))
    assert code == 2
    assert re.search(expected, said.strip()), said


MODULES = {  # and what is said
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "1 / 0": r"mine.*:1: ZeroDivisionError: division by zero",
    "def f(:": "invalid syntax",
    f"{HEAD}@dataclass\nclass Own(FixedMinibatch):\n    rounds: int = 2\n": r"mine.*py:[0-9]+: TypeError: cannot inherit non-frozen",
    "import nothing_like_it": "No module named 'nothing_like_it'",
    "Own = 3": "module:Class of your own",
    "other = 3": "no attribute 'Own'",
}


@pytest.mark.parametrize("text", MODULES)
def test_a_module_that_cannot_be_imported_is_refused_in_one_line(module, told, text):
    code, said = told("--protocol", f"{module(text, head='')}:Own")
    assert code == 2
    assert re.search(MODULES[text], said.strip()), said


@pytest.mark.parametrize(
    "name",
    ["os:path", "os:", ":X", ":", "a.b.c:", "..a:X", "a b:c", "os:path:join", "fmbb", "sim.protocols.base:Protocol"],
)
def test_what_is_no_class_is_refused_in_one_line(told, name):
    code, said = told("--protocol", name)
    assert code == 2
    assert "allowed: amb, fmb, " in said or "allowed: a class " in said
    assert ("module:Class" in said) == (name in ("os:path", "os:", ":X", ":", "a.b.c:", "fmbb"))


@pytest.mark.parametrize(
    ("kind", "given", "value"), [("int", "3", 3), ("float | None", "None", None), ("float | None", "80 ms", 0.08)]
)
def test_a_setting_of_ones_own_is_read_as_its_type_says(module, kind, given, value):
    made = protocols.make(f"{module(declared(f'of_s: {kind} = None'))}:Own", [f"of_s={given}"])
    assert made.of_s == value


STATE = f"""
    def worker(self, me):
        for _ in me.steps():
            {RECEIVE}
            object.__setattr__(self, "limit_s", 0.02 * me.rank)
            yield from me.sleep()
            yield from me.compute_until(me.now_s + self.limit_s, 8)
            {SEND}
"""


def test_each_rank_has_a_class_to_itself_as_each_process_has(module, told, capsys):
    """What a worker notes in `self` is not overwritten by the next, nor are two replications alike for it."""
    local = STATE.replace('object.__setattr__(self, "limit_s", 0.02 * me.rank)', "limit_s = 0.02 * me.rank").replace(
        "self.l", "l"
    )
    answers = []
    for text in (STATE, local):
        words = ["--protocol", f"{module(f'{CLASS}{text}{MASTER}')}:Own", "--json", "--world", "event"]
        sim_run.main([*words, "--stragglers", "niagara*0.05", "--steps", "20", "--replications", "2"])
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]["samples_per_step"] == answers[1]["samples_per_step"]
    assert answers[0]["step_s"] == answers[1]["step_s"]


def test_gathers_add_up_until_the_update(module, capsys):
    text = f"{CLASS}{WORKER}{MASTER.replace(GATHER, 'yield from gather(me, [2, 1]); yield from gather(me, 3)')}"
    sim_run.main([*JOB, "--protocol", f"{module(text)}:Own", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["samples_per_step"]["mean"] == 3 * workload.read("toy_fc").batch
    assert answer["world"] == "event"


@pytest.mark.usefixtures("installed")
def test_a_text_that_gathers_from_some_gets_their_samples_only(module, capsys):
    text = f"{CLASS}{WORKER}{MASTER.replace('gather(me, me.workers)', 'gather(me, [1, 2])')}"
    name = f"{module(text)}:Own"
    sim_run.main([*JOB, "--protocol", name, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert (answer["samples_per_step"]["mean"], answer["world"]) == (2 * workload.read("toy_fc").batch, "event")
    sim_run.main([*JOB, "--protocol", name, "--json", "--world", "engine"])
    assert json.loads(capsys.readouterr().out)["samples_per_s"] == pytest.approx(answer["samples_per_s"])


def test_a_text_is_tried_before_it_is_run_for_real(module):
    mistaken = protocols.make(f"{module(CLASS + WORKER + MASTER.replace(SEND_ALL, 'pass'))}:Own")
    with pytest.raises(RunFailed, match="deadlock"):
        simulation.try_out(Scenario(mistaken, workload.read("mlp"), steps=10**6))
    late = protocols.make(f"{module(CLASS + WORKER + MASTER.replace(UPDATE, f'{UPDATE}; 1 / (50 - _)'))}:Own")
    simulation.try_out(Scenario(late, workload.read("mlp"), steps=10**6))


@pytest.mark.parametrize("program", ["run", "campaign"])
def test_a_deadlock_is_told_before_ranks_are_started(module, tmp_path, monkeypatch, program):
    own = f"{module(CLASS + WORKER + MASTER.replace(SEND_ALL, 'pass'))}:Own"
    line = ["--workers", "2", "--workload", "mlp", "--steps", "5", "--protocol", own]
    line += ["--trace", str(tmp_path / "t.parquet")]
    (tmp_path / "cells.json").write_text(json.dumps([line]))
    monkeypatch.setattr("sim.base.extras.need", lambda *_: None)
    monkeypatch.setattr(launch, "launch", lambda *_: pytest.fail("ranks are started"))
    words = line if program == "run" else [str(tmp_path / "cells.json")]
    with pytest.raises(RunFailed, match=rf"^deadlock in {own}: ranks 0, 1, 2 wait for ever$"):
        import_module(f"real.{program}").main(words)


def test_ranks_that_all_send_first_are_told_before_they_wait_for_ever(module):
    """Apart they are simulated; real messages that are long leave when they are received, on whatever host."""
    text = WORKER.replace("me.send(GRADIENT, me.master)", "me.send(GRADIENT, me.rank % 2 + 1)")
    text = (
        text.rstrip()
        + "\n            yield from gather(me, me.rank % 2 + 1)\n            yield from me.send(GRADIENT, me.master)\n"
    )
    swaps = Scenario(protocols.make(f"{module(CLASS + text + MASTER)}:Own"), workload.read("mlp"), 2, steps=5)
    event.run(swaps)
    with pytest.raises(
        RunFailed, match=r"deadlock in .*: ranks 0, 1, 2 wait for ever; all on one host, where a message"
    ):
        simulation.try_out(swaps)


def test_a_protocol_of_ours_is_not_tried():
    with mock.patch.object(event, "run") as run:
        simulation.try_out(Scenario(protocols.make("fmb"), workload.read("mlp")))
    run.assert_not_called()


def test_the_verbs_are_those_that_worlds_have():
    assert {"steps", "compute", "now_s", "workers"} <= set(VERBS)
    scenario = Scenario(FixedMinibatch(), workload.read("mlp"))
    rank = event.EventWorld(scenario, 0).ranks[0]
    assert [verb for verb in VERBS if not hasattr(rank, verb)] == []
    assert issubclass(FixedMinibatch, Protocol)
