"""Logs that frameworks print: seconds of a step, or a rate, by a table of patterns.

A rate of steps tells their seconds. One of samples or tokens needs how many of them a step has, of a rank or of all ranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibration.importers import logs
from calibration.importers.about import About
from calibration.importers.table_names import RANK, STEP
from sim.base.errors import WrongSetting
from sim.model import workload as workloads

if TYPE_CHECKING:
    import pandas as pd

OPTION = "--items-per-step"
SAMPLES, TOKENS, STEPS = "samples", "tokens", "steps"  # what a rate counts
OF_RANK, OF_ALL, OF_ONE = "of a rank", "of all ranks", "of the process that prints it"
LEAST_LINES = 2
BARE = r"(?P<value>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d+)?)"
N, IS, UNIT = r"['\"]?" + BARE, r"['\"]?\s*[:=]\s*['\"]?" + BARE, r"\s*(?P<unit>ms|s)"
UNITS_S = {"": 1e-3, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, None: 1.0}
EACH = r"(?:steps?|it|its|iters?|iterations?|batch|batches|updates?)"
ITEMS, TOKEN = r"(?:samples|images|imgs?|examples|sequences|sentences|records)", r"(?:tokens?|toks?|words)"
A_SECOND = r"(?:\s*/\s*s(?:ec(?:ond)?)?|[\s_]+per[\s_]+sec(?:ond)?)(?![a-z])"
PER_GPU = r"(?P<of_rank>[\s_]*(?:per|/)[\s_]*(?:GPU|device|chip|TPU|CPU|rank)(?![a-z]))?"


class Pattern(NamedTuple):
    """What a line says of steps.

    Args:
        regex: finds `value`; `unit` of a time; `of_rank` where a rate is of one rank.
        counts: what a rate counts; None of a time.
        of: whose a rate is, where the line does not say it is a rank's.
        elapsed: whether times are since a start.
        smoothed: whether each value is a mean of many steps before it.
        numbered: whether a line without a step's number is another one, such as an epoch's.
    """

    regex: re.Pattern[str]
    counts: str | None = None
    of: str = OF_ONE
    elapsed: bool = False
    smoothed: bool = False
    numbered: bool = False


def _of(regex: str, *args, **further) -> Pattern:
    return Pattern(re.compile(regex, re.IGNORECASE), *args, **further)


PATTERNS = (  # the first that two lines have; those of progress bars, which checkpoints and data have too, last
    _of(rf"elapsed time per iteration \((?P<unit>ms|s)\){IS}"),  # Megatron-LM, GPT-NeoX
    _of(rf"train_step_timing in (?P<unit>s){IS}"),  # NeMo
    _of(rf"completed step: \d+, seconds{IS}"),  # MaxText
    _of(rf"avg_batch_cost{IS}"),  # Paddle
    _of(rf"\b(?:train_)?step_time(?:\", \"value\")?{IS}{UNIT}?\b"),
    _of(rf"train_time{IS}{UNIT}\b", elapsed=True),  # modded-nanoGPT
    _of(rf"\belapsed time = {N} \((?P<unit>s)\)", elapsed=True),
    _of(rf"\"throughput\"\s*[:,]\s*(?:\"value\":\s*)?{N}", SAMPLES, OF_ALL),  # MLPerf
    _of(rf":::MLLOG.*?\"time_ms(?P<unit>(?=\")){IS}.*\"(?:step|step_num|iteration)\"", elapsed=True),
    _of(rf"(?<!Avg)(?:Curr)?SamplesPerSec={N}", SAMPLES, OF_ALL),  # DeepSpeed
    _of(rf"(?:train_speed\(iter/s\)|train_steps_per_second|batches_per_sec\w*|\bups){IS}", STEPS),  # Trainer, fairseq
    _of(rf"\b(?:global_)?{EACH}/s(?:ec)?\b{IS}", STEPS),  # TensorFlow's estimators
    _of(rf"(?:^|[,|{{;]\s*|\s\s|\t|- )\"?time\"?\s*[:=]?\s*{N}{UNIT}?\b", numbered=True),  # mmdetection, torchvision
    _of(rf"\b(?:batch|step|iter(?:ation)?)[ _]time\s*[:=]?\s*{N}{UNIT}?\b"),
    _of(rf"\bdt\s*[:=]?\s*{N}{UNIT}\b"),  # build-nanogpt
    _of(rf"\|\s*{N}\s*(?P<unit>ms)\s*\|"),  # llm.c
    _of(rf"\btps{IS}", TOKENS, OF_RANK),  # torchtitan
    _of(rf"\b(?:images/sec|img/s|samples?(?:/sec|/s| per second)){IS} \+/-", SAMPLES, smoothed=True),  # TensorFlow's
    _of(rf"\b{ITEMS}{A_SECOND}{PER_GPU}{IS}", SAMPLES),
    _of(rf"\bSpeed{IS}\s*{ITEMS}{A_SECOND}{PER_GPU}", SAMPLES),  # MXNet
    _of(rf"{BARE}\s*(?P<unit>us|ms|sec|s)/{EACH}\b", smoothed=True),  # Keras, DLRM, tqdm, TensorFlow
    _of(rf"{BARE}\s*{EACH}{A_SECOND}", STEPS, smoothed=True),  # tqdm, Lightning
    _of(rf"{BARE}\s*{ITEMS}{A_SECOND}{PER_GPU}", SAMPLES),  # Horovod's examples
    _of(rf"\b{TOKEN}{A_SECOND}{PER_GPU}{IS}", TOKENS),
    _of(rf"\bwps{IS}", TOKENS, OF_ALL),  # fairseq
    _of(rf"{BARE}\s*{TOKEN}{A_SECOND}{PER_GPU}", TOKENS),
)
NO_STEP = re.compile(
    r"\"mode\": \"val\"|^\W*(?:valid|eval|test|sanity|predict|loading|map\b|total )|\bvalidation dataloader|\bvalid on\b",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"global[_ ]step\D{0,15}(\d+)|\"(?:step|step_num|iteration|iter)\":\s*(\d+)|\b(?:step|iteration|iter|it|update|batch)\b\W{0,6}(\d+)"
    r"|(?<!epoch )\[\s*(\d+)\s*/\s*\d+\s*[\](]|\b(\d+)/\d+\s+[\[-]|^\s*(\d+)\s",
    re.IGNORECASE,
)
WHAT = "Megatron, DeepSpeed, Trainer, torchtitan, NeMo, MaxText, Keras, Lightning, tf_cnn_benchmarks, MXNet, mmdetection, fairseq, MLPerf"


class _Line(NamedTuple):
    rank: str
    step: int | None
    found: re.Match[str]

    @property
    def value(self) -> float:
        return float(self.found["value"].replace(",", ""))


def table_of(lines: Sequence[str], about: About, path: str) -> tuple[pd.DataFrame, list[str]] | None:
    """Seconds of each logged step, by step and rank, and notes; None if no line is a framework's.

    Args:
        about: samples of a rank and step, ranks, and items that a rate counts in a step.

    Raises:
        WrongSetting: a rate of which nothing says how many items a step has.
    """
    import pandas as pd

    said = [line for line in lines if line.strip() and not NO_STEP.search(logs.without_speaker(line))]
    for pattern in PATTERNS:
        found = [
            _Line(logs.speaker(line), _number(line), match) for line in said if (match := pattern.regex.search(line))
        ]
        found = [one for one in found if one.value > 0 and not (pattern.numbered and one.step is None)]
        if len(found) >= LEAST_LINES:
            break
    else:
        return None
    found, notes = _of_ranks(found)
    values = np.array([one.value for one in found])
    if pattern.counts:
        items, of_rate = _items(pattern, found, values, about, path)
        seconds, notes = items / values, [*notes, *of_rate]
    else:
        units = [one.found.groupdict().get("unit") for one in found]
        seconds = values * [UNITS_S[unit and unit.lower()] for unit in units]
    order = np.unique([one.rank for one in found], return_inverse=True)[1]
    steps = pd.Series(order).groupby(order).cumcount().to_numpy()
    table = pd.DataFrame({STEP: steps, RANK: order, ("elapsed_s" if pattern.elapsed else "step_s"): seconds})
    numbers = np.array([np.nan if one.step is None else one.step for one in found])
    between = np.diff(numbers[order == 0])
    every = int(np.median(between[between > 0])) if (between > 0).any() else 1
    if pattern.elapsed and every > 0 and not np.isnan(numbers).any():
        table[STEP] = numbers
    head = found[0].found[0].strip(" ,|{\t")[:60]
    notes.insert(0, f"{len(found)} of {len(lines)} lines read, as {head!r}")
    if pattern.smoothed or (every > 1 and not pattern.elapsed):
        logged = f"every {every}th step was logged, as a mean of its interval or alone"
        notes.append(
            f"{'each is a mean of many steps' if pattern.smoothed else logged}: how single steps vary is not known"
        )
    return table, notes


def _number(line: str) -> int | None:
    found = NUMBER.search(logs.without_speaker(line))
    return int(next(one for one in found.groups() if one)[:15]) if found else None


def _of_ranks(found: list[_Line]) -> tuple[list[_Line], list[str]]:
    """The lines of all ranks, if a launcher says whose each is and they have as many; or else those of the rank that has most."""
    counts = {rank: sum(one.rank == rank for one in found) for rank in dict.fromkeys(one.rank for one in found)}
    if len(set(counts.values())) == 1:
        return found, []
    most = max(counts, key=lambda rank: counts[rank])
    return [one for one in found if one.rank == most], [
        f"lines of rank {most or 'none'} alone: ranks logged {counts} lines"
    ]


def _items(
    pattern: Pattern, found: Sequence[_Line], rates: np.ndarray, about: About, path: str
) -> tuple[float, list[str]]:
    """What a rate counts in a step.

    Raises:
        WrongSetting: nothing says it.
    """
    if pattern.counts == STEPS:
        return 1.0, []
    of = OF_RANK if found[0].found.groupdict().get("of_rank") else pattern.of
    rate = f"{np.median(rates):,.6g} {pattern.counts} a second {of}"
    if about.items is not None:
        return about.items, [f"{rate}, of which a step has {about.items:,}, as {OPTION} says"]
    printing = len({one.rank for one in found})
    ranks = about.ranks or printing
    if pattern.counts == SAMPLES and (of != OF_ONE or ranks == printing):
        items = about.batch_of(workloads.read(about.workload)) * (ranks if of == OF_ALL else 1)
        return items, [f"{rate}, of which a step has {items:,}: --batch{' times --ranks' * (of == OF_ALL)}"]
    raise WrongSetting(OPTION, None, f"{pattern.counts} of a step, {of}: {path} has a rate, {rate}")
