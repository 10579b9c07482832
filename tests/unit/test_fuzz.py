"""Whatever is given to a command: one line and exit 2 or 1, or an answer whose every figure can be, in little time and memory.

TRAINSIM_FUZZ=20 in the environment draws twenty times as many cases, others each time; hypothesis prints how to repeat one that failed.
"""

import contextlib
import functools
import importlib
import io
import json
import math
import os
import resource
import shlex
import signal
from importlib import import_module
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import law_examples
import odd_inputs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as draw

from sim import command
from sim.laws import KINDS, FoldedMixture
from sim.model.workload import Workload
from sim.platform.cluster import Cluster

pytestmark = pytest.mark.slow

TIMES = int(os.environ.get("TRAINSIM_FUZZ", "0"))
LONGEST_S = 60  # of the processor, for a case; most take milliseconds
STUCK_S = 1200  # of the clock, for a case that waits and does not compute, on a machine that does other things too
MOST_BYTES = 4 * 2**30  # of address space that a case may add
CLUSTER = {
    "schema": "cluster/1",
    "hosts": [{"name": "host", "count": 4, "cores": 2}],
    "network": {"latency_s": "50 us", "bandwidth_bytes_per_s": "1 Gbit/s"},
    "costs": {"mlp": {"compute": {"base_s": 1e-4, "slope_s": 1e-5}, "noise": {"kind": "lognormal", "cv": 0.1}}},
}
WORKLOAD = {
    "name": "tiny",
    "batch": 32,
    "flops_per_sample": 1e6,
    "sample_shape": [4],
    "classes": 2,
    "variables": [{"name": "w", "shape": [4, 2]}, {"name": "b", "shape": [2]}],
}
LAW = {"components": [{"mean_s": 0.01, "std_s": 0.01, "weight": 0.5}, {"mean_s": 0.0, "std_s": 0.0, "weight": 0.5}]}
JOB = {"workload": ("workload.toml",), "workers": ("2",), "steps": ("3",), "warmup": ("1",), "batch": ("32",)}
JOB |= {"seed": ("1",)}
REAL = JOB | {"workload": ("mlp",)}
QUICK = JOB | {"json": (), "within": ("0.2",)}


class Hangs(BaseException):
    """A case that takes too long; no command catches it, and hypothesis looks for no simpler one, which would take as long."""


def examples(count: int):
    """So many cases, the same each time; more, and others, by hand."""
    more = {"max_examples": count * max(1, TIMES)}
    unhurried = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    return settings(database=None, print_blob=True, **unhurried, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where commands run: a file of each kind, a broken one, an empty one and a folder."""
    from tomli_w import dumps

    made, before = tmp_path_factory.mktemp("fuzz"), Path.cwd()
    os.chdir(made)
    for name, table in (("cluster", CLUSTER), ("workload", WORKLOAD), ("law", LAW)):
        Path(f"{name}.toml").write_text(dumps(table))
    Path("broken.toml").write_text("hosts = [")
    Path("grid.toml").write_text(dumps(odd_inputs.GRID))
    Path("empty").touch()
    Path("folder").mkdir()
    Path("cells.json").write_text(json.dumps([["--trace", "cell.parquet", "--workers", "1"]]))
    line = ["--protocol", "fmb", "--workload", "mlp", "--workers", "1", "--steps", "6", "--replications", "1", "--json"]
    assert ended("sim.run", [*line, "--trace", "t.jsonl"])[0] == 0
    yield made
    os.chdir(before)


@contextlib.contextmanager
def limits(case: object):
    """Little time and memory."""

    def hangs(*_):
        raise Hangs(f"no end within {LONGEST_S} s of the processor, or {STUCK_S} s: {case}")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    handlers = {number: signal.signal(number, hangs) for number in (signal.SIGPROF, signal.SIGALRM)}
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, before[1]))
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    signal.alarm(STUCK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def ended(module: str, line: list[str], stdout=None) -> tuple[int, str, str]:
    """The exit code of a command, what it printed, and what it complained of.

    Args:
        stdout: in place of one that takes all characters; what it got is not returned.
    """
    out, err = stdout or io.StringIO(), io.StringIO()
    try:
        with limits((module, line)), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command.run(module, lambda: import_module(module).main(line))
    except SystemExit as end:
        return end.code, "" if stdout else out.getvalue(), err.getvalue()
    raise AssertionError("a command leaves by SystemExit")


def check(module: str, line: list[str]) -> str:
    """The law; what was printed. No number that is taken is negative or infinite."""
    code, out, err = ended(module, line)
    complaints = [said for said in err.splitlines() if not said.startswith("simulating: ")]
    if code == 0:
        taken = {} if "usage: " in out else vars(import_module(module).parser().parse_args(line))
        assert all(0 <= value < math.inf for value in taken.values() if isinstance(value, int | float)), taken
        return out
    assert code in (1, 2), (code, err)
    assert len(complaints) == 1, err
    assert complaints[0].startswith(f"{module}: "), err
    assert out == ""
    return ""


def check_answer(line: list[str]) -> None:
    """Of sim.run; a page of help is none."""
    out = check("sim.run", line)
    if not out.startswith("{"):
        return
    answer = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    figures = [answer["samples_per_s"], *answer["step_s"].values(), answer["samples_per_step"]["mean"]]
    assert all(figure is not None and 0 < figure < math.inf for figure in figures), answer
    assert all(share is None or -1e-9 <= share <= 1 + 1e-9 for share in answer["idle_fraction"]), answer


def lines(module: str, **base):
    return odd_inputs.lines(import_module(module).parser(), base)


@examples(300)
@given(lines("sim.run", **QUICK))
def test_lines_of_simulations(folder, line):
    check_answer(line)


SWEEP = {name: value for name, value in QUICK.items() if name != "json"}
SWEEP |= {"output": ("sweep.parquet",), "workers_processes": ("1",)}


@pytest.fixture(scope="module")
def in_process():
    """Sweeps that start no processes."""
    from sim.sweeps import pools

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "Own", lambda processes: pools.Here())
        yield


def check_sweep(line: list[str]) -> None:
    """Of sim.sweep; the file has a row for each scenario, with figures that can be or an error."""
    import shutil

    import pandas as pd

    Path("sweep.parquet").unlink(missing_ok=True)
    shutil.rmtree("sweep.parquet.parts", ignore_errors=True)
    if "sweep.parquet: " in check("sim.sweep", line):
        rows = pd.read_parquet("sweep.parquet")
        figures = rows.loc[rows["error"].isna(), ["samples_per_s", "step_mean_s", "step_p95_s", "samples_per_step"]]
        assert len(figures)
        assert ((figures > 0) & (figures < math.inf)).all(axis=None), figures


@examples(100)
@given(lines("sim.sweep", **SWEEP))
def test_lines_of_sweeps(folder, in_process, line):
    check_sweep(line)


@examples(60)
@given(data=draw.data())
def test_grids_of_sweeps(folder, in_process, data):
    from sim.sweeps import grid

    names = [name for name in grid.known() if name != "set"]
    Path("odd.toml").write_text(data.draw(odd_inputs.grids(names)))
    check_sweep(["odd.toml", "--within", "0.2", "--workers-processes", "1", "-o", "sweep.parquet"])


FILES = {  # of simulations: the option, the model and a good one
    "cluster": ("--cluster", Cluster, CLUSTER),
    "workload": ("--workload", Workload, WORKLOAD),
    "law": ("--stragglers", FoldedMixture, LAW),
}


def sleeping(model: dict) -> dict:
    """A law's table, as a file has it."""
    return {name: value for name, value in model.items() if value is not None}


LAWS = {
    one.kind: (KINDS[one.kind], sleeping(one.model_dump(mode="json")))
    for one in {**law_examples.LAWS, **law_examples.SEQUENCES}.values()
}


@examples(300)
@given(data=draw.data())
def test_files_of_laws(folder, data):
    """Of every kind; with keys of its own that are missing, odd or extreme."""
    kind = data.draw(draw.sampled_from(sorted(LAWS)))
    Path("odd.toml").write_text(data.draw(odd_inputs.texts(*LAWS[kind])))
    check_answer([*line_of(data, "odd.toml"), "--json"])


@pytest.fixture(scope="module")
def modules(folder):
    """Modules of the folder can be imported, as by a program that is started there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield count()


@examples(150)
@given(data=draw.data())
def test_laws_of_ones_own(modules, data):
    name = f"odd_law_{next(modules)}"
    Path(f"{name}.py").write_text(data.draw(odd_inputs.laws()))
    importlib.invalidate_caches()
    world = data.draw(draw.sampled_from(["auto", "event"]))
    check_answer([*line_of(data, f"{name}:Odd"), "--json", "--world", world])


@examples(40)
@given(odd_inputs.surroundings(), draw.sampled_from(["ascii", "utf-8"]), draw.sampled_from([0o077, 0o777]), draw.data())
def test_surroundings(folder, variables, encoding, umask, data):
    """An answer on a terminal of some encoding, and files, whatever the environment says."""
    line = shlex.split("--protocol fmb --workload mlp --cluster named.toml --workers 2 --steps 3 --replications 1")
    line += data.draw(draw.sampled_from([["--json"], [], ["--report", "a.html"], ["--trace", "a.jsonl"], ["--why"]]))
    Path("named.toml").write_text(
        'schema = "cluster/1"\nname = "\u2603 gr\u00f6\u00dfe"\nhosts = [{ count = 4 }]\n', encoding="utf-8"
    )
    for name in ("a.html", "a.jsonl"):
        Path(name).unlink(missing_ok=True)
    printed, before = io.TextIOWrapper(io.BytesIO(), encoding), os.umask(umask)
    try:
        with mock.patch.dict(os.environ, variables), contextlib.redirect_stdout(printed):
            code, out, err = ended("sim.run", line, printed)
    finally:
        os.umask(before)
    assert (code, err) == (0, "") or (code in (1, 2) and err.count("\n") == 1 and not out), (code, err)
    modes = [Path(name).stat().st_mode & 0o777 for name in ("a.svg", "a.html", "a.jsonl") if Path(name).exists()]
    assert all(mode == 0o666 & ~umask for mode in modes)


WORDS = [
    *("lognormal(", "markov(", "replay(", "mean=50ms", "cv=1", "=", ",", ")", "[", "]", "*2", "+", "niagara", "nan"),
    *("p_slow=0.1", "p_recover=0.5", "seconds=", "1e9 s", "slow-ranks(rank=", "1", "by=host", "json:loads", "名", "\0"),
]


@examples(200)
@given(data=draw.data())
def test_laws_that_are_written_out(folder, data):
    words = data.draw(draw.lists(draw.sampled_from(WORDS), max_size=8))
    check_answer([*line_of(data, "".join(words)), "--json"])


def line_of(data, law: str) -> list[str]:
    """A job with stragglers."""
    protocol = data.draw(draw.sampled_from(["amb", "fmb", "ps-async", "allreduce"]))
    job = {"--workload": "mlp", "--workers": "3", "--steps": "3", "--warmup": "1", "--within": "0.2", "--batch": "32"}
    return [*(word for pair in job.items() for word in pair), f"--stragglers={law}", "--protocol", protocol]


@pytest.mark.parametrize("kind", FILES)
@examples(100)
@given(data=draw.data())
def test_files_of_simulations(folder, kind, data):
    option, *model = FILES[kind]
    Path("odd.toml").write_text(data.draw(odd_inputs.texts(*model)))
    check_answer([*line_of(data, "none"), option, "odd.toml", "--json"])


@examples(30)
@given(lines("sim.protocols.check", protocol=("fmb",), workload=("mlp",)))
def test_lines_of_checks(folder, line):
    with mock.patch("sim.protocols.check.WORKERS", (1, 2)):
        check("sim.protocols.check", line)


@pytest.fixture(scope="module")
def unlaunched(folder):
    """Real runs, probes and campaigns that end where they would start processes."""
    from real import run
    from real.launching import mpirun as launch
    from real.launching import testbed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "launch", lambda line: None)
        patch.setattr(testbed, "testbed", lambda hosts, rate: contextlib.nullcontext())
        for name in ("start", "work"):
            patch.setattr(run, name, lambda *_: 0)
        yield patch


TRACES = {"traces": ("t.jsonl",), "trace": ("t.jsonl",)}
LINES = {  # how many of a command, and what they begin with
    "calibration.laws": (40, {"file": ("t.jsonl",), "output": ("a.toml",)}),
    "calibration.fit": (60, TRACES | {"output": ("a.toml",)}),
    "sim.timeline": (15, TRACES | {"output": ("a.svg",)}),
    "sim.plot": (15, TRACES | {"output": ("a.svg",)}),
    "real.run": (150, REAL),
    "real.probe": (40, {"output": ("a.json",)}),
    "real.campaign": (40, {"cells": ("cells.json",)}),
}


@pytest.mark.parametrize("module", LINES)
def test_lines_of_commands(unlaunched, module):
    count, base = LINES[module]

    @examples(count)
    @given(lines(module, **base))
    def holds(line):
        check(module, line)

    holds()


@examples(20)
@given(lines("real.calibrate", output=("a.toml",)))
def test_lines_of_calibrations(unlaunched, line):
    check_calibration(line)


def check_calibration(line: list[str]) -> None:
    """Of real.calibrate, as far as its launch."""
    with mock.patch("real.calibrate.concluded", return_value=0):
        check("real.calibrate", line)


@examples(120)
@given(odd_inputs.CELLS | draw.lists(lines("real.run", **REAL, trace=("a.parquet",)), min_size=1, max_size=2))
def test_files_of_campaigns(unlaunched, cells):
    """Which are no lists of lists of options, or say something that no cell may, or have cells of odd options."""
    Path("odd.json").write_text(json.dumps(cells))
    check("real.campaign", ["odd.json"])


@pytest.fixture(scope="module")
def idle():
    """Experiments that do nothing."""
    from experiments import run

    def found(name: str):
        asked = import_module(name).run
        return SimpleNamespace(run=functools.wraps(asked)(lambda *_, **__: None))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "import_module", found)
        yield


@examples(60)
@given(lines("experiments.run", name=("published",)))
def test_lines_of_experiments(unlaunched, idle, line):
    check("experiments.run", line)


NUMBERS = {
    "sim.run": QUICK,
    "sim.sweep": SWEEP,
    "real.run": REAL,
    "calibration.fit": {"traces": ("t.jsonl",), "output": ("a.toml",)},
    "calibration.check": {"profile": ("cluster.toml",), "traces": ("t.jsonl",)},
    "calibration.slow": {"run": ("t.jsonl",)},
    "real.calibrate": {"output": ("a.toml",), "workload": ("mlp",)},
    "experiments.run": {"name": ("benchmark",)},
}
CHECKS = {"sim.run": check_answer, "sim.sweep": check_sweep, "real.calibrate": check_calibration}


@pytest.mark.parametrize("module", NUMBERS)
def test_every_number_is_refused_or_can_be(unlaunched, idle, in_process, module):
    """One at a time: so large, so small, infinite or none."""
    cases = list(odd_inputs.each_number(import_module(module).parser(), NUMBERS[module]))
    assert len(cases) >= len(odd_inputs.EXTREME)
    for line in cases:
        CHECKS.get(module, functools.partial(check, module))(line)
