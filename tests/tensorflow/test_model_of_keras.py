"""Workloads of Keras models, by trainsim.model."""

from __future__ import annotations

import pytest

import trainsim
from real.training import tensorflow_setup

keras = pytest.importorskip("keras")


@pytest.fixture(autouse=True, scope="module")
def as_others_start_it():
    """TensorFlow keeps the threads that it began with, and other tests of this process ask for one."""
    tensorflow_setup.tensorflow(1, "cpu")


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
