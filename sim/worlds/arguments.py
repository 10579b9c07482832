"""Arguments of verbs in a user's text that no world can give a meaning to: refused when the verb is called, alike in all worlds."""

from __future__ import annotations

from inspect import isgenerator
from numbers import Integral, Real

import numpy as np

from sim import collectives
from sim.base.errors import WrongText
from sim.collectives.base import DENSE
from sim.job.scenario import Scenario
from sim.protocols.horovod import ORDERS
from sim.verbs.me import GRADIENT, PARAMETERS, Layer, Note, Partition, Variable

PARTS = "Partition(index, of), Layer(variable, share) or None"
SUMMING = ("allreduce(me)", "reduce(me)", "reduce_fused(me)", "reduce_in_cycles(me)")
NO_SUMS = "workers of a master or servers sum nothing among themselves; they send their GRADIENT"
OF_ROWS = "rows of sparse variables have gradients of whole minibatches, or of partitions, alone"
MESSAGES = "GRADIENT, PARAMETERS, Note(...) or Variable(number)"


def check_arguments(name: str, given: tuple, named: dict, job: Scenario) -> None:
    """Refuse arguments of a verb; of one that is a function `name` ends with (me), and `given` begins after it.

    Raises:
        WrongText: the first that is wrong, and what is allowed.
    """
    for index, argument, wrong in ARGUMENTS.get(name, ()):
        if index < len(given) or argument in named:
            value = given[index] if index < len(given) else named[argument]
            if allowed := wrong(value, job):
                verb = name if "(" in name else f"me.{name}"
                raise WrongText(f"{verb}: {argument} {value!r}; allowed: {allowed}")
    if name in SUMMING and not job.summed:
        raise WrongText(f"{name}: {NO_SUMS}")


def _piece(piece, job: Scenario) -> str:
    if not isinstance(piece, slice) or piece.step is not None:
        return "a slice of the items that workers sum"
    whole = _is_whole(piece.start) and _is_whole(piece.stop) and 0 <= piece.start <= piece.stop <= job.summed_items + 1
    return "" if whole else f"a slice within slice(0, {job.summed_items + 1}), whose last item counts samples"


def _exchange(exchange, job: Scenario) -> str:
    if not isinstance(exchange, collectives.Exchange):
        return "an Exchange of sim.collectives.base"
    peers = [peer for peer in (exchange.to, exchange.source) if peer is not None]
    if not all(_is_whole(peer) and peer in range(job.ranks) for peer in peers):
        return f"ranks to and source from 0 to {job.ranks - 1}"
    if exchange.kind != DENSE:
        return ""
    if not job.summed and (exchange.sent_bytes or exchange.taken_bytes):
        return f"empty pieces: {NO_SUMS}"
    return _piece(exchange.sent, job) or _piece(exchange.taken, job)


def _part(part, job: Scenario) -> str:
    if isinstance(part, Layer) and job.traffic.in_parts:
        return f"Partition(index, of) or None: {OF_ROWS}"
    if isinstance(part, Partition):
        ordered = _is_whole(part.index) and not _partitions(part.of, job) and 0 <= part.index < part.of
        return "" if ordered else f"an index from 0 to of - 1, and `of` from 1 to the batch, {job.batch}"
    if isinstance(part, Layer):
        if not (_is_number(part.share) and 0 <= part.share <= 1):
            return "a share from 0 to 1"
        return "" if part.variable is None else _number(part.variable, job)
    return "" if part is None else PARTS


def _deadline(until_s, job: Scenario) -> str:
    return f"none, but me.compute(Partition(...)): {OF_ROWS}" if job.traffic.in_parts else _moment(until_s, job)


def _partitions(partitions, job: Scenario) -> str:
    counted = _is_whole(partitions) and 1 <= partitions <= job.batch
    return "" if counted else f"an integer from 1 to the batch, {job.batch}"


def _moment(until_s, job: Scenario) -> str:
    values = getattr(until_s, "values", until_s)  # of many ranks at once
    known = isinstance(values, Real | np.ndarray)
    return "" if known and not np.any(np.isnan(values)) else "seconds since the start, as me.now_s counts them"


def _seconds(cycle_s, job: Scenario) -> str:
    return "" if _is_number(cycle_s) and cycle_s >= 0 else "seconds, 0 or more"


def _message(what, job: Scenario) -> str:
    if isinstance(what, Variable):
        return _number(what.number, job)
    return "" if what is GRADIENT or what is PARAMETERS or isinstance(what, Note) else MESSAGES


def _number(number, job: Scenario) -> str:
    last = len(job.workload.variables) - 1
    return "" if _is_whole(number) and 0 <= number <= last else f"the number of a variable, from 0 to {last}"


def _is_whole(value) -> bool:
    return isinstance(value, Integral)


def _is_number(value) -> bool:
    return isinstance(value, Real)


def _text(text, job: Scenario) -> str:
    return "" if isgenerator(text) else "a text, as a verb or a method of yours gives one"


def _algorithm(algorithm, job: Scenario) -> str:
    return "" if algorithm in collectives.SETTINGS else ", ".join(collectives.SETTINGS)


def _order(order, job: Scenario) -> str:
    return "" if order in ORDERS else ", ".join(ORDERS)


ARGUMENTS = {  # of verbs: the place and the name of each that is looked at, and what says what it may be, if it is wrong
    "allreduce(me)": ((0, "algorithm", _algorithm),),
    "beside": ((0, "computing", _text), (1, "communicating", _text)),
    "compute": ((0, "part", _part),),
    "compute_until": ((0, "deadline_s", _deadline), (1, "partitions", _partitions)),
    "copy": ((0, "piece", _piece),),
    "compute_by_layer(me)": ((0, "order", _order),),
    "cycle": ((0, "cycle_s", _seconds),),
    "exchange": ((0, "exchange", _exchange),),
    "receive": ((1, "until_s", _moment),),
    "reduce(me)": ((0, "algorithm", _algorithm), (1, "piece", _piece)),
    "reduce_in_cycles(me)": ((0, "algorithm", _algorithm), (2, "cycle_s", _seconds)),
    "send": ((0, "what", _message),),
}
