"""How a probe's measurements differ from one time to another: kept in its file, and in profiles that are fitted with it."""

import json

import event
import numpy as np
import pytest

from calibration import probes, profiles
from real.probing import link_from_times as wire
from real.probing import links
from sim import protocols
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import cluster


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_a_probe_keeps_how_its_measurements_differ(spread):
    """Five times with bandwidths of a planted spread, between hosts and within one; latency is always the same."""
    rng = np.random.default_rng(2)
    factors = np.exp(spread * rng.normal(size=wire.TIMES))
    expected = np.std(factors, ddof=1) / np.mean(factors)
    each = np.repeat(factors, 6)[None, :, None]  # rounds of a size, in their order

    def rounds_of(size):
        return np.concatenate([1e-3 + 0 * each, 1e-4 + size / 1e8 * each, 0 * each], axis=2).repeat(2, axis=0)

    between = {size: rounds_of(size) for size in (wire.SMALL_BYTES, *wire.LARGE_BYTES)}
    within = {size: rounds_of(size) for size in links.SIZES_BYTES}
    for found in (
        [links._link(links._awake, part, False, 6e-5) for part in links._parts(between)],
        [links._local(part, 0.0) for part in links._parts(within)],
    ):
        spreads = wire.spreads(found)
        assert spreads["bandwidth_spread"] == pytest.approx(expected, rel=0.03, abs=1e-6)
        assert spreads["latency_spread"] < 0.01


def test_a_probe_s_spread_comes_into_the_profile_and_an_older_probe_is_read(tmp_path):
    link = {"latency_s": 1e-4, "overhead_s": 1e-5, "bandwidth_bytes_per_s": 1e8}
    probe = {"schema": "probe/2", "cores": 1, "oversleep_s": 6e-5, "network": link, "library": link}
    made = {}
    for name, spreads in (("old", {}), ("new", {"latency_spread": 0.2, "bandwidth_spread": 0.1})):
        sleeps = {"oversleep_spread": 0.3} if spreads else {}
        table = probe | {"network": link | spreads, "library": link | spreads} | sleeps
        (tmp_path / "probe.json").write_text(json.dumps(table))
        trace = event.trace(Scenario(protocols.make("fmb"), workload.NAMED["mlp"], 2, 6, 1))
        fitted = profiles.make([profiles.Source("run", trace)], "x", probes.read(str(tmp_path / "probe.json")))
        profiles.write(fitted, str(tmp_path / "profile.toml"))
        made[name] = cluster.read(str(tmp_path / "profile.toml"))
    assert (made["old"].network.bandwidth_spread, made["old"].oversleep_spread) == (None, None)
    assert (made["new"].network.bandwidth_spread, made["new"].network.latency_spread) == (0.1, 0.2)
    assert (made["new"].library.bandwidth_spread, made["new"].oversleep_spread) == (0.1, 0.3)
