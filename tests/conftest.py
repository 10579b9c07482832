"""What tests share. A folder says what its tests need: those in tests/mpi start MPI."""

import gc
import importlib
import math
import os
import signal
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sim import simulated_options
from sim.base import progress
from sim.recording.traces import Activity, Header, Trace

# Tests draw the same examples in each run, or else a test is red now and then whatever was changed. TRAINSIM_FUZZ=1 in the environment
# draws others each time, and TRAINSIM_FUZZ=20 draws twenty times as many where a test says so. Examples may be slow to draw and to
# try: the machine may have other things to do.
TIMES = int(os.environ.get("TRAINSIM_FUZZ", "0"))
settings.register_profile(
    "busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not TIMES
)
settings.load_profile("busy machine")

MARKED_FOLDERS = {name: name for name in ("mpi", "tensorflow", "testbed")} | {"evidence": "slow"}
# Files whose tests share nothing, and take long.
BY_ITSELF = {"test_faults.py", "test_commands_of_pages.py", "test_unknowns.py"}


def pytest_configure():
    """Ctrl-C works in what tests start, though they may run behind a shell that has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    for item in items:
        for folder in MARKED_FOLDERS.keys() & set(item.path.relative_to(Path(__file__).parent).parts):
            item.add_marker(MARKED_FOLDERS[folder])
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (_is_quick(item), tests[item.path]))


def pytest_collection_finish():
    """The garbage collector passes over what there is by now, and runs seldom: it took a twelfth of the time of quick tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _is_quick(item) -> bool:
    """Those that start ranks take minutes, and those of files of few tests longest; what is long should not come last."""
    return not any(item.get_closest_marker(name) for name in ("mpi", "tensorflow"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With several processes a file goes to one of them, which makes what its tests share once."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return nodeid if Path(file).name in BY_ITSELF else file

    config.option.loadscopereorder = False
    return ByFile(config, log) if config.option.dist in ("load", "loadfile") else None


@pytest.fixture(autouse=True)
def _nobody_waits_for_the_garbage_collector():
    """Hypothesis has itself called by it: a deadline that passes just then would be raised there, and be lost."""
    gc.callbacks.clear()


@pytest.fixture(autouse=True, scope="session")
def _nobody_is_in_a_hurry():
    """After some seconds commands say how far they are, or answer from fewer runs. A busy machine may take as long for what takes none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "EVERY_S", math.inf)
        patch.setattr(simulated_options, "WITHIN_S", 3600.0)
        yield


numbers = count()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module of a user's, where every process finds it; its name, which no other has had."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])]))
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        name = f"mine{next(numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return name

    return write


@pytest.fixture
def header():
    """Of two ranks that run one step of warm-up and two that are measured."""
    return Header(
        protocol="fmb", world="event", workload="toy_fc", workers=1, steps=2, warmup=1, batch=8, seed=0, settings={}
    )


@pytest.fixture
def trace(header):
    """Steps that end at 2, 4 and 9 s with 16, 18 and 12 samples; the measured window is 2 s to 9 s."""
    return Trace.of(
        header,
        [
            Activity(0.0, 0.5, 0, 0, "send", 0, 100, peer=1),
            Activity(0.0, 0.5, 1, 0, "wait", peer=0),
            Activity(0.5, 0.7, 1, 0, "receive", 0, 100, peer=0),
            Activity(0.5, 1.5, 0, 0, "wait", peer=1),
            Activity(1.5, 2.0, 0, 0, "update", 16, version=1),
            Activity(0.7, 3.0, 1, 1, "wait", peer=0),
            Activity(2.0, 2.5, 0, 1, "send", 0, 100, peer=1, version=1),
            Activity(2.5, 3.5, 0, 1, "wait", peer=1, version=1),
            Activity(3.5, 4.0, 0, 1, "update", 18, version=2),
            Activity(3.0, 3.2, 1, 1, "receive", 0, 100, peer=0),
            Activity(3.2, 8.0, 1, 1, "compute", 18, version=1),
            Activity(4.0, 9.0, 0, 2, "update", 12, version=3),
            Activity(8.0, 12.0, 1, 2, "wait", peer=0, version=1),
        ],
    )
