"""The arithmetic of the platforms' comparison, on planted speeds and parameters; and that it can fail."""

import numpy as np
import pytest

from experiments import platforms, platforms_rows
from experiments.kit.agreement import Agreement, distance, tolerance
from sim.base.errors import RunFailed, WrongSetting
from sim.recording.traces import Activity, Header, Trace

RANKS, STEPS = 2, 20
RNG = np.random.default_rng(0)
TRAINED = {"kernel": RNG.normal(size=(30, 8)).astype(np.float32), "bias": 1e-3 * RNG.normal(size=8).astype(np.float32)}


def moved(by: float, name: str = "kernel") -> dict[str, np.ndarray]:
    """TRAINED with one number of a variable moved by a share of its largest."""
    other = {name: values.astype(float) for name, values in TRAINED.items()}
    other[name].flat[3] = other[name].flat[3] + by * np.abs(TRAINED[name]).max()
    return other


def agreement(**others) -> Agreement:
    control = {name: values * np.float32(1.01) for name, values in TRAINED.items()}
    return Agreement({"a": TRAINED, **others}, {}, control, tolerance(RANKS, STEPS))


def test_speed_is_of_windows_and_of_the_second_half():
    step_s = np.repeat([[0.1, 0.2, 0.05, 0.025], [0.1, 0.1, 0.1, 0.1]], 50, axis=1)
    assert platforms_rows.windows(step_s) == pytest.approx(np.array([[10, 5, 20, 40], [10] * 4]))
    assert platforms_rows.late(step_s) == pytest.approx([100 / 3.75, 10])  # steps over seconds, not a mean of rates


def test_a_difference_counts_against_its_own_variable():
    assert distance(TRAINED, TRAINED) == 0
    assert distance(TRAINED, moved(1e-3, "bias")) == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize(
    "other",
    [
        {"kernel": TRAINED["kernel"]},
        TRAINED | {"bias": np.zeros(9, np.float32)},
        TRAINED | {"bias": np.full(8, np.nan, np.float32)},
    ],
    ids=["a variable less", "another shape", "not a number"],
)
def test_what_cannot_be_compared_is_infinitely_far(other):
    assert distance(TRAINED, other) == float("inf")
    assert agreement(b=other).failures()


def test_rounding_passes_and_a_planted_disagreement_fails():
    bound = tolerance(RANKS, STEPS)
    assert not agreement(b=moved(0.9 * bound), c=moved(-0.05 * bound)).failures()
    wrong = agreement(b=moved(0.5 * bound), c=moved(-0.9 * bound, "bias"), d=moved(2 * bound))
    assert [line.split(" are ")[0] for line in wrong.failures()] == ["a and d", "b and d", "c and d"]
    assert wrong.furthest("d") > bound


def test_a_check_that_cannot_see_a_step_too_many_fails():
    blind = Agreement({"a": TRAINED}, {}, moved(0.5 * tolerance(RANKS, STEPS)), tolerance(RANKS, STEPS))
    assert ["planted" in line for line in blind.failures()] == [True]


def test_the_tolerance_is_above_float32_rounding_and_below_a_fault():
    """Gradient descent in float32 on a quadratic, ranks added up in two orders, one of them before scaling."""
    curvature = RNG.uniform(0.1, 2, 500)
    targets = [RNG.normal(size=500).astype(np.float32) for _ in range(8)]
    kept = {}
    for order in (1, -1):
        w = np.ones(500, np.float32)
        for _ in range(STEPS):
            each = [(curvature * (w - target)).astype(np.float32) for target in targets[::order]]
            total = np.zeros(500, np.float32)
            for gradient in each:
                total = total + (gradient / np.float32(8) if order > 0 else gradient)
            w = w - np.float32(0.1) * (total if order > 0 else total / np.float32(8))
        kept[order] = {"w": w}
    assert 0 < distance(kept[1], kept[-1]) < tolerance(8, STEPS) < 1e-3


def planted(updates: list[list[int]], servers: int = 1) -> Trace:
    """A server's updates, each of gradients from these ranks."""
    rows = []
    for number, peers in enumerate(updates):
        rows += [
            Activity(number + 0.1 * i, number + 0.1 * i, 0, max(0, number - 1), "reduce", 32, 40, peer)
            for i, peer in enumerate(peers)
        ]
        rows.append(Activity(number + 0.5, number + 0.6, 0, number, "update", 64))
    about = {"workers": 2, "servers": servers, "steps": len(updates), "warmup": 0, "batch": 32, "seed": 0}
    return Trace.of(Header("ps-sync", "tensorflow", "mlp", settings={}, **about), rows)


def test_who_need_not_agree_is_told_by_its_trace():
    barrier, tokens = (platforms.Platform("a", "ps-sync", "tensorflow", synchronous=must) for must in (True, False))
    assert platforms.excuse(barrier, planted([[1, 2], [2, 1]])) is None
    for updates, unequal in (([[1, 2], [1, 1], [2, 2]], 2), ([[1, 2], [1]], 1), ([[1, 2, 2], [1, 2]], 1)):
        assert f"{unequal} of 20 updates" in platforms.excuse(barrier, planted(updates))
    assert "0 of 20 updates" in platforms.excuse(tokens, planted([[1, 2]]))
    for ours in (planted([[1, 1]]), planted([[1, 1]], servers=0)):
        assert platforms.excuse(platforms.Platform("a", "hybrid"), ours) is None


def test_a_platform_that_is_refused_is_left_out_with_a_line(capsys, monkeypatch):
    wrong = platforms.Platform("Nobody's", "ps-layers", settings=("local_aggregation=true",))
    monkeypatch.setattr(platforms, "PLATFORMS", (wrong, platforms.Platform("Ours", "fmb")))
    job = {"workers": 2, "workload": "mlp", "data": None, "seed": 0}
    found = platforms.available(8, **job)
    assert [platform.name for platform in found] == ["Ours"]
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("Nobody's: left out (--set local_aggregation")
    monkeypatch.setattr(platforms, "PLATFORMS", (wrong,))
    with pytest.raises(WrongSetting, match=r"^--set local_aggregation:"):
        platforms.available(8, **job)


def test_a_platform_that_cannot_evaluate_is_compared_without(capsys, monkeypatch):
    ours = platforms.Platform("Ours", "fmb")
    monkeypatch.setattr(platforms, "PLATFORMS", (ours,))
    monkeypatch.setattr(
        platforms, "refusal", lambda cell: WrongSetting("--test-size", 500, "0") if cell.test_size else None
    )
    found = platforms.available(8, workers=2, workload="mlp", data=None, seed=0)
    assert list(found[ours]) == ["speed", "check"]
    assert capsys.readouterr().err.startswith("Ours: accuracy left out (--test-size")


def test_no_run_that_is_predicted_was_fitted():
    job = {"workers": 2, "workload": "lstm_classifier", "data": None, "seed": 0}
    compared = {c for p in platforms.PLATFORMS for c in platforms.cells_of(p, 200, **job).values()}
    fits = {
        c
        for way in platforms.WAYS.values()
        for fit in way
        for c in platforms.fitted_cells(fit, "mlp", None, 0).values()
    }
    assert {cell.batch for cell in compared}.isdisjoint(cell.batch for cell in fits)
    assert {p.fitted for p in platforms.PLATFORMS} - {None} <= set(platforms.WAYS)


@pytest.fixture
def compared() -> list[platforms_rows.Row]:
    step_s = np.full((2, 8), 0.1)
    return [
        platforms_rows.Row("a", step_s, [(4, 2.0, 0.3), (8, 1.0, 0.5)], 0.8 * step_s),
        platforms_rows.Row("b", 2 * step_s, [], None),
    ]


def test_tables(compared, tmp_path, capsys):
    checked = agreement(b=moved(0.5))
    platforms_rows.show(compared, checked, {}, "planted", tmp_path)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "DISAGREES" in shown
    assert "+25%" in shown
    assert " 0.30 0.50" in shown


@pytest.mark.parametrize(("apart", "fails"), [(0.0, False), (1e-2, True)])
def test_the_command_fails_if_synchronous_platforms_disagree(apart, fails, compared, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(platforms, "measure", lambda *_, **__: {})
    monkeypatch.setattr(platforms, "fitted", lambda *_: None)
    monkeypatch.setattr(platforms, "row", lambda *_: compared[0])
    monkeypatch.setattr(platforms, "agreed", lambda *_: (agreement(b=moved(apart)), {}))
    if fails:
        with pytest.raises(RunFailed, match=r"^FAIL: a and b are 1\.0e-02 apart"):
            platforms.run(tmp_path, workload="mlp", steps=8)
    else:
        platforms.run(tmp_path, workload="mlp", steps=8)
    assert "1 worker" not in capsys.readouterr().out
