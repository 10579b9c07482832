"""The graph that a worker of TensorFlow's own parameter servers runs: where its variables are, and who may connect."""

from __future__ import annotations

import socket

import pytest

from sim import protocols
from sim.job.scenario import Scenario
from sim.model.variable_placement import server_slices
from sim.model.workload import NAMED

pytestmark = pytest.mark.tensorflow


def replica(name: str = "ps-async", **settings):
    from real.servers.replica import Replica
    from real.training.trainee import Training

    scenario = Scenario(protocols.make(name), NAMED["mlp"], workers=2, **settings)
    made = Replica(scenario, Training(), 0, 0, "run")
    if made.tokens:
        made.tokens.ready_for_local_init_op.mark_used()  # or TensorFlow says at the end that nobody did
    return scenario, made


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("placement", ["round-robin", "greedy"])
@pytest.mark.parametrize("parts", [1, 3])
def test_tensorflow_places_variables_as_the_simulator_does(servers, placement, parts):
    scenario, made = replica(servers=servers, placement=placement, variable_partitions=parts)
    parts_in_order = [part for variable in made.variables for part in variable]
    held, start = [[] for _ in range(servers)], 0
    for part in parts_in_order:
        size = int(part.shape.num_elements())
        held[made.server_of(part)].append(slice(start, start + size))
        start += size
    assert held == server_slices(scenario.workload.variables, servers, placement, parts)


def test_a_clock_of_an_asynchronous_server_waits_for_its_optimiser_and_a_synchronous_ones_for_accumulators():
    for name, kind in (("ps-async", "ResourceApply"), ("ps-sync", "AccumulatorApplyGradient")):
        _, made = replica(name, servers=2)
        for server, clock in enumerate(made.step["applied"]):
            waits_for = clock.op.control_inputs
            assert waits_for
            assert all(kind in op.type and made.server_of(op) == server for op in waits_for)


def test_an_update_s_clocks_wait_for_what_was_added_up_and_for_new_parameters():
    _, made = replica("ps-sync", servers=2)
    for name, kind in (("taken", "TakeGradient"), ("updated", "ResourceApply")):
        for server, clock in enumerate(made.update[name]):
            assert clock.op.control_inputs
            assert all(kind in op.type and made.server_of(op) == server for op in clock.op.control_inputs)


def test_a_server_on_loopback_is_tied_to_it():
    from real.servers.server import tie_to_loopback

    with socket.create_server(("", 0)) as listener:
        tie_to_loopback(listener.getsockname()[1])
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).startswith(b"lo")
        socket.create_connection(("127.0.0.1", listener.getsockname()[1]), 1).close()
