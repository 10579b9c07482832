"""What tests share. A folder says what its tests need: those in tests/mpi start MPI, those in tests/tensorflow TensorFlow."""

import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sim.recording.traces import Activity, Header, Trace

# Examples may be slow to draw and to try: the machine may have other things to do.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")

MARKED_FOLDERS = {"mpi", "tensorflow", "testbed"}


def pytest_configure():
    """Ctrl-C works in what tests start, though they may run behind a shell that has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    for item in items:
        for folder in MARKED_FOLDERS.intersection(item.path.relative_to(Path(__file__).parent).parts):
            item.add_marker(folder)
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: tests[item.path])  # files of few tests have the long ones, which should not come last


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With several processes a file goes to one of them, which makes what its tests share once."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log) if config.option.dist in ("load", "loadfile") else None


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
