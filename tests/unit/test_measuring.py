"""The commands that answers advise are commands that work for the model at hand."""

import shlex

import pytest

from calibration import fit
from real import calibrate, models
from sim.model import workload, workload_text
from sim.model.workload import Workload
from sim.plans import plan
from sim.plans.question import Question
from sim.sweeps import pools

OWN = Workload(name="mine", parameters="1 M", layers=2, flops_per_sample="1 Gflop")


def words(said: str, program: str) -> list[str]:
    """The options of a program in a line of advice."""
    (command,) = (one for one in said.replace("(", ";").split(";") if program in one)
    return shlex.split(command.partition(program)[2])


def test_the_models_that_real_run_trains_are_known():
    assert set(workload_text.TRAINED) == set(models.TRAINED)


@pytest.mark.parametrize("name", workload_text.TRAINED)
def test_real_run_takes_the_command_for_a_model_that_it_trains(name):
    said = workload_text.commands(workload.NAMED[name], name, 17, on_gpu=True)
    given = calibrate.parser().parse_args(words(said, "real.calibrate"))
    models.forward_of(workload.read(given.workload))
    assert (given.device, given.batch) == ("gpu", 17)


@pytest.mark.parametrize(
    "model", [OWN, workload.NAMED["resnet50"], workload.NAMED["mlp"].model_copy(update={"precision": "bf16"})]
)
def test_other_models_are_measured_in_the_user_s_own_training(model):
    said = workload_text.commands(model, "my file.toml", 8, on_gpu=True)
    assert "real.run" not in said + workload_text.calibrated(model)
    given = fit.parser().parse_args(words(said, "calibration.fit"))
    assert (given.source, given.workload, given.batch) == (fit.TORCH, "my file.toml", 8)


@pytest.mark.slow
def test_a_plan_advises_what_works():
    asked = Question(
        workload="resnet50", samples_per_s=100, hosts=("p3.8xlarge",), counts=(1, 2), protocols=("allreduce",)
    )
    found = plan.answer(asked, pools.of_size(1), 5.0)
    by = [one.parameter.measured_by for one in found.values]
    assert not any("real.run" in one for one in by)
    assert any("--from torch --workload resnet50" in one for one in by)
