"""Texts in the language as a job's protocol: --protocol module:Class."""

from dataclasses import dataclass, replace

import pytest
from common import common

from sim import protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.language.engine import job as engine
from sim.language.event import run as event_run
from sim.language.job import Job, Layer
from sim.language.text import Text
from sim.model import workload
from sim.run import main
from sim.runs.job import job_of
from sim.simulation import simulate
from sim.texts import TEXTS


def name_of(text: type) -> str:
    return f"{text.__module__}:{text.__qualname__}"


def scenario(name: str, *settings: str, **of) -> Scenario:
    protocol = protocols.make(name_of(TEXTS[name]), settings)
    return Scenario(protocol, workload.read("toy_fc"), **{"workers": 4, "steps": 4, "warmup": 1, "batch": 16, **of})


def test_what_a_text_does_not_have_is_named():
    one = common(1, "fmb")
    for of, text, words in (
        (one, TEXTS["ddp"](), "--servers: given 1; allowed: 0 with ddp"),
        (one, TEXTS["ps-async"](2), "--servers: given 1; allowed: 2 with ps-async"),
        (common(1, "allreduce"), TEXTS["pipeline"](), "one for each layer that has activation_items"),
    ):
        with pytest.raises(WrongSetting, match=words):
            event_run(job_of(of, text, 0), text)


def test_servers_are_the_job_s():
    assert scenario("ps-async", servers=2).servers == 2
    assert scenario("fmb", servers=2).servers == 1
    assert scenario("fsdp", servers=2).servers == 0
    with pytest.raises(WrongSetting, match="servers=2"):
        scenario("ps-async", "servers=2")


@pytest.mark.parametrize(
    ("ranks", "per_host", "group"), [(2, 1, 2), (7, 1, 7), (12, 1, 6), (16, 1, 8), (12, 4, 4), (6, 4, 6), (11, 1, 1)]
)
def test_groups_of_hierarchical_fit_any_number_of_ranks(ranks, per_host, group):
    """Those of a host where all have several and as many; the simulated step is that of the same group by name."""
    job = Job(ranks, (Layer(1000, 1e-3),), 2, per_host=per_host, latency_s=1e-3, local_latency_s=1e-5)
    ends = [event_run(job, TEXTS["hierarchical"](of)).ends_s for of in (0, group)]
    assert ends[0] == ends[1]


def test_ranks_that_wait_within_a_call_of_mpi_do_not_sleep():
    """`auto` is MPI's allreduce, here by recursive doubling; called by that name it is of our messages, between whose polls ranks sleep."""
    job = Job(4, (Layer(100, 1e-3),), 5, latency_s=1e-3, poll_s=1e-6, oversleep_s=5e-5)
    for world in (event_run, engine.run):
        auto, ours = (world(job, TEXTS["allreduce"](of)).ends_s[-1] for of in ("auto", "recursive-doubling"))
        assert ours > auto + 5 * 2 * 2.5e-5


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--set", "behind=1"], "given 'behind=1'; allowed: ahead=1"),
        (["--trace", "x.jsonl", "--world", "engine"], "--world: given 'engine'; allowed: auto or event"),
    ],
)
def test_what_it_cannot_have_is_one_line(said, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["--protocol", "sim.texts.fsdp:Fsdp", "--workers", "3", "--steps", "5", "--replications", "1"]
    asked += [] if "--workload" in said else ["--workload", "toy_fc"]
    with pytest.raises(WrongSetting) as caught:
        main([*asked, *said])
    assert words in str(caught.value)


@dataclass(frozen=True)
class Works(Text):
    """Operations and bytes that no pass has."""

    flops: float = 0.0
    bytes: float = 0.0

    def __call__(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.work(flops=self.flops, bytes=self.bytes)
            yield from me.update()


@pytest.mark.parametrize(("settings", "seconds"), [(["flops=5e10"], 0.5), (["bytes=2e9"], 0.5), ([], 0.0)])
def test_other_work_takes_as_long_as_the_model_s_own(settings, seconds):
    """On a nominal core: 100 Gflop/s, and 4 GB/s."""
    of = scenario("alone", workers=1)
    job = replace(of, protocol=protocols.make("test_language_run:Works", settings), steps=2, warmup=0)
    idle = replace(job, protocol=protocols.make("test_language_run:Works"))
    more = simulate(job, "event", 1).outcome.step_s - simulate(idle, "event", 1).outcome.step_s
    assert more == pytest.approx(seconds)
