"""What the language says of the jobs that today.py has kept: python tests/unit/today_compared.py FILE [PROTOCOL].

Each job is run by the event world of the language, and by its engine. Not a test; it goes when sim.event goes.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from scenarios import CLUSTERS
from test_language_today import Updates
from today import drawn
from today_rules import RULES, rules

from sim import event as today
from sim.base.errors import RunFailed, WrongSetting
from sim.event.language import job_of, outcome_of
from sim.language import event
from sim.language.engine import job as engine
from sim.language.engine.values import NotLowered
from sim.protocols.texts import text_of

EXACT, NEAR = 1e-9, 0.01


def off(found, kept, least: float) -> float:
    """The largest difference, as a share of the kept numbers' mean."""
    found, kept = np.asarray(found), np.asarray(kept)
    if found.shape != kept.shape:
        return np.inf
    return float(np.abs(found - kept).max() / max(least, np.abs(kept).mean()))


def compared(kept: dict) -> dict | str:
    """By how much the numbers of one job differ; or why it is refused."""
    scenario = drawn(kept["number"])
    try:
        text = text_of(scenario)
        job = job_of(scenario, text)
    except WrongSetting as error:
        return f"{error.setting} {error.allowed.partition(' with ')[0]}" if hasattr(error, "allowed") else str(error)
    updates = Updates()
    try:
        found = event.run(job, text, updates)
    except RunFailed as error:
        return f"wrong: {error}"
    held = sum(job.server_of(layer, text.servers) == 0 for layer in range(len(job.layers)))
    each, warmup = scenario.updates_per_step * (held if text.layerwise else 1), scenario.warmup
    ends_s = updates.ends_s[each - 1 :: each][: scenario.rounds]
    step_s, own_step_s = (np.diff(one, prepend=0.0)[warmup:] for one in (ends_s, found.ends_s))
    idle = outcome_of(scenario, found).idle_fraction[0]
    differs = {
        "step": off(step_s, kept["step_s"], 1e-300),
        "mean step s": float(np.mean(step_s)),
        "mean step": off([np.mean(step_s)], [np.mean(kept["step_s"])], 1e-300),
        "step by rounds": off(own_step_s, kept["step_s"], 1e-300),
        "samples": off(found.samples[warmup:], kept["samples"], 1.0),
        "idle": off(idle, kept["idle"], 1.0),
    }
    try:
        other = engine.run(job, text)
    except NotLowered as error:
        return differs | {"engine": str(error)}
    same = all(off(getattr(other, name), getattr(found, name), 1.0) < EXACT for name in ("ends_s", "samples", "idle_s"))
    return differs | {"engine": "" if same else "differs"}


def cluster_of(number: int) -> str:
    """Of a job by its number."""
    of = drawn(number).cluster
    return next((name for name, cluster in CLUSTERS.items() if cluster is of), "common")


def cause_of(kept: dict, found: dict) -> str:
    """The rule by which sim.event is as near as the language asks for, of a job whose mean step is off."""
    for names in ((), *((name,) for name in RULES), tuple(RULES)):
        with rules(*names):
            outcome, _ = today.run(drawn(kept["number"]), want_trace=False)
        if off([np.mean(outcome.step_s[0])], [found["mean step s"]], 1e-300) < NEAR:
            return names[0] if len(names) == 1 else "several rules"
    return "no rule"


def table(by: dict[str, list]) -> None:
    """By protocol: jobs, those whose mean step is exact, within 1 %, above, and by which rules those above are nearer."""
    for name, each in sorted(by.items()):
        means = [found["mean step"] for _, found in each]
        exact, near = sum(v < EXACT for v in means), sum(EXACT <= v < NEAR for v in means)
        causes = Counter(found["cause"] for _, found in each if found["mean step"] >= NEAR)
        said = ", ".join(f"{count} {cause}" for cause, count in causes.most_common())
        print(f"{name:90} | {len(each):3} | {exact:3} | {near:3} | {len(each) - exact - near:3} | {said}")


def main(path: str, only: str = "") -> None:
    """Print how many jobs are refused and why, and how far the others are off, by protocol."""
    refused, by, lost = Counter[str](), defaultdict[str, list](list), Counter[str]()
    for line in Path(path).read_text().splitlines():
        kept = json.loads(line)
        if not kept["protocol"].startswith(only):
            continue
        found = compared(kept)
        if isinstance(found, str):
            refused[found] += 1
        else:
            found["cause"] = cause_of(kept, found) if found["mean step"] >= NEAR else ""
            by[kept["protocol"]].append((kept["number"], found))
            lost[found["engine"]] += 1
    for why, count in refused.most_common():
        print(f"refused {count:4}: {why}")
    for why, count in lost.most_common():
        print(f"engine {count:4}: {why or 'equal'}")
    for name, each in sorted(by.items()):
        print(f"{name}: {len(each)} jobs")
        for what in ("step", "mean step", "step by rounds", "samples", "idle"):
            values = [found[what] for _, found in each]
            exact, near = sum(v < EXACT for v in values), sum(EXACT <= v < NEAR for v in values)
            worst = sorted(((found[what], number) for number, found in each), reverse=True)[:6]
            said = ", ".join(
                f"{value:.2g} ({number}, {cluster_of(number)})" for value, number in worst if value >= EXACT
            )
            print(f"   {what:15} {exact:3} exact, {near:3} near, {len(values) - exact - near:3} off: {said}")
    table(by)


if __name__ == "__main__":
    main(*sys.argv[1:])
