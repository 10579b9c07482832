"""The wheel, built: a user's own `sim` and `real` neither hide its modules nor are hidden."""

import os
import subprocess
import sys

import pytest
from processes import ROOT

INNER = ("sim", "real", "calibration", "experiments")
COPIED = (*INNER, "trainsim", "setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
PROGRAM = """
import sys
import trainsim
from trainsim.protocols import Protocol

if __name__ == "__main__":
    model = trainsim.read_workload("mlp")
    jobs = [trainsim.Scenario(trainsim.make_protocol("fmb"), model, workers=n, steps=5) for n in (2, 3)]
    print("swept", len(trainsim.sweep(jobs, "grid.parquet", processes=2, replications=1, world="event")))
    assert not {"sim", "real"}.intersection(sys.modules)
    import real, sim
    print(sim.MINE, real.MINE, Protocol.__module__)
"""


@pytest.mark.slow
@pytest.mark.processes
def test_a_wheel_works_beside_packages_of_the_same_names(tmp_path):
    pytest.importorskip("setuptools")
    tree, built, mine = tmp_path / "tree", tmp_path / "built", tmp_path / "mine"
    tree.mkdir()
    for name in COPIED:
        (tree / name).symlink_to(ROOT / name)
    line = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path), "build_py", "-d", str(built)]
    subprocess.run(line, cwd=tree, check=True, capture_output=True)
    assert [path.name for path in built.iterdir()] == ["trainsim"]
    for name in ("sim/zoo/mlp.toml", "sim/py.typed", "real/libraries/horovod.sh"):
        assert (built / "trainsim" / name).exists()
    mine.mkdir()
    for name in ("sim", "real"):
        (mine / f"{name}.py").write_text("MINE = 'mine'\n")
    (mine / "program.py").write_text(PROGRAM)
    known = {**os.environ, "PYTHONPATH": str(built), "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=mine, env=known, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["swept 2", "mine mine trainsim.sim.protocols.base"], done.stderr
    words = ["-m", "trainsim", "run", "--protocol", "fmb", "--steps", "5", "--replications", "1"]
    done = subprocess.run([sys.executable, *words], cwd=mine, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "throughput" in done.stdout
