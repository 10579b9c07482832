"""Placement by TensorFlow's rules: what lies where, and that nothing is lost."""

import re

import event
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim import protocols
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import variable_placement as placement
from sim.model import workload
from sim.model.workload import HEADER_BYTES, NAMED, Variable, Workload
from sim.simulation import simulate

# Two layers with batch normalisation, and one without.
NORMALISED = [
    Variable(name=f"{layer}/{name}", shape=(size,), trained=trained)
    for layer in ("a", "b")
    for name, size, trained in (("kernel", 900, True), ("beta", 30, True), ("mean", 30, False), ("variance", 30, False))
] + [Variable(name="c/kernel", shape=(600,)), Variable(name="c/bias", shape=(20,))]


def variables(*sizes):
    return [Variable(name=f"v{i}", shape=(size,)) for i, size in enumerate(sizes)]


def server_bytes(held, servers, strategy="round-robin"):
    pieces = placement.server_slices(tuple(held), servers, strategy, 1)
    return [HEADER_BYTES + 4 * sum(one.stop - one.start for one in several) for several in pieces]


def normalised(protocol: str, untrained: bool = True, **settings) -> Scenario:
    model = Workload(name="normalised", variables=NORMALISED, flops_per_sample=1e6)
    model = model if untrained else model.without_untrained()
    return Scenario(protocols.make(protocol), model, workers=2, steps=5, warmup=1, batch=8, **settings)


def test_round_robin_goes_in_creation_order():
    assert placement.round_robin(variables(9, 9, 9, 9, 9), 2) == [0, 1, 0, 1, 0]


def test_greedy_takes_the_server_with_the_fewest_bytes():
    """Seed 004's picture: weights and biases; the large ones do not all land on one server."""
    assert placement.greedy(variables(784 * 100, 100, 100 * 10, 10), 2) == [0, 1, 1, 1]


@given(st.lists(st.integers(1, 10**6), min_size=4), st.integers(1, 4), st.sampled_from(list(placement.STRATEGIES)))
def test_every_byte_lies_somewhere(sizes, servers, strategy):
    held = server_bytes(variables(*sizes), servers, strategy)
    assert sum(held) - servers * HEADER_BYTES == 4 * sum(sizes)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40), st.integers(1, 4))
def test_greedy_is_never_worse_than_the_largest_variable_above_the_mean(sizes, servers):
    loads = [0] * servers
    for size, server in zip(sizes, placement.greedy(variables(*sizes), servers), strict=True):
        loads[server] += size
    assert max(loads) <= sum(sizes) / servers + max(sizes)


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_partitions_keep_all_rows_and_differ_by_one(parts):
    cut = placement.partitioned(NAMED["toy_fc"].variables, parts)
    assert sum(v.size for v in cut) == NAMED["toy_fc"].parameters
    rows = [v.shape[0] for v in cut if v.name.startswith("w1/")]
    assert len(rows) == parts
    assert max(rows) - min(rows) <= 1


def test_what_cannot_be_placed_is_said():
    with pytest.raises(WrongSetting, match="greedy"):
        server_bytes(variables(1), 1, "random")
    with pytest.raises(WrongSetting, match="at most 2"):
        server_bytes(variables(1, 1), 3)


def test_untrained_variables_take_a_turn_and_no_bytes():
    """Four servers: kernels fall to the first, statistics to the last two, which hold nothing that travels."""
    assert placement.round_robin(NORMALISED, 4) == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert server_bytes(NORMALISED, 4) == [
        HEADER_BYTES + 4 * numbers for numbers in (900 + 900 + 600, 30 + 30 + 20, 0, 0)
    ]


def test_greedy_counts_the_bytes_of_untrained_variables():
    statistic = Variable(name="mean", shape=(100,), trained=False)
    first, second, third = variables(10, 10, 10)
    placed = placement.placed([first, statistic, second, third], 2, "greedy")
    assert placed == [(first, 0), (second, 0), (third, 0)]


def test_untrained_variables_are_not_cut():
    """As in tf.compat.v1.layers.batch_normalization, which sets no partitioner for them."""
    cut = placement.partitioned(NORMALISED, 3)
    assert [v.name for v in cut if not v.trained] == ["a/mean", "a/variance", "b/mean", "b/variance"]
    assert [v.shape for v in cut if v.name.startswith("a/beta")] == [(10,), (10,), (10,)]


@pytest.mark.parametrize("protocol", ["fmb", "allreduce", "horovod", "ps-async", "ps-layers"])
def test_a_run_on_one_server_or_none_is_the_same_without_untrained_variables(protocol):
    runs = [event.trace(normalised(protocol, untrained)).rows for untrained in (True, False)]
    assert runs[0].equals(runs[1])


@pytest.mark.parametrize("protocol", ["ps-async", "ps-sync", "ps-backup", "ps-ssp"])
def test_servers_that_hold_statistics_alone_hold_nobody_up(protocol):
    """Two of four, which get headers; as fast as two servers that hold the same."""
    four, two = (
        float(of_trace(event.trace(job)).throughput()[0])
        for job in (normalised(protocol, servers=4), normalised(protocol, untrained=False, servers=2))
    )
    assert four == pytest.approx(two, rel=0.1)


def test_a_server_may_have_nothing_that_is_trained():
    statistic, weight = Variable(name="mean", shape=(3,), trained=False), Variable(name="w", shape=(3,))
    model = Workload(name="odd", variables=[statistic, weight], flops_per_sample=1e6)
    one, two = (
        simulate(Scenario(protocols.make("ps-layers"), model, servers=servers), replications=1) for servers in (1, 2)
    )
    assert two.samples_per_s == pytest.approx(one.samples_per_s, rel=0.1)


def test_a_model_of_which_nothing_is_trained_is_refused(tmp_path):
    for line, complaint in (
        ('{ name = "w", shape = [3], trained = false }', "none of them is trained"),
        (
            '{ name = "w", shape = [3] }, { name = "m", shape = [3], trained = false, rows = { fraction = 1 } }',
            "not trained",
        ),
    ):
        file = tmp_path / "odd.toml"
        file.write_text(f'name = "odd"\nflops_per_sample = 1e6\nvariables = [{line}]\n')
        with pytest.raises(WrongSetting, match=complaint):
            workload.read(str(file))


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ('parameters = 9\nlayers = [{ kind = "foo" }]', "layers: given [{'kind': 'foo'}]; allowed: an integer"),
        ('variables = [{ name = "w", shape = [3], trained = "perhaps" }]', "allowed: true or false"),
    ],
)
def test_a_field_of_another_type_is_refused_in_a_file_s_words(tmp_path, lines, complaint):
    file = tmp_path / "odd.toml"
    file.write_text(f'name = "odd"\nflops_per_sample = 1e6\n{lines}\n')
    with pytest.raises(WrongSetting, match=re.escape(complaint)):
        workload.read(str(file))


def test_a_model_s_name_has_either_dash():
    assert workload.read("gpt2-xl") is workload.read("gpt2_xl")
