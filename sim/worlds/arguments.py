"""Arguments of a user's text that no world can give a meaning to: refused when the primitive is called, alike in all worlds."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

from sim.base.errors import WrongText
from sim.job.scenario import Scenario
from sim.verbs.me import Gradient, Layer, Note, Parameters, Partition, Variable

PARTS = "Partition(index, of), Layer(variable, share) or None"
MESSAGES = "GRADIENT, PARAMETERS, Note(...) or Variable(number)"


def check_arguments(name: str, given: tuple, named: dict, job: Scenario) -> None:
    """Refuse arguments of a primitive.

    Raises:
        WrongText: the first that is wrong, and what is allowed.
    """
    for index, argument, wrong in ARGUMENTS.get(name, ()):
        if index < len(given) or argument in named:
            value = given[index] if index < len(given) else named[argument]
            if allowed := wrong(value, job):
                raise WrongText(f"me.{name}: {argument} {value!r}; allowed: {allowed}")


def _part(part, job: Scenario) -> str:
    if isinstance(part, Partition):
        ordered = isinstance(part.index, Integral) and not _partitions(part.of, job) and 0 <= part.index < part.of
        return "" if ordered else f"an index from 0 to of - 1, and `of` from 1 to the batch, {job.batch}"
    if isinstance(part, Layer):
        if not (isinstance(part.share, Real) and 0 <= part.share <= 1):
            return "a share from 0 to 1"
        return "" if part.variable is None else _number(part.variable, job)
    return "" if part is None else PARTS


def _partitions(partitions, job: Scenario) -> str:
    counted = isinstance(partitions, Integral) and 1 <= partitions <= job.batch
    return "" if counted else f"an integer from 1 to the batch, {job.batch}"


def _moment(until_s, job: Scenario) -> str:
    values = getattr(until_s, "values", until_s)  # of many ranks at once
    known = isinstance(values, Real | np.ndarray)
    return "" if known and not np.any(np.isnan(values)) else "seconds since the start, as me.now_s counts them"


def _seconds(cycle_s, job: Scenario) -> str:
    return "" if isinstance(cycle_s, Real) and cycle_s >= 0 else "seconds, 0 or more"


def _message(what, job: Scenario) -> str:
    if isinstance(what, Variable):
        return _number(what.number, job)
    return "" if isinstance(what, Gradient | Parameters | Note) else MESSAGES


def _number(number, job: Scenario) -> str:
    last = len(job.workload.variables) - 1
    return "" if isinstance(number, Integral) and 0 <= number <= last else f"the number of a variable, from 0 to {last}"


ARGUMENTS = {  # of primitives: the place and the name of each that is looked at, and what says what it may be, if it is wrong
    "compute": ((0, "part", _part),),
    "compute_until": ((0, "deadline_s", _moment), (1, "partitions", _partitions)),
    "cycle": ((0, "cycle_s", _seconds),),
    "receive": ((1, "until_s", _moment),),
    "send": ((0, "what", _message),),
}
