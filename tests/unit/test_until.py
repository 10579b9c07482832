"""A plan for an accuracy: work is the law's, chances are the closed form, and the best are those of simulating everything."""

import math
from contextlib import nullcontext

import pytest
from scipy.special import ndtr
from test_commands import refused
from test_plan import WITHIN_S, own_clock

from sim import protocols
from sim.base.errors import WrongSetting
from sim.efficiency import published
from sim.efficiency.law import Steps
from sim.plans import plan, question, search, simulating, until
from sim.plans.candidates import WHOLE, Figures
from sim.plans.configurations import Room
from sim.sweeps import pools

pytestmark = pytest.mark.slow

Z90 = 1.6448536269514722
ASKED = {"workload": "toy_fc", "protocols": ["allreduce", "fmb"], "hosts": ["p3.2xlarge"], "counts": [2, 4]}
ASKED |= {"batches": [64, 256, 1024], "deadline": "2 h", "probability": 0.8, "keep": 3}
S_MIN, B_CRIT = 200_000, 1000.0


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("until") / "steps.csv"
    rows = [f"{batch},{S_MIN * (1 + B_CRIT / batch)!r}" for batch in (128, 256, 512, 1024)]
    path.write_text("\n".join(["batch,steps", *rows]) + "\n")
    return str(path)


def planned(table: str, **further) -> plan.Plan:
    with own_clock():
        return plan.answer(question.read(None, ASKED | {"until": table} | further), pools.of_size(1), WITHIN_S)


@pytest.fixture(scope="module")
def usual(table) -> plan.Plan:
    return planned(table)


def test_rows_have_the_work_of_their_global_batch(usual):
    assert usual.met
    for row in usual.as_json()["rows"]:
        batch = row["workers"] * row["batch"]
        assert row["work"]["global_batch"] == batch
        assert row["work"]["steps"]["mid"] == pytest.approx(S_MIN * (1 + B_CRIT / batch), rel=1e-4)
        samples = batch * row["work"]["steps"]["mid"]
        assert row["hours"] == pytest.approx(samples / row["samples_per_s"]["mid"] / 3600)
        assert row["usd"] == pytest.approx(row["hours"] * row["usd_per_hour"])
        assert row["needed_samples_per_s"] == pytest.approx(samples / 7200)


def test_both_spreads_make_the_chance(usual):
    for one in usual.simulated:
        mid, needed = one.figures.mid, one.needed
        side = mid / one.figures.low if mid >= needed else one.figures.high / mid
        steps = one.work.steps
        spread = math.hypot(math.log(side), math.log(steps.high / steps.median)) / Z90
        assert one.chance == pytest.approx(float(ndtr(math.log(mid / needed) / spread)), abs=1e-9)


def test_unknown_steps_make_a_certain_speed_uncertain():
    sure = Figures(100.0, 100.0, 100.0)
    assert (sure.chance(90.0), sure.chance(110.0)) == (1.0, 0.0)
    error = until.Work(8, Steps(100.0, 100 / 1.5, 150.0), 0.0).error
    assert sure.chance(100 / 1.5, error) == pytest.approx(0.95)
    assert sure.chance(150.0, error) == pytest.approx(0.05)


def test_the_best_are_those_of_simulating_everything(usual):
    found, _ = search.screened(usual.room)
    with own_clock(), pools.of_size(1) as pool:
        simulating.Simulating(usual.room, pool, WITHIN_S, math.inf).simulate(found, WHOLE)
    meeting = [one for one in found if one.meets]
    wanted = sorted(meeting, key=lambda one: one.key)[: usual.question.keep]
    assert [one.configuration for one in usual.best] == [one.configuration for one in wanted]
    assert 0 < len(meeting) < len(found)


def test_a_small_batch_may_meet_what_a_large_one_misses(tmp_path):
    """Where steps stay the same, a large batch takes longer; with a number of samples it never does."""
    flat = tmp_path / "flat.csv"
    flat.write_text("batch,steps\n128,200000\n512,200000\n2048,200000\n")
    everything = planned(str(flat), counts=[2], batches=[64, 16384], protocols=["fmb"], deadline="200 h")
    hours = {row["batch"]: row["hours"] for row in everything.as_json()["rows"]}
    assert hours[64] < 0.7 * hours[16384]
    deadline = f"{hours[64] * 0.3 + hours[16384] * 0.7} h"
    found = planned(str(flat), counts=[2], batches=[64, 16384], protocols=["fmb"], deadline=deadline, probability=0.5)
    assert found.met
    assert [one.configuration.batch for one in found.best] == [64]


def test_a_batch_beyond_the_table_is_said_to_be(table):
    beyond = planned(table, counts=[4], batches=[1024])
    assert beyond.best[0].work.beyond == 2
    (note,) = [line for line in beyond.as_json()["notes"] if "extrapolated" in line]
    assert "batches of 128 to 1,024, and the first has 4,096" in note


def test_money_limits_it_too(table, usual):
    dearest = max(row["usd"] for row in usual.as_json()["best"])
    found = planned(table, budget=4 * dearest, deadline=None)
    assert found.met
    assert all(row["usd"] <= 4 * dearest for row in found.as_json()["best"])
    assert not planned(table, budget=0.1 * dearest).met


def test_updates_of_backup_workers_have_fewer_gradients(table):
    room = Room(question.read(None, ASKED | {"until": table, "protocols": ["ps-backup"], "counts": [4]}))
    job = room.scenario(room.all[0])
    assert until.Work.of(job, room.until).batch == (job.workers - 1) * job.batch


@pytest.mark.parametrize("name", protocols.PROTOCOLS)
def test_protocols_without_a_fixed_batch_on_newest_parameters_are_refused(name):
    stale = ("ps-async", "ps-ssp", "kbatch-async", "local-sgd", "d-psgd")  # named, or nothing would check texts
    says = "batch differs" if name in ("amb", "amb-dg") else "older parameters" if name in stale else ""
    with pytest.raises(WrongSetting, match=f"{says}.*trainsim learn") if says else nullcontext():
        until.check(protocols.make(name))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--until", "TABLE"], "deadline"),
        (["--until", "TABLE", "--deadline", "1 h", "--samples", 5], "samples"),
        (["--until", "TABLE", "--deadline", "1 h", "--samples-per-s", 5], "samples_per_s"),
        (["--until", "nowhere.csv", "--deadline", "1 h"], "--until: given 'nowhere.csv'"),
        (["--until", "TABLE.txt", "--deadline", "1 h"], "--until"),
        (["--until", "TABLE", "--deadline", "1 h", "--protocols", "ps-async"], "trainsim learn"),
    ],
)
def test_wrong_questions_are_one_line(here, table, options, said):
    words = [str(word).replace("TABLE", table) for word in options]
    assert said in refused(here("sim.plan", "--hosts", "p3.2xlarge", *words))


def test_a_published_target_is_asked_for_by_name(here):
    """The steps of the plan are the law's, and the line says whose they are."""
    asked = ("--until", "accuracy=0.755", "--deadline", "40 h", "--hosts", "p3.8xlarge", "--counts", "4", "--batches", "64",
             "--protocols", "allreduce", "--processes", 1)  # fmt: skip
    done = here("sim.plan", "--workload", "resnet50", *asked)
    assert done.returncode == 0, done.stderr
    assert "for accuracy 0.755 in 40 h 0 min" in done.stdout
    steps = published.read("resnet50", "accuracy=0.755", "--until").steps(1024).median
    assert f"{steps:,.0f}" in done.stdout
    assert "steps are of published runs" in " ".join(done.stdout.split())
    assert "steps.csv" in refused(here("sim.plan", "--workload", "vgg16", *asked))
    assert "0.759 of resnet50" in refused(
        here("sim.plan", "--workload", "resnet50", "--until", "accuracy=0.99", *asked[2:])
    )
