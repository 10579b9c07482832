"""Ways of renting in a plan: offers side by side, prices of one's own, and inventories."""

import math

import pytest

from sim.base.errors import WrongSetting
from sim.plans import plan, question, search
from sim.plans.configurations import Room
from sim.plans.simulating import Simulating
from sim.platform import catalogue
from sim.sweeps import pools

HOST = "a3-megagpu-8g"
ASKED = {"workload": "toy_fc", "protocols": ["allreduce"], "counts": [1, 2], "hosts": [HOST]}
ASKED |= {"samples": 10**9, "deadline": "10 h"}
KIND = catalogue.find("hosts", HOST)
ON_DEMAND, SPOT = (KIND.offered[name].usd_per_hour for name in ("on-demand", "spot"))


def asked(**further) -> question.Question:
    return question.read(None, {name: value for name, value in (ASKED | further).items() if value is not None})


def prices(**further) -> dict[tuple[str, str], float]:
    """Of one host, by its name and offer."""
    return {(one.host, one.offer): one.usd_per_hour for one in Room(asked(**further)).all if one.hosts == 1}


def test_offers_of_a_host_are_side_by_side_and_given_prices_come_first():
    offers = {"offers": ["on-demand", "spot", "reserved-1y"], "prices": {f"{HOST}:reserved-1y": 50}}
    assert prices(**offers) == {(HOST, "on-demand"): ON_DEMAND, (HOST, "spot"): SPOT, (HOST, "reserved-1y"): 50}
    assert prices() == {(HOST, "on-demand"): ON_DEMAND}
    assert prices(offers="spot", prices={HOST: 7}) == {(HOST, "spot"): 7}
    assert prices(offers=["on-demand", "spot"], prices={HOST: 7}) == {(HOST, "on-demand"): 7, (HOST, "spot"): SPOT}


def test_hosts_that_are_not_named_are_those_with_a_price():
    by_offer = {offer: {host for host, _ in prices(hosts=None, offers=offer)} for offer in ("on-demand", "spot")}
    assert HOST in by_offer["spot"] < by_offer["on-demand"]
    assert "p5e.48xlarge" not in by_offer["on-demand"]
    assert "p5e.48xlarge" in {host for host, _ in prices(hosts=None, prices={"p5e.48xlarge": 40})}


def test_a_host_without_one_of_the_offers_has_the_others_and_a_note_says_so():
    room = Room(asked(hosts=[HOST, "p5.48xlarge"], offers=["on-demand", "spot"]))
    found = {(one.host, one.offer) for one in room.all}
    assert found == {(HOST, "on-demand"), (HOST, "spot"), ("p5.48xlarge", "on-demand")}
    assert "no spot price of p5.48xlarge is known: --price p5.48xlarge:spot=USD" in room.prices.notes


@pytest.mark.parametrize(
    ("hosts", "counts", "tried"),
    [
        (["p3.2xlarge*6"], None, {1, 2, 3, 4, 5, 6}),
        (["p3.2xlarge*6"], [2, 4, 8], {2, 4}),
        (["p3.2xlarge*100"], None, {1, 2, 4, 8, 16, 32, 100}),
        (["p3.2xlarge"], [2, 4, 8], {2, 4, 8}),
    ],
)
def test_no_more_hosts_are_taken_than_there_are(hosts, counts, tried):
    assert {one.hosts for one in Room(asked(hosts=hosts, counts=counts)).all} == tried


def test_several_hosts_without_a_known_network_cannot_be():
    room = Room(asked(hosts=["coreweave-8xH200"]))
    one, two = sorted(room.all, key=lambda it: it.hosts)
    assert room.scenario(one).workers == 8
    with pytest.raises(WrongSetting, match="network: given '2 x coreweave-8xH200'; allowed: one host"):
        room.scenario(two)


@pytest.mark.slow
def test_one_job_is_simulated_once_and_costs_what_its_offer_does():
    found = plan.answer(asked(offers=["on-demand", "spot"], counts=[1], keep=1), pools.of_size(1), 60.0)
    rows = {row["offer"]: row for row in found.as_json()["rows"]}
    for name in ("samples_per_s", "effort"):
        assert rows["spot"][name] == rows["on-demand"][name]
    for offer, usd in (("on-demand", ON_DEMAND), ("spot", SPOT)):
        assert rows[offer]["usd"] == pytest.approx(rows[offer]["hours"] * usd)
    assert found.best[0].configuration.offer == "spot"
    assert {one.configuration.offer for one in found.front} == {"spot"}


@pytest.mark.slow
def test_what_is_learned_of_one_offer_is_known_of_the_others():
    """Also where only one of them was looked at: the front would have the dearer one beside it, if few steps found it faster."""
    found, _ = search.screened(Room(asked(offers=["on-demand", "spot"], counts=[1])))
    with pools.of_size(1) as pool:
        Simulating(Room(asked()), pool, 60.0, math.inf, found).simulate(found[:1], 1)
    assert [one.effort for one in found] == [1, 1]
    assert found[0].figures == found[1].figures is not None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hosts": ["a3-megagpu-8"]}, f"did you mean {HOST}"),
        ({"hosts": [f"{HOST}*0"]}, r"hosts: given 'a3-megagpu-8g\*0'; allowed: HOST, or HOST\*N"),
        ({"hosts": ["p3.2xlarge*3"], "counts": [4, 8]}, r"counts: given 4; allowed: at most 3 p3.2xlarge"),
        ({"offers": ["spott"]}, "offers.0: given 'spott'.*spot"),
        (
            {"hosts": ["p5.48xlarge"], "offers": ["spot"]},
            "p5.48xlarge: missing; needed: USD an hour of one host, spot.*known are on-demand",
        ),
        ({"hosts": ["p5e.48xlarge"]}, "prices: p5e.48xlarge: missing; needed: USD an hour of one host, on-demand"),
        ({"budget": "500 EUR"}, "budget: given '500 EUR'"),
        ({"prices": {f"{HOST}:spott": 3}}, "prices: given 'a3-megagpu-8g:spott'.*did you mean spot"),
    ],
)
def test_what_is_wrong_is_said(wrong, said):
    with pytest.raises(WrongSetting, match=said) as refused:
        Room(asked(**wrong)).all  # noqa: B018
    assert "\n" not in str(refused.value)
