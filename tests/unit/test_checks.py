"""Runs that are refused before they are fitted, by what they say of themselves; and fits that come to nothing."""

from dataclasses import dataclass, replace

import event
import numpy as np
import pytest

from calibration import checks
from calibration.checks import check
from calibration.profiles import Source, make
from sim import stragglers
from sim.base.errors import RunFailed, WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host
from sim.protocols import PROTOCOLS
from sim.protocols import make as protocol
from sim.recording.traces import Trace
from sim.texts import FixedMinibatch


def run(name="fmb", model="mlp", **job):
    about = {"workers": 2, "steps": 8, "warmup": 2, "batch": 32, "cluster": Cluster(hosts=[Host(cores=9)])} | job
    return event.trace(Scenario(protocol(name), workload.NAMED[model], **about))


def said(trace, **header):
    with pytest.raises(WrongSetting, match=r"^a run") as refused:
        check(Trace(replace(trace.header, **header), trace.rows), "a run")
    return str(refused.value)


# A worker of gradient coding computes parts of several minibatches, and a rank of a pipeline some layers.
@pytest.mark.parametrize(
    "name", [name for name in PROTOCOLS if name not in ("hierarchical", "gradient-coding", "pipeline")]
)
def test_every_protocol_s_runs_can_be_fitted(name):
    """With sleeps, cut short, and with a settings' partitions."""
    law = {"stragglers": stragglers.read("niagara*0.02"), "stragglers_name": "niagara*0.02"}
    trace = run(name, "lstm_lm" if name == "hybrid" else "mlp", **law)
    check(trace, "a run")
    check(Trace(replace(trace.header, steps=10**9), trace.rows), "a run that was cut short")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"workers": 10**6}, "no row of rank 3"),
        ({"workers": 3}, "no row of rank 3"),
        ({"servers": 2, "workers": 1}, "servers: given 2; allowed: 1 with fmb"),
        ({"updates_per_step": 2}, "updates_per_step: given 2; allowed: 1 with fmb"),
        ({"protocol": "fmbb"}, "--protocol: given 'fmbb'"),
        ({"protocol": ":"}, "--protocol: given ':'"),
        ({"settings": {"time_limit_s": 1.0}}, "--set: given 'time_limit_s=1.0'"),
        ({"placement": "random"}, "--placement: given 'random'"),
        ({"workload": "../../etc/passwd"}, "workload: given '../../etc/passwd'"),
        ({"workload": "toy_fc"}, "toy_fc"),
        ({"batch": 10**9}, "computations of 32 samples"),
        ({"warmup": 10**9}, "at least one step after warm-up"),
    ],
)
def test_a_header_of_another_job(header, words):
    assert words in said(run(), **header)


def edited(change):
    trace = run()
    rows = trace.rows.copy()
    change(rows)
    return Trace(trace.header, rows)


def slow(rows):
    at = rows.index[(rows["activity"] == "compute") & (rows["step"] == 4)]
    rows.loc[at, "end_s"] += 1e9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (slow, "after the end of the one before"),
        (lambda rows: rows.__setitem__("samples", 0), "0 samples/s"),
        (lambda rows: rows.__setitem__("start_s", 0.0) or rows.__setitem__("end_s", 0.0), "steps that take time"),
        (lambda rows: rows.__setitem__("bytes", 10**12), "1000000000000 bytes in a row"),
        (lambda rows: rows.__setitem__("rank", 0), "no row of rank 1"),
    ],
)
def test_rows_that_no_rank_can_have_made(change, words):
    assert words in said(edited(change))


@dataclass(frozen=True)
class Chunks(FixedMinibatch):
    """A user's own, which computes less than a batch at a time."""

    name = "chunks"
    partitions: int = 4


def test_a_user_s_own_protocol_may_compute_what_it_likes():
    trace = run()
    check(Trace(replace(trace.header, protocol=f"{__name__}:Chunks", settings={"partitions": 4}), trace.rows), "a run")


def test_numbers_that_no_cost_can_be_fail_the_fit(monkeypatch):
    """Whatever they come from."""
    for broken in (lambda *_: np.float64(1) / np.zeros(1)[0], lambda *_: 1 / 0, lambda *_: Host(cores=-1)):
        with pytest.raises(RunFailed, match=r"^no costs fit a run: "), checks.fitting("a run"):
            broken()
    monkeypatch.setattr("calibration.profiles.of_traces", lambda *_: np.log(np.zeros(1)))
    with pytest.raises(RunFailed, match="no costs fit mine: divide by zero"):
        make([Source("mine", run())], "x")
