"""Training in simulated time against real ranks: the same losses after the same updates, and the same parameters at the end."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
import pytest
from processes import ROOT

from real.learning.learning import learn
from real.learning.train import train
from real.learning.trainer import Trainer
from real.options import training as training_of
from real.recording import parameters
from real.run import parse
from sim import options
from sim.recording.curves import curves
from sim.recording.traces import read

pytestmark = [pytest.mark.mpi, pytest.mark.tensorflow]
JOB = ["--steps", "4", "--warmup", "2", "--stragglers", "exponential(mean=2ms)", "--seed", "3"]
EVALUATED = ["--test-size", "100", "--evaluate-every", "2"]
MLP = ["--workload", "mlp", "--batch", "16", "--engine", "numpy"]
BIGRAM = ["--workload", "bigram", "--batch", "16"]
CELLS = {  # all wait for all, so that the order of updates is the same
    "fmb": ["--protocol", "fmb", "--workers", "3", *MLP],
    "fmb, momentum": ["--protocol", "fmb", "--workers", "2", *MLP, "--optimiser", "mom"],
    "fmb, decaying": ["--protocol", "fmb", "--workers", "2", *MLP, "--decay-steps", "2", "--decay-rate", "0.5"],
    "amb, whole": ["--protocol", "amb", "--set", "time_limit_s=3600", "--workers", "2", *MLP],
    "allreduce": ["--protocol", "allreduce", "--workers", "3", *MLP],
    "allreduce, unfused": [*shlex.split("--protocol allreduce --set fused=false --workers 3 --optimiser adm"), *MLP],
    "horovod": ["--protocol", "horovod", "--runtime", "mpi", "--workers", "3", *MLP],
    "ps-sync": ["--protocol", "ps-sync", "--runtime", "mpi", "--set", "barrier=true", "--workers", "2", *MLP],
    "ps-layers": ["--protocol", "ps-layers", "--workers", "2", *MLP],
}
UNSEEN = {  # no rank has all parameters, so that none can evaluate: only where runs end is compared
    "hybrid": ["--protocol", "hybrid", "--workers", "2", *BIGRAM],
    "hybrid, in parts": [
        *shlex.split("--protocol hybrid --workers 2 --variable-partitions 3 --optimiser mom"),
        *BIGRAM,
    ],
    "rows gathered": ["--protocol", "allreduce", "--set", "sparse_as_dense=false", "--workers", "2", *BIGRAM],
    "ps-sync, 2 servers": [
        *shlex.split("--protocol ps-sync --servers 2 --runtime mpi --set barrier=true --workers 2"),
        *MLP,
    ],
    "ps-layers, 2 servers": ["--protocol", "ps-layers", "--servers", "2", "--workers", "2", *MLP],
    "hybrid, 2 servers": [*shlex.split("--protocol hybrid --servers 2 --workers 2 --variable-partitions 2"), *BIGRAM],
}
OWN = ("Drifting", "Gossip", "TopPart", "Swapped")
# Sums in another order differ by roundings of float32, which RMSprop and Adam magnify where they divide by the size of small gradients.
CLOSE = {"rtol": 1e-4, "atol": 2e-5}


@pytest.fixture(scope="module")
def ran(campaign, tmp_path_factory):
    """All cells, in one launch: their words by name, and the folder of their traces and parameters."""
    folder = tmp_path_factory.mktemp("learning")
    texts = folder / "texts_for_real.py"
    texts.write_text((ROOT / "tests/unit/learning_texts.py").read_text())
    cells = {name: [*words, *JOB, *EVALUATED] for name, words in CELLS.items()}
    cells |= {name: [*words, *JOB] for name, words in UNSEEN.items()}
    own = ["--workers", "4", *MLP, "--optimiser", "sgd", *JOB, *EVALUATED]
    cells |= {name: ["--protocol", f"{texts.stem}:{name}", *own] for name in OWN}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
        patch.syspath_prepend(folder)
        yield cells, campaign(cells, parameters=True, folder=folder)


def asked(words):
    """The job and the training that options of real.run say."""
    given = parse(words)
    return options.scenario(given), training_of(given)


@pytest.mark.parametrize("name", [*CELLS, *OWN])
def test_losses_are_those_of_real_ranks(ran, name):
    cells, folder = ran
    scenario, training = asked(cells[name])
    found, real = learn(scenario, training, replications=1).curves[0], curves(read(folder / f"{name}.parquet"))
    assert found.step.tolist() == real.step.tolist() == [2, 4, 6]
    assert found.samples.tolist() == real.samples.tolist()
    np.testing.assert_allclose(found.loss, real.loss, rtol=1e-5)
    np.testing.assert_allclose(found.accuracy, real.accuracy, atol=0.01)  # a sample may lie between two classes
    assert len(set(real.loss)) == 3


@pytest.mark.parametrize("name", [*CELLS, *UNSEEN, *OWN])
def test_parameters_are_those_of_real_ranks(ran, name):
    cells, folder = ran
    found, expected = ended(*asked(cells[name])), parameters.read(folder / f"{name}.npz")
    start = 0
    for variable, values in expected.items():
        mine = found[start : start + values.size].reshape(values.shape)
        np.testing.assert_allclose(mine, values, **CLOSE, err_msg=variable)
        start += values.size
    assert start == found.size


def ended(scenario, training) -> np.ndarray:
    """The parameters of the first run when all ranks have ended."""
    whole = replace(scenario, steps=scenario.rounds, warmup=0)
    return train(whole, 0, Trainer(whole.workload, whole.seed, training))[0].newest.vector
