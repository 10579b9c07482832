"""Run a text of the language over MPI on this machine, beside its prediction from other runs: python -m real.language.compare ddp."""

from __future__ import annotations

import json
import os
import statistics
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from real.launching import mpirun, ranks
from sim import command, protocols
from sim.base.errors import WrongSetting, nearest
from sim.language import event
from sim.language.job import Job
from sim.language.learning import Chain, Values
from sim.language.text import Text
from sim.protocols.base import Protocol
from sim.texts import TEXTS

if TYPE_CHECKING:
    from real.language.ranks import Ran

PROGRAM = "real.language.compare"


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(
        prog=PROGRAM, description="A text of the language over MPI on this machine, beside its prediction."
    )
    parser.add_argument(
        "texts", nargs="+", metavar="TEXT", help=f"{', '.join(sorted(TEXTS))}, or module:Class of your own"
    )
    parser.add_argument("--ranks", type=int, default=4, metavar="N", help="processes, servers included (default: 4)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the text, if it is one"
    )
    parser.add_argument(
        "--servers", type=int, default=1, metavar="N", help="of texts that have any number (default: 1)"
    )
    parser.add_argument("--width", type=int, default=128, metavar="N", help="of each layer (default: 128)")
    parser.add_argument("--depth", type=int, default=8, metavar="N", help="number of layers (default: 8)")
    parser.add_argument("--batch", type=int, default=64, metavar="N", help="samples of a rank (default: 64)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="of each run (default: 20)")
    parser.add_argument("--json", action="store_true", help="an object for each text, a line each")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="that are measured (default: 3)")
    return parser


def named(name: str, assignments: list[str], servers: int) -> Text:
    """A text by its name, or module:Class, with settings as of --protocol.

    Raises:
        WrongSetting: an unknown text or setting.
    """
    of = TEXTS.get(name)
    own = (
        protocols.make(f"{of.__module__}:{of.__qualname__}" if of else name, assignments) if of or ":" in name else None
    )
    if not isinstance(own, Protocol):
        raise WrongSetting(
            "text", name, f"{', '.join(sorted(TEXTS))}, or module:Class of your own{nearest(name, TEXTS)}"
        )
    return own.text(servers)


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    given = parser().parse_args(argv)
    model = Chain(given.width, given.depth)
    job = Job(given.ranks, model.layers(), given.steps, batch=given.batch, item_bytes=8)
    if given.set and len(given.texts) > 1:
        raise WrongSetting("--set", given.set[0], "nothing with several texts")
    texts = [named(name, given.set, given.servers) for name in given.texts]
    for text in texts:
        text.checked(job)
        if not mpirun.joined():
            timed = replace(job, steps=2, layers=model.layers(1e-3, 2e-3))  # who takes no time never waits
            event.run(timed, text)  # which says in a line what would hang here
    if not mpirun.joined():
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a rank has one core at most
        mpirun.launch(mpirun.command(given.ranks, PROGRAM, argv))
        return 0
    return ranks.join(PROGRAM, lambda comm: work(comm, job, texts, model, given.runs, given.json))


def work(comm, job: Job, texts: list[Text], model: Chain, runs: int, as_json: bool = False) -> int:
    """What one rank does; rank 0 prints."""
    from real.language import fits
    from real.language.ranks import run

    if comm.size != job.ranks:
        raise WrongSetting("--ranks", job.ranks, f"{comm.size}, which the launcher started")
    found = fits.fitted(comm, job, model)
    for text in texts:
        every = [run(comm, job, text, model) for _ in range(runs)]
        ran = [one for one in every if one is not None]
        if found is not None:
            told = beside(job, found, text, model, ran)
            print(json.dumps(told._asdict()) if as_json else "\n".join(said(told, job, model)), flush=True)
    return 0


class Beside(NamedTuple):
    """A text's runs beside its prediction.

    Args:
        measured_s: of a step, the median of the runs; floor: half of how far apart they are, over it.
        apart: the largest difference of a weight from that in simulated time, of servers where there are some.
        samples: that entered updates, and simulated ones.
    """

    text: str
    runs: int
    measured_s: float
    floor: float
    predicted_s: float
    apart: float
    samples: tuple[float, float]


def beside(job: Job, found: Job, text: Text, model: Chain, ran: list[Ran]) -> Beside:
    """Measured beside predicted, and how far weights are from those of the same text in simulated time."""
    values = Values(job, model, text.data == "shared")
    predicted = event.run(found, text, values)
    predicted_s = (predicted.ends_s[-1] - predicted.ends_s[0]) / max(1, job.steps - 1)
    measured_s = [one.step_s for one in ran]
    middle_s = statistics.median(measured_s)
    floor = (max(measured_s) - min(measured_s)) / 2 / middle_s
    holders = text.servers or job.ranks  # to workers their last weights may be on the way
    apart = max(
        float(np.nanmax(np.abs(mine - values.vectors[rank]["weights"]), initial=0.0))
        for rank, mine in enumerate(ran[-1].weights[:holders])
    )
    samples = float(sum(ran[-1].samples)), float(sum(predicted.samples))
    return Beside(text.name, len(ran), middle_s, floor, predicted_s, apart, samples)


def said(told: Beside, job: Job, model: Chain) -> list[str]:
    """The same in lines."""
    samples, wanted = told.samples
    return [
        f"{told.text}, {job.ranks} ranks, {model.depth} layers {model.width} x {model.width}, batch {job.batch}, {job.steps} steps",
        f"measured   {told.measured_s * 1e3:.3g} ms a step, +-{told.floor:.0%} over {told.runs} runs",
        f"predicted  {told.predicted_s * 1e3:.3g} ms: {told.predicted_s / told.measured_s - 1:+.0%}",
        f"weights    within {told.apart:.0e} of those in simulated time; {samples:,.0f} samples, simulated {wanted:,.0f}",
    ]


if __name__ == "__main__":
    command.run(PROGRAM, main)
