"""Beyond what was measured, on published rows that were held out: what the fit of the others says of them."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from calibration.scaling import fitting
from calibration.scaling.fitting import fitted
from experiments.extrapolation import cores, horovod_page, law, links, one_host, parallax_figure, t4, tensorflow_page
from experiments.extrapolation.held import Held, mean_error
from sim.answers import extrapolation
from sim.answers.ignorance import CORE, HOST, LAW
from sim.platform import named_links
from sim.platform.named_links import LINK, LOCAL


@pytest.mark.parametrize(
    ("name", "up_to", "most"),
    [("bert", 3, 0.08), ("imagenet", 3, 0.06), ("cifar10", 4, 0.11), ("deepspeech2", 4, 0.08)],
)
def test_few_hosts_predict_many(name, up_to, most):
    """And 1.2 times as well as by "nothing changes"."""
    rows = split(name, f"1 to {up_to} hosts, then more")
    assert len(rows) > 100
    assert mean_error(rows) < most
    assert mean_error(rows, "trivial_s") > 1.2 * mean_error(rows)


@pytest.mark.parametrize("name", ["bert", "imagenet"])
def test_two_hosts_predict_many_where_both_ways_are_known(name, monkeypatch):
    """A byte takes 1.5 times as long on two hosts of this cluster, unlike on others. The product does not know; its intervals hold them."""
    which = "1 to 2 hosts, then more"
    assert np.mean([law.covers(row, LAW) for row in split(name, which)]) > 0.85
    monkeypatch.setattr(fitting, "BOTH_WAYS", 1.5)
    rows = [row for row in t4.held_out() if (row.source, row.split) == (f"T4, {name}", which)]
    assert mean_error(rows) < min(0.15, 0.9 * mean_error(split(name, which)))


@cache
def t4_rows() -> list[Held]:
    return list(t4.held_out())


def split(name: str, which: str) -> list[Held]:
    return [row for row in t4_rows() if row.source == f"T4, {name}" and row.split == which]


def test_a_round_that_may_cost_milliseconds_does_not_predict_many(monkeypatch):
    """The negative control, DeepSpeech2 from 4 hosts: the fit takes a cost of a host's GPUs for one of rounds, which grow with ranks."""
    from calibration.scaling import steps

    rows = t4.table("deepspeech2")
    seen, more = rows.where(rows.hosts <= 4), rows.where(rows.hosts > 4)
    monkeypatch.setattr(fitting, "MOST_ROUND_S", 1e-2)
    monkeypatch.setattr(fitting, "ROUND_SPREAD_S", 1.0)
    monkeypatch.setattr(fitting, "CONTENTION_SPREAD", 1e-6)
    monkeypatch.setattr(steps, "TREE_S", 1.0)
    found = t4.fitted("deepspeech2", seen)
    assert found.round_s > 3e-4
    assert np.abs(found.step_s(more) / more.step_s - 1).mean() > 0.12


def test_the_slowest_of_many_links_is_slower():
    """CIFAR-10 from 4 hosts to 12 and 16; with links that are alike they are not met: the negative control."""
    rows = t4.table("cifar10")
    seen, more = rows.where(rows.hosts <= 4), rows.where(rows.hosts >= 12)
    found = t4.fitted("cifar10", seen)
    alike = fitted(seen, replace(found, uneven=0.0))
    off, before = (np.log(one.step_s(more) / more.step_s).mean() for one in (found, alike))
    assert found.uneven > 0.05
    assert abs(off) < 0.85 * abs(before)


def test_a_byte_takes_as_long_whatever_the_model():
    """Three models of the same hosts, fitted apart; of DeepSpeech2 the number of parameters is not published."""
    found = [t4.byte_s(name, 4) for name in t4.ZOO]
    assert max(found) / min(found) < 1.25


@pytest.mark.parametrize("name", t4.MODELS)
def test_intervals_of_the_product_cover_the_t4_rows(name):
    """The law as sim.answers has it, learned from these tables and the others."""
    rows = [row for row in t4_rows() if row.source == f"T4, {name}"]
    assert np.mean([law.covers(row, LAW) for row in rows]) > 0.85


def test_tensorflow_s_page_by_another_model(monkeypatch):
    """Constant costs of a step; in proportion to computing they are not: the negative control."""
    monkeypatch.setattr(links, "elsewhere", lambda _: 0.0)  # of rows by size, which are not asked for here
    rows = [row for row in tensorflow_page.held_out() if row.split.endswith("inception_v3, then resnet50")]
    several = [row for row in rows if row.split.startswith("several hosts")]
    assert (len(rows), len(several)) == (32, 8)
    assert mean_error(rows) < 0.05
    assert max(abs(row.predicted_s / row.measured_s - 1) for row in several) < 0.12
    page = tensorflow_page.rows(tensorflow_page.SEVERAL_HOSTS, tensorflow_page.GPUS_OF_HOSTS)
    share = np.mean([row.step_s / row.single_s - 1 for row in page if row.model == "inception_v3"])
    of_share = [row.single_s * (1 + share) / row.step_s - 1 for row in page if row.model == "resnet50"]
    assert np.mean(np.abs(of_share)) > 1.3 * mean_error(several)


def test_fitted_rows_are_off_by_themselves_too(monkeypatch):
    """VGG-16, two thirds messages, from models of a tenth; if their rows are known to their noise alone, it is outside: the control."""

    def vgg16() -> Held:
        return next(row for row in horovod_page.held_out() if row.row == "TCP, NCCL, vgg16")

    known = vgg16()
    assert law.covers(known, LAW)
    monkeypatch.setattr(horovod_page, "OTHERS", (0.0, 0.0))
    alone = vgg16()
    assert not law.covers(alone, LAW)
    assert abs(math.log(known.measured_s / known.predicted_s)) < abs(math.log(alone.measured_s / alone.predicted_s))


def test_a_link_by_name_and_an_unknown_algorithm_hold_horovod_s_page():
    """And the ring alone on the wire holds none: the negative control."""
    known = horovod_page.links.Links(LINK.mean, LINK.deviation)
    found = list(horovod_page.unmeasured())
    assert [held(row, known) for row in found] == [True] * 12
    ring = [row._replace(said_s=row.said_s[:1]) for row in found]
    assert not any(held(row, horovod_page.links.Links(0.0, 1e-9)) for row in ring)
    assert math.isclose(horovod_page.port_bytes("ring", 16, 4), 1.875)


@pytest.mark.slow
def test_they_hold_parallax_s_figure():
    """The error of reading the figure is in the interval; without the link's own, sparse rows are outside: the negative control."""
    found = list(parallax_figure.unmeasured())
    assert [held(row, horovod_page.links.Links(LINK.mean, LINK.deviation)) for row in found] == [True] * 8
    by_wire = [held(row, horovod_page.links.Links(0.0, 1e-9)) for row in found if row.row.startswith("lm1b")]
    assert by_wire == [False] * 3


@pytest.mark.slow
def test_one_host_is_held_from_the_step_of_one_gpu(monkeypatch):
    """Gavel's V100, of which half of the rows were in no choice; with links and hosts as named a few: the control.

    Its link is not published. As if it were PCIe two rows of three are held, and the others are faster; as if it were NVLink, whose rate is
    known, as many: small models take half as long again as what links explain.
    """
    found = one_host.answers()
    for link in (one_host.PCIE, one_host.NVLINK):
        of = [one for one in found if one.pair.source.startswith(f"Gavel, V100, as if {link}")]
        assert len(of) == 57
        assert np.mean([one.held for one in of]) >= 0.6
    assert all(one.held for one in found if not one.pair.source.startswith("Gavel"))
    hosts, within = one_host.learned(found), links.learned(one_host.links())
    assert pytest.approx(hosts, abs=0.01) == HOST
    assert pytest.approx(within, abs=0.01) == LOCAL
    some = [one.pair for one in found if one.pair.model == "resnet50" and one.pair.source.startswith("Gavel")][::6]
    monkeypatch.setattr(extrapolation, "HOST", HOST._replace(mean=0.0, deviation=0.0))
    monkeypatch.setattr(named_links, "within", lambda link: LOCAL._replace(mean=0.0, deviation=0.0))
    assert np.mean([one_host.asked(pair).held for pair in some]) < 0.3


def held(row, known) -> bool:
    low, high = law.of_candidates(row, known)
    return low <= row.measured_s <= high


def test_a_nominal_core_is_as_far_off_as_the_product_says():
    assert CORE.deviation == pytest.approx(cores.spread(), abs=0.01)
    assert all(1 < times < CORE.at(1) for times in cores.times().values())
