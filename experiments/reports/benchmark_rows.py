"""Results of the benchmark: a row for each number of workers and of servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.answers.outcome import Outcome, of_trace
from sim.base import interval
from sim.recording.traces import Trace


@dataclass(frozen=True)
class Runs:
    """The repeats of one cell.

    Args:
        samples_per_s: of each repeat, shape (repeats,).
        input_s: mean seconds in which a worker's step fetches and feeds its minibatch, shape (repeats,).
    """

    samples_per_s: np.ndarray
    input_s: np.ndarray

    @classmethod
    def of(cls, traces: list[Trace]) -> Runs:
        """The row of a measured run, after warm-up."""
        throughput = [of_trace(trace).throughput()[0] for trace in traces]
        return cls(np.array(throughput), np.array([input_s(trace) for trace in traces]))

    @property
    def median(self) -> float:
        """Samples/s."""
        return float(np.median(self.samples_per_s))

    @property
    def spread(self) -> float:
        """The spread of the repeats, over their median."""
        return float(np.ptp(self.samples_per_s) / self.median)


@dataclass(frozen=True)
class Row:
    """A number of workers with a number of servers, on both kinds of data.

    Args:
        predicted: the simulated value; None if it was not simulated.
    """

    workers: int
    servers: int
    synthetic: Runs
    real: Runs
    predicted: Outcome | None = None

    @property
    def input_cost(self) -> np.ndarray:
        """Share of the throughput on synthetic data that is lost on real data, repeat by repeat, shape (repeats,)."""
        return 1 - self.real.samples_per_s / self.synthetic.samples_per_s

    @property
    def predicted_samples_per_s(self) -> float:
        """The middle of the replications."""
        if self.predicted is None:
            raise ValueError("nothing was predicted")
        return interval.middle(self.predicted.throughput())

    @property
    def error(self) -> float:
        """Predicted over measured on synthetic data, less 1."""
        return self.predicted_samples_per_s / self.synthetic.median - 1


def input_s(trace: Trace) -> float:
    """Mean seconds of a worker's `input` after warm-up."""
    rows = trace.rows[(trace.rows["activity"] == "input") & (trace.rows["step"] >= trace.header.warmup)]
    return float((rows["end_s"] - rows["start_s"]).mean())
