"""What a library costs around its sums, which algorithm it takes, and Horovod's cycles."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from common import common

from sim import protocols
from sim.language.engine import job as engine
from sim.language.event import run
from sim.language.job import Job, Layer
from sim.language.library import Library, Line
from sim.language.text import Text
from sim.language.verbs import until_woken, wake
from sim.platform.cluster import read
from sim.protocols.base import text_of
from sim.runs.job import job_of
from sim.texts import TEXTS

LAYERS = tuple(Layer(items, 1e-3, 2e-3) for items in (1000, 2_000_000, 7, 500_000, 1, 300_000))
L, B = 1e-4, 1e8  # latency, bytes/s
EXACT = 1e-9


def test_a_library_is_called_copies_and_agrees():
    job = Job(2, (Layer(100, 0.1, 0.2), Layer(100, 0.0, 0.0)), latency_s=L, bandwidth=B)
    plain = run(job, TEXTS["allreduce"]("ring", fused=False)).ends_s[-1]
    assert plain == pytest.approx(0.3 + 4 * (L + 200 / B))
    library = Library(call=Line(0.01, 1e-4, 0.03), copy=Line(0.5), agree_s=0.002, negotiate_s=0.004)
    for fused, calls in ((True, 0.03), (False, 2 * 0.03 + 0.006)):
        whole = run(replace(job, library=library), TEXTS["allreduce"]("ring", fused)).ends_s[-1]
        messages = 2 * (L + 400 / B) if fused else 4 * (L + 200 / B)
        assert whole == pytest.approx(0.3 + messages + calls + 0.006)
    slow = replace(library, call=Line(0.01, 1e-3))
    assert run(replace(job, library=slow), TEXTS["allreduce"]("ring")).ends_s[-1] == pytest.approx(
        0.3 + 2 * (L + 400 / B) + 0.21 + 0.006
    )
    buffer = replace(job, library=Library(copy=Line(0.5, 1e-3)))
    assert run(buffer, TEXTS["ddp"]()).ends_s[-1] == pytest.approx(0.3 + 2 * (L + 400 / B) + 2 * 0.7)  # in and out
    # One alone is not copied, and the first is summed beside the pass.
    alone = run(buffer, TEXTS["ddp"](bucket_mb=0.0)).ends_s[-1]
    assert alone == pytest.approx(0.3 + 2 * (L + 200 / B))


@pytest.mark.parametrize("by_name", [False, True])
def test_a_cycle_begins_on_time_and_ranks_agree_before_they_sum(by_name):
    job = Job(2, (Layer(1000, 0.1, 0.2),), 2, latency_s=L, bandwidth=B, library=Library(negotiate_s=0.003))
    text = TEXTS["horovod"]("ring", cycle_s=0.07, by_name=by_name)
    one, name = L + 4 / B, 8 / B  # a message that says one gradient is ready, and one that names it
    asked = 2 * (one + name) if by_name else 2 * one
    whole = asked + 0.003 + 2 * (L + 2000 / B)
    first, second = run(job, text).ends_s
    assert first == pytest.approx(5 * 0.07 + whole)  # the first cycle that is not before 0.3
    assert second == pytest.approx(first + 0.3 + whole, abs=0.07)
    grid = 0.35 + 0.07 * np.arange(20)  # cycles follow the one before
    assert np.abs(grid - (second - whole)).min() < EXACT


@dataclass(frozen=True)
class Woken(Text):
    """A text is woken by another one, however often."""

    name = "woken"

    def __call__(self, me):
        asleep, told = [], []
        yield from me.start(self.waker(me, asleep, told))
        for _ in me.steps():
            told.append(1)
            yield from until_woken(me, asleep)
            yield from me.work(seconds=0.1)
            yield from wake(me, asleep)

    def waker(self, me, asleep, told):
        while True:
            yield from me.take(me.rank, until_s=me.now() + 0.25)
            yield from wake(me, asleep)


def test_a_text_that_sleeps_is_woken():
    job = Job(1, (Layer(1),), 3)
    assert run(job, Woken()).ends_s == pytest.approx([0.35, 0.6, 0.85])
    assert engine.run(job, Woken()).ends_s == pytest.approx([0.35, 0.6, 0.85])


def test_protocols_of_today_have_their_texts():
    scenario = common(1, "horovod algorithm=tree fusion_bytes=5 cycle_s=0.2 order=end by_name=true")
    assert text_of(scenario) == TEXTS["horovod"]("tree", 5, 0.2, "end", True)
    assert text_of(replace(scenario, protocol=protocols.make("ddp", []))) == TEXTS["ddp"]()
    assert text_of(common(1, "allreduce fused=false")) == TEXTS["allreduce"]("auto", False)
    on_gpus = replace(scenario, cluster=read("p3.16xlarge"), workers=8)
    assert job_of(on_gpus, TEXTS["allreduce"]()).library.auto == "ring"  # NCCL
    assert job_of(scenario, TEXTS["allreduce"]()).library.auto == "auto"  # Open MPI's choice


def test_a_library_chooses_where_no_algorithm_is_named():
    job = Job(8, LAYERS, 2)
    ring, by_size = (run(job, TEXTS["allreduce"](name)).ends_s for name in ("ring", "auto"))
    assert run(replace(job, library=Library(auto="ring")), TEXTS["allreduce"]()).ends_s == ring != by_size
