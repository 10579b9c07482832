"""A user's own law is as guarded as a protocol: whatever it gives that is no sleep is one line with its place, in every world."""

import re

import numpy as np
import pytest
from test_commands import refused

from sim import laws, stragglers
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.laws import Law, checked
from sim.model import workload
from sim.texts import FixedMinibatch

HEAD = """
import numpy as np
from sim.laws import Law, Steps, Stragglers


class Mine(Law):
    @property
    def mean(self):
        return 0.01

    def draw(self, rng, size):
"""
PLAIN = "        return rng.random(size)\n"
SEQUENCE = """
class Mine(Stragglers):
    @property
    def mean(self):
        return 0.01
"""
SECONDS = r"seconds from 0 to 1,000,000"
DRAWS = {  # what `draw` returns, and what is said of it
    "np.full(size, -1)": f"given -1.0; allowed: {SECONDS}$",
    "np.full(size, np.nan)": f"given nan; allowed: {SECONDS}$",
    "np.full(size, np.inf)": f"given inf; allowed: {SECONDS}$",
    "np.full(size, 1e300)": rf"given 1e\+300; allowed: {SECONDS}$",
    "rng.random(3)": rf"given 'numbers of shape \(3,\)'; allowed: {SECONDS}, of shape \(128, 8\)$",
    "0.01": rf"given 'numbers of shape \(\)'; allowed: {SECONDS}, of shape \(128, 8\)$",
    "'abc'": f"given 'abc'; allowed: {SECONDS}$",
    "None": f"given 'None'; allowed: {SECONDS}$",
    "rng.random(size) + 1j": f"given 'numbers of type complex128'; allowed: {SECONDS}$",
    "[[1.0], [2.0, 3.0]]": rf"given '\[\[1.0\], \[2.0, 3.0\]\]'; allowed: {SECONDS}$",
    "np.full(size, 2.0**15, np.float16) * 9": f"given inf; allowed: {SECONDS}$",
    "1 / 0": f"given 'ZeroDivisionError: division by zero'; allowed: {SECONDS}$",
    "exit(3)": f"given 'SystemExit: 3'; allowed: {SECONDS}$",
}
CLASSES = {  # a module, and the method, its line and what is said
    "no mean": (HEAD.replace("mean", "middle") + PLAIN, "mean: missing"),
    "a mean that is none": (HEAD.replace("0.01", "float('nan')") + PLAIN, "mean: given nan"),
    "a mean that fails": (HEAD.replace("0.01", "self.middle") + PLAIN, "mean: given .*no attribute 'middle'"),
    "no draw": (HEAD.replace("def draw", "def draws") + PLAIN, "draw: given 'NotImplementedError'"),
    "one value below 0": (HEAD + PLAIN + "    sole = property(lambda self: -1)\n", "sole: given -1.0"),
    "steps below 0": (
        HEAD + PLAIN + SEQUENCE + "    def sleeps(self, scenario, random, worker):\n"
        "        return Steps(lambda count: 0.1 - np.arange(count))\n",
        r"sleeps: given -0\.9",
    ),
    "an array for steps": (
        HEAD + PLAIN + SEQUENCE + "    def sleeps(self, scenario, random, worker):\n        return np.zeros(9)\n",
        "sleeps: given 'numbers of type float64'; allowed: trainsim.laws.Steps",
    ),
    "factors that are none": (
        HEAD + PLAIN + SEQUENCE + "    slows_computing = property(lambda self: True)\n"
        "    def factors(self, scenario, random, worker):\n        return Steps(lambda count: np.full(count, np.nan))\n",
        "factors: given nan; allowed: factors",
    ),
    "notes that are no list": (
        HEAD + PLAIN + "    def notes(self, scenario):\n        return 5\n",
        r"notes: given .TypeError: .int. object is not iterable.; allowed: a list",
    ),
}


def complaint(here, name: str, *words: str, steps: int = 5) -> str:
    """The line with which sim.run refuses it."""
    line = ["--stragglers", f"{name}:Mine", "--steps", str(steps), "--replications", "2", *words]
    return refused(here("sim.run", *line)).removeprefix(f"sim.run: {name}.py:").strip()


@pytest.mark.parametrize("protocol", ["fmb", "ps-async"])  # of either simulated world
@pytest.mark.parametrize("given", DRAWS)
def test_draws_that_are_no_seconds_are_one_line(module, here, given, protocol):
    said = complaint(here, module(f"{HEAD}        return {given}\n"), "--protocol", protocol)
    raises = "Error" in DRAWS[given] or "Exit" in DRAWS[given]  # where it does, or else where the method begins
    line = HEAD.count("\n") + raises
    assert said.startswith(f"{line}: Mine.draw: "), said
    assert re.search(DRAWS[given], said), said


@pytest.mark.parametrize("mistake", CLASSES)
def test_other_mistakes_are_one_line(module, here, mistake):
    text, expected = CLASSES[mistake]
    said = complaint(here, module(text), "--protocol", "fmb")
    assert re.match(rf"\d+: Mine\.{expected}", said), said


def test_a_class_that_cannot_be_made_is_one_line(module, here):
    name = module(f"{HEAD}{PLAIN}    def model_post_init(self, _):\n        raise RuntimeError('boom')\n")
    assert "a class that can be made (RuntimeError: boom)" in complaint(here, name)


@pytest.mark.parametrize("protocol", ["fmb", "kbatch-async"])
def test_later_draws_are_looked_at_too(module, here, protocol):
    text = f"{HEAD}        return np.full(size, 0.01 if rng.random() == FIRST else -2.5)\n"
    text += "from sim.laws.randomness import generator\nFIRST = generator(0, 0, 0, 'sleep', 0).random()\n"
    said = complaint(here, module(text), "--protocol", protocol, steps=150)
    assert "Mine.draw: given -2.5" in said


@pytest.mark.parametrize(
    "loop",
    ["        while True:\n            pass\n", "        return self.draw(rng, [each for each in iter(int, 1)])\n"],
)
def test_a_law_that_does_not_end_is_one_line(loop, module, here, monkeypatch):
    monkeypatch.setattr(checked, "LONGEST_TRIAL_S", 0.05)
    said = complaint(here, module(HEAD + loop))
    assert re.match(r"1\d: given 'no end within 0\.05 s of processor time'; allowed: a law whose methods end", said), (
        said
    )


def test_lists_of_numbers_are_numbers(module):
    listed = module(f"{HEAD}        return rng.random(size).tolist()\n")
    arrays = module(f"{HEAD}{PLAIN}")
    first = [job(stragglers.read(f"{name}:Mine")).draws.sleeps(0, 1).first(5).tolist() for name in (listed, arrays)]
    assert first[0] == first[1]


class Negative(Law):
    """Given as an object, and not by its name."""

    mean: float = 1.0
    least: float = -1.0

    def draw(self, rng, size):
        return np.full(size, self.least)


class Falling(laws.Stragglers):
    """A sequence likewise."""

    mean: float = 1.0

    def sleeps(self, scenario, random, worker):
        return laws.Steps(lambda count: -np.ones(count))


def job(law, **more):
    return Scenario(FixedMinibatch(), workload.read("mlp"), stragglers=law, **more)


@pytest.mark.parametrize("law", [Negative(), Falling(), laws.Together(of=[laws.Own(name=f"{__name__}:Negative")])])
def test_objects_are_refused_as_well(law):
    with pytest.raises(WrongSetting, match=r"test_own_laws.py:\d+: \w+\.(draw|sleeps): given -1.0; allowed: seconds"):
        job(law)
