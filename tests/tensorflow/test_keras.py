"""trainsim with Keras: the callback of its Recorder, and workloads of models by trainsim.model."""

from __future__ import annotations

import numpy as np
import pytest

import trainsim
from real.training import tensorflow_setup
from sim.base.errors import WrongSetting
from sim.recording import traces
from trainsim import Recorder

keras = pytest.importorskip("keras")


@pytest.fixture(autouse=True, scope="module")
def as_others_start_it():
    """TensorFlow keeps the threads that it began with, and other tests of this process ask for one."""
    tensorflow_setup.tensorflow(1, "cpu")


def fitted(recorder: Recorder, epochs: int = 2) -> None:
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3, name="first"), keras.layers.Dense(1, name="last")]
    )
    model.compile("sgd", "mse")
    x, y = np.zeros((40, 4), np.float32), np.zeros((40, 1), np.float32)
    model.fit(x, y, batch_size=8, epochs=epochs, verbose=0, validation_data=(x, y), callbacks=[recorder.keras()])


def test_each_batch_is_a_step_of_the_model(tmp_path):
    with Recorder(tmp_path / "run", 8, warmup=2) as recorder:
        fitted(recorder)
    found = traces.read(tmp_path / "run")
    assert (found.header.world, found.header.steps, found.header.batch) == ("keras", 8, 8)
    assert [tuple(one["shape"]) for one in found.header.model["variables"]] == [(4, 3), (3,), (3, 1), (1,)]
    assert found.header.details["versions"]["keras"] == keras.__version__


def test_keras_does_not_show_the_batch(tmp_path):
    with pytest.raises(WrongSetting, match="does not see the batch"):
        Recorder(tmp_path / "run").keras()


def test_a_model_has_its_variables_in_order_and_says_which_are_trained(tmp_path):
    frozen = keras.layers.Dense(3, name="frozen", trainable=False)
    layers = [
        frozen,
        keras.layers.Dropout(0.1),
        keras.layers.BatchNormalization(name="bn"),
        keras.layers.Dense(2, name="last"),
    ]
    model = keras.Sequential([keras.Input((4,)), *layers], name="mine")
    found = trainsim.model(model)
    assert [(one.name.split("/")[-2], one.shape, one.trained) for one in found.created] == [
        *(("frozen", (4, 3), False), ("frozen", (3,), False)),
        *(("bn", (3,), True), ("bn", (3,), True), ("bn", (3,), False), ("bn", (3,), False)),
        *(("last", (3, 2), True), ("last", (2,), True)),
    ]
    assert (found.name, found.numbers) == ("mine", model.count_params())
    found.write(tmp_path / "mine.toml")
    assert trainsim.read_workload(tmp_path / "mine.toml") == found


@pytest.mark.parametrize(("name", "builder"), [("vgg16", "VGG16"), ("inception_v3", "InceptionV3")])
def test_models_of_the_zoo_have_the_same_variables(name, builder):
    made, known = trainsim.model(getattr(keras.applications, builder)(weights=None)), trainsim.read_workload(name)
    assert made.parameters == known.parameters
    assert sorted(one.shape for one in made.variables) == sorted(one.shape for one in known.variables)
