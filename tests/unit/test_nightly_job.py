"""The nightly job script for Slurm, with a stand-in for Slurm's commands: a recorded training is checked, and one that fails is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from calibration import fit

pytestmark = [pytest.mark.slow, pytest.mark.processes]
SCRIPT = Path(__file__).parents[2] / "examples" / "slurm" / "nightly.sbatch"
TRAIN = """import os, sys, time
from trainsim import Recorder

recorder = Recorder(os.environ["RECORDED"], batch=32, workload="mlp")
for _ in recorder.steps(range(20)):
    time.sleep(float(sys.argv[1]))
recorder.close()
"""
SRUN = """#!/bin/bash
[ "$1" = --kill-on-bad-exit=1 ] || exit 9
shift
for rank in $(seq 0 $((SLURM_NTASKS - 1))); do
    SLURM_PROCID=$rank SLURM_LOCALID=$rank "$@" & running="$running $!"
done
for one in $running; do wait "$one" || exit; done
"""
SCONTROL = "#!/bin/bash\necho node0\n"


@pytest.fixture
def night(tmp_path):
    """Runs the script as job 1, 2 and so on, with two tasks."""
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "train.py").write_text(TRAIN)
    slurm = {"SLURM_NTASKS": "2", "SLURM_JOB_NODELIST": "node0", "PYTHON": sys.executable}
    found = os.environ | slurm | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    def run(job: int, *words: str) -> subprocess.CompletedProcess:
        line = ["bash", str(SCRIPT), "p.toml", *words]
        return subprocess.run(
            line, cwd=tmp_path, env=found | {"SLURM_JOB_ID": str(job)}, capture_output=True, text=True, check=False
        )

    return run


def test_a_recorded_training_is_checked_and_a_failed_one_is_not(night, tmp_path):
    train = sys.executable, "train.py"
    first = night(1, *train, "0.02")
    assert first.returncode == 2  # no profile yet
    assert fit.main([str(tmp_path / "recorded-1"), "-o", str(tmp_path / "p.toml")]) == 0
    same, slower = night(2, *train, "0.02"), night(3, *train, "0.2")
    assert same.returncode in (0, 1), same.stderr  # a busy machine may be off
    assert "mean absolute error of a step" in same.stdout
    assert slower.returncode == 1, slower.stderr
    failed = night(4, *train, "no number")
    assert failed.returncode == 1
    assert "mean absolute error" not in failed.stdout
