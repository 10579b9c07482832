"""What recording adds to a step: `python -m trainsim.overhead` runs a loop whose steps are recorded and not in turn, and prints the ratio.

With PyTorch the loop trains a network with DistributedDataParallel, alone over gloo, so that all hooks are at work; without it, it is busy.
Steps are measured in processor seconds of all threads, which other programs hardly change. Recording waits for nothing else.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim import command
from sim.base.ranges import check, check_integer

if TYPE_CHECKING:
    import numpy as np

    from trainsim import Recorder

STEP_S, PAIRS = 20e-3, 300
LONGEST_S, MOST_PAIRS = 10.0, 10**5
WARMUP = 20  # pairs
DRAWS = 400  # of the bootstrap
EMPTY = 20_000  # steps in which nothing is done
TRIED = 512  # samples of a batch whose step is timed first
LEVEL = (5, 95)
Work = Callable[[], Any]


def parser() -> command.Parser:
    """The command line."""
    found = command.Parser(prog="trainsim overhead", description="Measure what recording adds to a training step.")
    found.add_argument("--step-s", type=float, default=STEP_S, metavar="SECONDS", help="length of a step, about")
    found.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help="steps of each kind")
    found.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a step or a number of pairs that cannot be.
    """
    given = parser().parse_args(argv)
    check("--step-s", given.step_s, 1e-4, LONGEST_S)
    check_integer("--pairs", given.pairs, 2, MOST_PAIRS)
    from trainsim import Recorder

    engine = "torch" if find_spec("torch") else "python"
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stderr(StringIO()),
    ):  # what limits these loops is of no interest
        with Recorder(Path(folder) / "empty", 1) as recorder:
            empty_s = _empty_s(recorder)
        with Recorder(Path(folder) / "run", 1) as recorder:
            recorded, plain = (_of_torch if engine == "torch" else _of_python)(given.step_s)
            table = _measured(recorder, recorded, plain, given.pairs)
    found = {"engine": engine, "empty_step_s": empty_s, **_ratio(table)}
    if given.json:
        print(json.dumps(found))
    else:
        low, high = found["interval"]
        print(
            f"{engine}: a step takes {1e3 * found['plain_s']:.3f} ms of a core, recorded {1e3 * found['recorded_s']:.3f} ms: "
            f"{found['share']:+.2%} (90 % of draws {low:+.2%} to {high:+.2%}), medians of {given.pairs} pairs"
        )
        print(f"a step in which nothing is done takes {1e6 * empty_s:.1f} us, {empty_s / found['plain_s']:.2%} of that")
    return 0


def _measured(recorder: Recorder, recorded: Work, plain: Work, pairs: int) -> np.ndarray:
    """Seconds of steps that are recorded and of steps that are not, shape (pairs, 2), after some of warm-up."""
    import numpy as np

    found = []
    numbers = iter(recorder.steps(range(WARMUP + pairs + 1)))
    next(numbers)

    def step() -> None:
        recorded()  # the first forward pass shows the recorder its network
        next(numbers)

    for number in range(WARMUP + pairs):
        took_s = {}
        for work in (
            (step, plain) if number % 2 == 0 else (plain, step)
        ):  # the second finds caches as the first left them
            begun_s = time.process_time()
            work()
            took_s[work] = time.process_time() - begun_s
        found.append((took_s[step], took_s[plain]))
    return np.array(found[WARMUP:])


def _ratio(table: np.ndarray) -> dict[str, Any]:
    """The share by which a recorded step is longer than the one beside it, the median of all pairs; its interval, by a bootstrap."""
    import numpy as np

    rng = np.random.default_rng(0)
    longer = table[:, 0] / table[:, 1] - 1
    low, high = np.percentile(np.median(rng.choice(longer, size=(DRAWS, len(longer))), axis=1), LEVEL)
    recorded_s, plain_s = map(float, np.median(table, axis=0))
    share = float(np.median(longer))
    return {"recorded_s": recorded_s, "plain_s": plain_s, "share": share, "interval": (float(low), float(high))}


def _empty_s(recorder: Recorder) -> float:
    """Seconds of a step in which nothing is done, its share of the writing included."""
    begun_s = time.process_time()
    for _ in recorder.steps(range(EMPTY)):
        pass
    return (time.process_time() - begun_s) / EMPTY


def _of_python(step_s: float) -> tuple[Work, Work]:
    """Work that takes as long as a step: additions, as many as take so long now."""
    begun_s, turns = time.process_time(), 10**6
    sum(range(turns))
    turns = max(1, int(turns * step_s / (time.process_time() - begun_s)))
    return (lambda: sum(range(turns)),) * 2


def _of_torch(step_s: float) -> tuple[Work, Work]:
    """Training of two equal networks, of which one is recorded."""
    from torch import distributed, set_num_threads

    set_num_threads(1)
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    some = _network(TRIED)
    some()
    begun_s = time.process_time()
    for _ in range(WARMUP):
        some()
    batch = max(1, round(TRIED * WARMUP * step_s / (time.process_time() - begun_s)))
    return _network(batch), _network(batch)


def _network(batch: int) -> Work:
    """A step of a network of its own."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
    optimiser, x = torch.optim.SGD(model.parameters(), lr=1e-6), torch.randn(batch, 256)

    def step() -> None:
        optimiser.zero_grad()
        model(x).square().mean().backward()
        optimiser.step()

    return step


if __name__ == "__main__":
    command.run("trainsim.overhead", main)
