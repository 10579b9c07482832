"""`python -m real.zoo_from_keras`: writes sim/zoo/*.toml, the variables of well-known models as Keras builds them.

Shapes and sizes only, no weights; variables in creation order, which decides where round-robin places them.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from sim import command
from sim.files import write_whole
from sim.workload import NAMED

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
# What reads the picture's 2,048 features and a caption in im2txt (Vinyals et al., "Show and Tell", 2015; seed 001); captions of
# COCO have 12 words, with the start.
WORDS, UNITS, CAPTION = 12_000, 512, 12
CAPTIONER = [
    {"name": "image_embedding/kernel", "shape": [2048, UNITS]},
    {"name": "seq_embedding", "shape": [WORDS, UNITS], "rows": {"per_sample": CAPTION}},
    {"name": "lstm/kernel", "shape": [2 * UNITS, 4 * UNITS]},
    {"name": "lstm/bias", "shape": [4 * UNITS]},
    {"name": "logits/kernel", "shape": [UNITS, WORDS]},
    {"name": "logits/bias", "shape": [WORDS]},
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
    _write_captioning()
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
    table = {
        "name": name,
        "sample_shape": list(model.input_shape[1:]),
        "classes": 1000,
        "batch": batch,
        "flops_per_sample": float(sum(map(_flops, model.layers))),
        "variables": [{"name": v.path, "shape": list(v.shape)} for v in model.trainable_variables],
    }
    _write_table(table)


def _write_captioning() -> None:
    """Inception V3 without its classifier, whose features an LSTM reads."""
    inception = NAMED["inception_v3"]
    dense = sum(math.prod(v["shape"]) for v in CAPTIONER if v["name"] in ("lstm/kernel", "logits/kernel"))
    table = {
        "name": "captioning",
        "sample_shape": list(inception.sample_shape),
        "classes": WORDS,
        "batch": 32,
        "flops_per_sample": inception.flops_per_sample + 2.0 * CAPTION * dense,
        "variables": [{"name": v.name, "shape": list(v.shape)} for v in inception.variables[:-2]] + CAPTIONER,
    }
    _write_table(table)


def _write_table(table: dict) -> None:
    import tomli_w

    path, numbers = FOLDER / f"{table['name']}.toml", sum(math.prod(v["shape"]) for v in table["variables"])
    write_whole(path, lambda file: file.write_text(tomli_w.dumps(table)))
    print(f"real.zoo_from_keras: {path.name}, {numbers:,} numbers", file=sys.stderr)


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
