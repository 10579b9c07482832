"""Two ranks that begin TensorFlow's collectives twice, the first rank late; prints what they sum.

mpirun -n 2 ... python -m mpi4py tests/mpi/begin_late.py
"""

import time

import numpy as np

from real.launching.ranks import join
from real.libraries.tensorflow_collectives import Collectives
from real.training.trainee import Training

LATE_S = 1.0


class Late(Collectives):
    """The first rank's second strategy is made late."""

    def _make(self, tf) -> None:
        if self._strategy is not None and self._rank == 0:
            time.sleep(LATE_S)
        super()._make(tf)


def begin_twice(comm) -> None:
    library = Late(comm)
    for _ in range(2):
        library.begin(comm, None, Training())
        tf = library._tf
        total = tf.function(lambda ones: library.sums([ones], fused=True), autograph=False)
        assert np.array_equal(total(tf.ones(1000))[0], np.full(1000, 2, np.float32))
        library.end()
        comm.Barrier()


if __name__ == "__main__":
    join("begin_late", begin_twice)
