"""The job scripts of examples/slurm, run by a real Slurm of two nodes on this machine."""

from __future__ import annotations

import os
import shlex
import sys

import private_slurm
import pytest
from processes import ROOT

from calibration import fit
from sim.platform import cluster

pytestmark = pytest.mark.tensorflow
SCRIPTS = ROOT / "examples" / "slurm"
TRAIN = """import os, time
from trainsim import Recorder

recorder = Recorder(os.environ["RECORDED"], batch=32, workload="mlp")
for _ in recorder.steps(range(20)):
    time.sleep(0.02)
recorder.close()
"""
NO_PMIX = "can not load PMIx library"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A Slurm, or the reason why there is none."""
    folder = tmp_path_factory.mktemp("slurm")
    try:
        with private_slurm.slurm(folder) as found:
            found.environment |= {
                "PYTHONPATH": str(ROOT),
                "PYTHON": sys.executable,
                "OMPI_MCA_mpi_yield_when_idle": "1",
            }
            yield found
    except private_slurm.Unavailable as error:
        pytest.skip(str(error))


def test_srun_starts_ranks_that_join(slurm, tmp_path):
    """Each on its node: the launcher's environment says that they are ranks."""
    said = "import os, real.launching.mpirun as l; print(l.joined(), os.environ['SLURMD_NODENAME'])"
    done = slurm.run("srun", "--mpi=pmix", "-n", 2, "-N", 2, sys.executable, "-c", said, cwd=tmp_path)
    if NO_PMIX in done.stderr:
        pytest.skip("Slurm finds no PMIx library (Debian: libpmix-dev)")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["True", "True", "node0", "node1"]


def test_the_scripts_calibrate_run_and_compare(slurm, tmp_path):
    """By srun where it has PMIx, and mpirun within the job; what is predicted of so short runs does not matter."""
    few = shlex.split("--engine numpy --workload mlp --protocol fmb --steps 3 --repeats 1 --tolerance 10")
    probed = slurm.run("srun", "--mpi=pmix", "-n", 1, "true", cwd=tmp_path)
    by = "mpirun" if NO_PMIX in probed.stderr else "srun"
    code, said = slurm.batch(SCRIPTS / "calibrate.sbatch", *few, "-o", "profile.toml", cwd=tmp_path, BY=by)
    assert code == 0, said
    assert "14 of 14 runs left, of up to 2 workers" in said
    assert "all of 2 jobs within the tolerance" in said
    profile = cluster.read(str(tmp_path / "profile.toml"))
    assert list(profile.costs) == ["mlp"]
    assert profile.provenance
    assert profile.provenance.workers == 2
    job = shlex.split("--engine numpy --protocol fmb --workload mlp --steps 5 --warmup 1 --stragglers none")
    code, said = slurm.batch(SCRIPTS / "run_and_compare.sbatch", "profile.toml", *job, cwd=tmp_path)
    assert code in (0, 1), said
    assert "mean absolute error of a step" in said
    assert [path.suffix for path in tmp_path.glob("run-*")] == [".parquet"]


def test_a_recorded_training_is_checked_at_night(slurm, tmp_path):
    """A plain loop on each of two nodes; what is predicted of so short runs does not matter."""
    (tmp_path / "train.py").write_text(TRAIN)
    job = "p.toml", sys.executable, "train.py"
    code, said = slurm.batch(SCRIPTS / "nightly.sbatch", *job, cwd=tmp_path)
    assert code == 2, said  # no profile yet
    (recorded,) = tmp_path.glob("recorded-*")
    assert fit.main([str(recorded), "-o", str(tmp_path / "p.toml")]) == 0
    code, said = slurm.batch(SCRIPTS / "nightly.sbatch", *job, cwd=tmp_path)
    assert code in (0, 1), said
    assert "mean absolute error of a step" in said


def test_a_job_that_cannot_be_ends_with_2_and_one_line(slurm, tmp_path):
    code, said = slurm.batch(SCRIPTS / "run_and_compare.sbatch", "profile.toml", "--protocol", "abm", cwd=tmp_path)
    assert code == 2
    assert said.startswith("real.run: --protocol: given 'abm'")
    assert len(said.splitlines()) == 1
    assert os.listdir(tmp_path) == ["run_and_compare.out"]
