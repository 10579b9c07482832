"""trainsim.Recorder's callback for Keras."""

from __future__ import annotations

import numpy as np
import pytest

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
