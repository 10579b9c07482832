"""What a throughput is worth: tokens a second, dollars for a million samples, and the share of the GPUs' peak rates (MFU)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.base.units import HOUR_S
from sim.job import named_gpus
from sim.model.nominal import TRAINING

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

MILLION = 1e6
COST = "cost"  # the label of its line


def of(scenario: Scenario, samples_per_s: float, known: bool = True) -> dict:
    """The keys that a throughput adds to a JSON answer; those that are not known are not there.

    tokens_per_s: where a sample is a sequence of words. usd_per_hour: of all hosts, where all have prices;
    usd_per_million_samples and usd_per_million_tokens follow. mfu: see `_of_peak`.

    Args:
        known: whether the throughput is; what it is worth is not there if not.
    """
    tokens, usd = scenario.workload.tokens_per_sample, scenario.cluster.usd_per_hour
    found: dict = {"tokens_per_s": tokens * samples_per_s} if tokens else {}
    found |= {"usd_per_hour": usd} if usd else {}
    if not (known and samples_per_s > 0):
        return found
    if usd:
        million = usd / HOUR_S / samples_per_s * MILLION
        found |= {"usd_per_million_samples": million} | ({"usd_per_million_tokens": million / tokens} if tokens else {})
    return found | _of_peak(scenario, samples_per_s)


def _of_peak(scenario: Scenario, samples_per_s: float) -> dict:
    """Model FLOPs utilisation (Chowdhery et al., "PaLM", 2022): operations of the model a second over the peak of the workers' GPUs.

    The operations are three times those of a forward pass. The peak is that of the format of arithmetic, on GPUs that have a worker.
    """
    workload, places = scenario.workload, set(scenario.gpus[scenario.servers :] or scenario.gpus)
    gpus = [place and scenario.machines[place.host].gpu for place in places]
    rates = [(named_gpus.format_of(gpu, workload), gpu) for gpu in gpus if gpu]
    if not workload.flops_per_sample or len(rates) < len(gpus) or any(one not in gpu.formats for one, gpu in rates):
        return {}
    peak = sum(gpu.reached(one).peak for one, gpu in rates)
    share = TRAINING * workload.flops_per_sample * samples_per_s / peak
    return {"mfu": {"share": share, "peak_flops_per_s": peak, "formats": sorted({one for one, _ in rates})}}


def lines(answer: dict) -> Iterator[tuple[str, str]]:
    """What a JSON answer has of these, a label and a line each."""
    from sim.answers.summary import digits, number

    borne = digits(answer)
    of = "tokens" if "usd_per_million_tokens" in answer else "samples"
    if million := answer.get(f"usd_per_million_{of}"):
        yield COST, f"{number(million, borne)} USD a million {of}, {number(answer['usd_per_hour'])} an hour"
    if mfu := answer.get("mfu"):
        yield "MFU", f"MFU {number(100 * mfu['share'], min(borne, 3))}% ({' and '.join(mfu['formats'])})"
