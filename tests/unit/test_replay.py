"""A trace says all that is needed to run its job again: from scenario to header, through a file, and back."""

import json
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from law_examples import EVERY

from sim import stragglers
from sim.base.errors import WrongSetting
from sim.job import replay
from sim.job.header import Header
from sim.job.replay import header as checked
from sim.job.scenario import Scenario
from sim.laws import Constant, Empirical, FoldedMixture, LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.variable_placement import STRATEGIES
from sim.platform.cluster import Cluster, Host
from sim.protocols import PROTOCOLS
from sim.texts import FixedMinibatch


@dataclass(frozen=True)
class OwnProtocol(FixedMinibatch):
    """A user's, with settings of every kind."""

    name = "own"
    seconds_s: float = 0.1
    count: int = 1
    called: str = "x=y"
    really: bool = False


CLUSTER = Cluster(hosts=(Host(count=9, cores=4),))
FINITE = st.floats(0, 1e3)
LAWS = st.one_of(
    st.builds(Constant, value=FINITE),
    st.builds(LogNormal, mean=st.floats(1e-3, 1e3), cv=st.floats(0, 100)),
    st.builds(Empirical, values=st.lists(FINITE, min_size=2, max_size=4).map(tuple)),
    st.sampled_from([one for one in EVERY.values() if one.kind != "slow-ranks"]),
    st.sampled_from([stragglers.read(name) for name in ("none", "niagara", "cedar", "niagara*0.02")]),
)
OWN_MODEL = workload.Workload(
    name="mine", variables=[{"name": "w", "shape": (40, 3)}], costs={"compute": {"base_s": 0.1, "slope_s": 1e-3}}
)
LAYERED = workload.Workload(
    name="layers", parameters="1.2 k", layers=5, precision="fp16", step={"time": "2 ms", "batch": 32}
)
NOT_THE_ZOOS = workload.NAMED["mlp"].model_copy(update={"batch": 7})
COSTS = {"costs": Costs(compute=Line(base_s=1e-3))}
COPIES = [workload.NAMED["mlp"].model_copy(update=changed) for changed in (COSTS, {"flops_per_sample": 1e9})]
MODELS = st.sampled_from(
    [workload.NAMED[name] for name in ("mlp", "lstm_lm", "resnet18")] + [OWN_MODEL, LAYERED, NOT_THE_ZOOS, *COPIES]
)
OWN = st.builds(
    OwnProtocol, seconds_s=FINITE, count=st.integers(-9, 9), called=st.text(max_size=5), really=st.booleans()
)

# How each field of a scenario is drawn. A field without an entry here fails the test: it says what it may be.
DRAWN = {
    "protocol": st.one_of(st.sampled_from([kind() for kind in PROTOCOLS.values()]), OWN),
    "workload": MODELS,
    "workers": st.integers(1, 4),
    "steps": st.integers(1, 10**9),
    "warmup": st.integers(0, 10**9),
    "batch": st.integers(64, 4096),
    "cluster": st.just(CLUSTER),
    "stragglers": LAWS,
    "stragglers_name": st.text(max_size=9),
    "seed": st.integers(0, 2**63),
    "test_size": st.integers(0, 999),
    "evaluate_every": st.integers(1, 999),
    "sleeps_of": st.none() | st.integers(0, 99),
    "servers": st.integers(1, 3),
    "placement": st.sampled_from(sorted(STRATEGIES)),
    "variable_partitions": st.integers(1, 4),
    "servers_on": st.sampled_from(["own", "workers"]),
}


def scenarios():
    """Those that are allowed."""

    def allowed(drawn):
        try:
            return Scenario(**drawn)
        except WrongSetting:
            return None

    return st.fixed_dictionaries({one.name: DRAWN[one.name] for one in fields(Scenario)}).map(allowed).filter(bool)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(scenarios())
def test_what_a_header_says_is_the_scenario(scenario):
    """Field by field, through a file's JSON; the cluster is given, because a profile takes its place."""
    again = replay.scenario_of(checked(scenario.header("event").text(), "x"), scenario.cluster)
    for one in fields(Scenario):
        assert getattr(again, one.name) == getattr(scenario, one.name), one.name
    assert again == scenario


BASE = Scenario(FixedMinibatch(), workload.NAMED["mlp"])


def test_every_field_is_drawn_other_than_it_is_by_default():
    """Or the property above would hold of a header without it."""
    names, found = {one.name for one in fields(Scenario)}, set()

    def all_found(drawn):
        found.update(name for name in names if getattr(drawn, name) != getattr(BASE, name))
        return found == names

    find(scenarios(), all_found, settings=settings(phases=[Phase.generate], max_examples=3000, deadline=None))


@pytest.mark.parametrize("model", [*COPIES, OWN_MODEL.model_copy(update=COSTS), LAYERED.model_copy(update=COSTS)])
def test_a_copy_of_a_model_has_the_costs_that_it_was_given(model):
    """A trace of it can be read, whatever would follow from the model's other fields."""
    job = Scenario(FixedMinibatch(), model)
    again = replay.scenario_of(checked(job.header("event").text(), "x"), job.cluster)
    assert (again.workload.costs, again.workload.variables) == (model.costs, model.variables)


def test_another_model_of_the_same_name_is_refused():
    """A zoo that has been made anew."""
    old = replace(Scenario(FixedMinibatch(), workload.NAMED["mlp"]).header("event"), digest="0" * 16)
    with pytest.raises(WrongSetting, match="another model now"):
        replay.scenario_of(old)


def test_a_digest_is_of_what_is_trained_and_of_no_defaults():
    """Nor of nominal costs, which are a guess."""
    model = workload.NAMED["mlp"]
    plain = json.loads(json.dumps(model.model_dump(by_alias=True, exclude_unset=True)))
    assert replay.digest(workload.Workload(**plain)) == replay.digest(workload.Workload(**plain, inputs="pictures"))
    assert len({replay.digest(m) for m in (model, NOT_THE_ZOOS, OWN_MODEL, workload.NAMED["toy_fc"])}) == 4


HEAD = Scenario(FixedMinibatch(), OWN_MODEL, stragglers=stragglers.read("niagara")).header("mpi")
ODD = [None, [], {}, "", "../../etc/passwd", -5, 1.5, True, 10**400, float("nan"), float("inf"), [1], {"a": 1}]


def damaged(field, value):
    return json.dumps(json.loads(HEAD.text()) | {field: value})


@pytest.mark.parametrize("field", [one.name for one in fields(Header) if one.name not in ("details", "cluster")])
def test_a_header_that_is_no_header_is_refused_in_one_line(field):
    """Or it is read, and is the same when it is written."""
    for value in ODD:
        text = damaged(field, value)
        with suppress(WrongSetting):
            assert json.loads(checked(text, "x.parquet").text())[field] == value
            continue
        with pytest.raises(WrongSetting, match=r"^[^\n]*x\.parquet[^\n]*$"):
            checked(text, "x.parquet")


@pytest.mark.parametrize("text", ["", "null", "[]", "3", "{}", '"x"', "[" * 9999, '{"schema": "trace/2"}', "\0"])
def test_what_is_no_header(text):
    with pytest.raises(WrongSetting):
        checked(text, "x.parquet")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hosts", [["a", 1]]),
        ("hosts", [["a", 0]] * 4),
        ("cpu_s", {"4": 1.0}),
        ("cpu_s", {"x": 1.0}),
        ("cpu_s", {"0": -1.0}),
        ("updates_per_step", 4),
        ("law", {"kind": "constant"}),
        ("law", {"kind": "folded-mixture", "components": [{"mean_s": 1, "std_s": 1, "weight": 0.5}]}),
        ("model", {"name": "mine"}),
        ("training", {"data": "digits"}),
        ("workload", "mlp"),
        ("digest", "0"),
    ],
)
def test_what_no_run_can_have(field, value):
    with pytest.raises(WrongSetting):
        checked(damaged(field, value), "x.parquet")


def test_a_law_from_a_file_is_kept(tmp_path):
    """Under the name of a file that may have gone."""
    path = Path(tmp_path / "law.toml")
    path.write_text("[[components]]\nmean_s = 1\nstd_s = 0\nweight = 1\n")
    job = Scenario(FixedMinibatch(), OWN_MODEL, stragglers=stragglers.read(str(path)), stragglers_name=str(path))
    path.unlink()
    again = replay.scenario_of(checked(job.header("event").text(), "x"))
    assert again.stragglers == FoldedMixture(components=[{"mean_s": 1, "std_s": 0, "weight": 1}])
    assert again.stragglers_name == str(path)
