"""A user's own protocol runs as those of the registry do, and an ordinary mistake in one is one line."""

import json
import re
from importlib import import_module

import pytest

from real.launching import mpirun as launch
from sim import protocols, simulation
from sim import run as sim_run
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.model import workload
from sim.recording import traces
from sim.texts import FixedMinibatch

HEAD = """
from __future__ import annotations
from dataclasses import dataclass, field
from typing import ClassVar
from sim.base.errors import WrongSetting
from sim.language.text import Text
from sim.language.collectives import allreduce
from sim.language.verbs import compute, compute_until, gather, push, send
from sim.texts import FixedMinibatch, Horovod

"""
CLASS = "@dataclass(frozen=True)\nclass Own(Text):\n    rounds: int = 2\n"
CALL = """
    servers = 1

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == me.master:
                yield from send(me, me.weights, me.workers)
                samples = 0
                for _ in range(self.rounds):
                    samples += yield from gather(me, me.workers, me.gradient)
                yield from me.update(samples=samples)
            else:
                yield from me.take(me.master, me.weights)
                yield from me.sleep()
                for _ in range(self.rounds):
                    yield from compute(me)
                    yield from push(me, me.servers)
"""
OWN = CLASS + CALL
JOB = ["--stragglers", "none", "--steps", "5", "--warmup", "1"]


@pytest.fixture
def module(module):
    """Writes a module of a user's behind what it imports; its name."""
    return lambda text, head=HEAD: module(head + text)


@pytest.fixture
def told(here):
    """Run sim.run; its exit code and what it said on stderr, which is to be one line if it failed."""

    def run(*words: str) -> tuple[int, str]:
        done = here("sim.run", *JOB, *words)
        assert done.stderr.count("\n") == (done.returncode != 0), done.stderr
        return done.returncode, done.stderr

    return run


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("world", ["event", "engine"])
def test_one_of_ones_own_runs_in_both_worlds(module, capsys, world):
    own = f"{module(OWN)}:Own"
    words = ["--protocol", own, "--set", "rounds=3", "--world", world, "--json", "--replications", "1"]
    sim_run.main([*JOB, *words])
    answer = json.loads(capsys.readouterr().out)
    asked = answer["scenario"]
    assert (asked["protocol"], answer["world"], asked["settings"]) == (own, world, {"rounds": 3})
    assert answer["samples_per_step"]["mean"] == 3 * 3 * workload.read("toy_fc").batch


def test_a_trace_names_the_class_so_that_it_can_be_made_again(module, tmp_path):
    own, file = f"{module(OWN)}:Own", str(tmp_path / "trace.parquet")
    sim_run.main([*JOB, "--protocol", own, "--set", "rounds=3", "--trace", file])
    header = traces.read(file).header
    assert header.protocol == own
    again = protocols.make(header.protocol, [f"{name}={value}" for name, value in header.settings.items()])
    assert again == protocols.make(own, ["rounds=3"])


def test_a_class_without_a_name_is_called_as_it_is(module):
    own = protocols.make(f"{module(OWN)}:Own")
    assert (own.name, protocols.name_of(own)) == ("Own", f"{type(own).__module__}:Own")


def test_a_class_of_ours_goes_by_its_name():
    assert protocols.make("sim.texts.fmb:FixedMinibatch") == protocols.make("fmb")
    assert protocols.name_of(protocols.make("sim.texts.fmb:FixedMinibatch")) == "fmb"


def test_a_program_gives_a_text_as_it_is():
    job = Scenario(FixedMinibatch(), workload.read("mlp"))
    assert job == Scenario(protocols.make("fmb"), workload.read("mlp"))


COMPUTE, PUSH, UPDATE = (
    "yield from compute(me)",
    "yield from push(me, me.servers)",
    "yield from me.update(samples=samples)",
)
SEND = "yield from send(me, me.weights, me.workers)"
LINES = {  # a line of the text above, what stands in its place, and what is said
    "a misspelt primitive": ("me.sleep()", "me.slep()", ":LINE: me has no slep; .* me.sleep$"),
    "leaving": (PUSH, "raise SystemExit(0)", ":LINE: SystemExit: 0$"),
    "an exception": (PUSH, f"{PUSH}; int(str(me))", ":LINE: ValueError"),
    "a deadlock": (SEND, "pass", r"all wait for ever: rank 0, mine\d+.py:\d+ for a message of any of ranks 1, 2"),
}


@pytest.mark.parametrize("mistake", LINES)
def test_a_mistake_in_a_line_is_told_in_one(module, told, mistake):
    line, other, expected = LINES[mistake]
    assert line in OWN
    number = 1 + (HEAD + OWN[: OWN.index(line)]).count("\n")
    code, said = told("--protocol", f"{module(OWN.replace(line, other))}:Own")
    assert code == 1
    assert re.search(expected.replace("LINE", str(number)), said.strip()), said


@pytest.mark.parametrize("text", ["pass", "name = 'mine'\n    algorithm: str = 'ring'"])
def test_texts_of_ours_run_in_a_class_of_ones_own(module, text):
    own = module(f"@dataclass(frozen=True)\nclass Own(Horovod):\n    {text}\n")
    mine, ours = protocols.make(f"{own}:Own"), protocols.make("horovod", ["algorithm=ring"] * ("ring" in text))
    answers = [
        simulation.simulate(Scenario(protocol, workload.read("mlp"), workers=3, steps=4), "event", 1)
        for protocol in (mine, ours)
    ]
    assert answers[0].step_s == pytest.approx(answers[1].step_s, rel=1e-12)


def declared(settings: str, decorator: str = "@dataclass(frozen=True)") -> str:
    return f"{decorator}\nclass Own(Text):\n    {settings}\n{CALL}"


CLASSES = {  # declared so, set so, and what is said
    "no dataclass": (declared("of: int = 3", ""), [], "below @dataclass"),
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
    named = ("os:path", "os:", ":X", ":", "a.b.c:", "fmbb", "sim.protocols.base:Protocol")
    assert ("module:Class" in said) == (name in named)


@pytest.mark.parametrize(
    ("kind", "given", "value"), [("int", "3", 3), ("float | None", "None", None), ("float | None", "80 ms", 0.08)]
)
def test_a_setting_of_ones_own_is_read_as_its_type_says(module, kind, given, value):
    made = protocols.make(f"{module(declared(f'of_s: {kind} = None'))}:Own", [f"of_s={given}"])
    assert made.of_s == value


def test_a_text_is_tried_before_it_is_run_for_real(module):
    mistaken = protocols.make(f"{module(OWN.replace(SEND, 'pass'))}:Own")
    with pytest.raises(RunFailed, match="all wait for ever"):
        simulation.try_out(Scenario(mistaken, workload.read("mlp"), steps=10**6))
    late = protocols.make(f"{module(OWN.replace(UPDATE, f'{UPDATE}; 1 / (50 - me.step)'))}:Own")
    simulation.try_out(Scenario(late, workload.read("mlp"), steps=10**6))


@pytest.mark.parametrize("program", ["run", "campaign"])
def test_a_deadlock_is_told_before_ranks_are_started(module, tmp_path, monkeypatch, program):
    own = f"{module(OWN.replace(SEND, 'pass'))}:Own"
    line = ["--workers", "2", "--workload", "mlp", "--steps", "5", "--protocol", own]
    line += ["--trace", str(tmp_path / "t.parquet")]
    (tmp_path / "cells.json").write_text(json.dumps([line]))
    monkeypatch.setattr("sim.base.home.need", lambda *_: None)
    monkeypatch.setattr(launch, "launch", lambda *_: pytest.fail("ranks are started"))
    words = line if program == "run" else [str(tmp_path / "cells.json")]
    with pytest.raises(RunFailed, match=r"^Own: all wait for ever: rank 0, "):
        import_module(f"real.{program}").main(words)
