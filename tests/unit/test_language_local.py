"""Messages within a host take a core of their receiver, which copies them: in closed form, and by the engine alike."""

from dataclasses import dataclass, replace

import pytest

from sim.language import event
from sim.language.engine import job as engine
from sim.language.job import Job, Layer
from sim.language.text import Text

EACH_S, BYTE_S, ITEMS = 0.01, 1e-3, 100


@dataclass(frozen=True)
class Told(Text):
    """The first rank tells the others its weights."""

    name = "told"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                for rank in me.workers[1:]:
                    yield from me.post(me.weights, rank)
            else:
                yield from me.take(0, me.weights)


JOB = Job(3, (Layer(ITEMS),), per_host=3, local_overhead_s=EACH_S, local_copy_s=BYTE_S, header_bytes=20)
COPIED_S = EACH_S + BYTE_S * (20 + 4 * ITEMS)


@pytest.mark.parametrize(
    ("job", "end_s"),
    [
        (JOB, COPIED_S),
        (replace(JOB, cores=1), 2 * COPIED_S),  # of all ranks
        (replace(JOB, per_host=1, latency_s=0.0, bandwidth=420.0), 2.0),  # none within a host: ports alone
    ],
)
def test_a_receiver_copies_what_its_host_sends(job, end_s):
    assert event.run(job, Told()).ends_s == [pytest.approx(end_s)]
    if engine._kernel is not None:
        assert engine.run(job, Told()).ends_s == event.run(job, Told()).ends_s
