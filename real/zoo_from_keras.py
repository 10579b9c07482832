"""`python -m real.zoo_from_keras`: writes sim/zoo/*.toml, the variables of well-known models as Keras builds them.

Shapes and sizes only, no weights; variables in creation order, which decides where round-robin places them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sim import command
from sim.files import write_whole

FOLDER = Path(__file__).parents[1] / "sim" / "zoo"
KERAS = {
    "inception_v3": ("InceptionV3", (299, 299, 3), 64),
    "resnet50": ("ResNet50", (224, 224, 3), 64),
    "resnet101": ("ResNet101", (224, 224, 3), 64),
    "resnet152": ("ResNet152", (224, 224, 3), 32),
    "vgg16": ("VGG16", (224, 224, 3), 32),
}
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


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = command.Parser(
        prog="real.zoo_from_keras", description="Write the variables of well-known models to sim/zoo."
    )
    parser.parse_args(argv)
    FOLDER.mkdir(exist_ok=True)
    for name, (builder, shape, batch) in KERAS.items():
        _write(name, _keras(builder, shape), batch)
    _write("alexnet", _alexnet(), 512)
    return 0


def _keras(builder: str, shape: tuple[int, int, int]):
    from real.tensorflow_setup import tensorflow

    applications = tensorflow().keras.applications
    return getattr(applications, builder)(weights=None, input_shape=shape)


def _alexnet():
    from real.tensorflow_setup import tensorflow

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


def _write(name: str, model, batch: int) -> None:
    import tomli_w

    table = {
        "name": name,
        "sample_shape": list(model.input_shape[1:]),
        "classes": 1000,
        "batch": batch,
        "flops_per_sample": float(sum(map(_flops, model.layers))),
        "variables": [{"name": v.path, "shape": list(v.shape)} for v in model.trainable_variables],
    }
    path = FOLDER / f"{name}.toml"
    write_whole(path, lambda file: file.write_text(tomli_w.dumps(table)))
    print(f"real.zoo_from_keras: {path.name}, {model.count_params():,} numbers", file=sys.stderr)


def _flops(layer) -> float:
    """Multiplications and additions of one forward pass of one sample, of the layers that have kernels."""
    kernel = getattr(layer, "kernel", None)
    if kernel is None:
        return 0.0
    positions = 1
    for extent in layer.output.shape[1:-1]:
        positions *= extent
    size = 1
    for extent in kernel.shape:
        size *= extent
    return 2.0 * size * positions


if __name__ == "__main__":
    command.run("real.zoo_from_keras", main)
