"""`python tools/zoo_from_keras.py` writes files of sim/zoo, the variables of well-known models as Keras builds them.

Shapes and sizes only, no weights; variables in creation order, which decides where servers get them. Keras lists a model's
variables by the depth of their layers, which is another order where branches meet. The states of random generators are not
there: TensorFlow 1 has no such variables.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

from real.training.tensorflow_setup import tensorflow
from sim.model.workload_text import toml

FOLDER = Path(__file__).parents[1] / "sim" / "zoo"
KERAS = {
    "inception_v3": ("InceptionV3", (299, 299, 3), 64),
    "resnet50": ("ResNet50", (224, 224, 3), 64),
    "vgg16": ("VGG16", (224, 224, 3), 32),
}
WRITTEN = ("inception_v3", "vgg16")  # sim.zoo.residual works out the shapes of the others
# As tf_cnn_benchmarks has it, whose published figures are of batch 512: one tower, pictures of 227 x 227.
ALEXNET = [
    ("conv1", 11, 4, "valid", 64),
    ("pool1", 3, 2),
    ("conv2", 5, 1, "same", 192),
    ("pool2", 3, 2),
    ("conv3", 3, 1, "same", 384),
    ("conv4", 3, 1, "same", 384),
    ("conv5", 3, 1, "same", 256),
    ("pool5", 3, 2),
]


def of_keras(name: str):
    """One of the models that Keras has itself, without weights."""
    builder, shape, _ = KERAS[name]
    return getattr(tensorflow().keras.applications, builder)(weights=None, input_shape=shape)


def created(build: Callable[[], object]) -> tuple[object, list[dict]]:
    """The model that `build` makes, and the file's entry of each variable, in the order in which TensorFlow made them."""
    made = []
    tensorflow().keras.utils.clear_session()  # names of layers are counted anew

    def note(make, **settings):
        made.append(make(**settings))
        return made[-1]

    with tensorflow().variable_creator_scope(note):
        model = build()
    turns = {id(variable): turn for turn, variable in enumerate(made)}
    in_order = sorted(model.weights, key=lambda variable: turns[id(variable.value)])
    return model, [_told(v.path, v.shape, v.trainable) for v in in_order]


def _told(name: str, shape, trained: bool) -> dict:
    return {"name": name, "shape": list(shape)} | ({} if trained else {"trained": False})


def _alexnet():
    keras = tensorflow().keras
    layers = [keras.Input((227, 227, 3))]
    for name, size, stride, *convolution in ALEXNET:
        if convolution:
            padding, filters = convolution
            layers.append(keras.layers.Conv2D(filters, size, stride, padding, activation="relu", name=name))
        else:
            layers.append(keras.layers.MaxPool2D(size, stride, name=name))
    layers.append(keras.layers.Flatten())
    layers += [keras.layers.Dense(units, name=f"fc{i}") for i, units in ((6, 4096), (7, 4096), (8, 1000))]
    return keras.Sequential(layers)


def _write(name: str, model, variables: list[dict], batch: int) -> None:
    table = {
        "name": name,
        "sample_shape": list(model.input_shape[1:]),
        "classes": 1000,
        "batch": batch,
        "flops_per_sample": float(sum(map(_flops, model.layers))),
    }
    (FOLDER / f"{name}.toml").write_text(toml(table, variables))


def _flops(layer) -> float:
    """Multiplications and additions of one forward pass of one sample, of the layers that have kernels."""
    kernel = getattr(layer, "kernel", None)
    if kernel is None:
        return 0.0
    return 2.0 * math.prod(kernel.shape) * math.prod(layer.output.shape[1:-1])


if __name__ == "__main__":
    for name in WRITTEN:
        _write(name, *created(partial(of_keras, name)), KERAS[name][2])
    _write("alexnet", *created(_alexnet), 512)
