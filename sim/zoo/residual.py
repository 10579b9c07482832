"""Residual networks: K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016 (arXiv 1512.03385), table 1.

Those of 50 layers and more are made of bottlenecks, with the names that Keras gives and in the order in which Keras creates
them; `tests/tensorflow/test_device_setter.py` compares them with Keras. The one of 18 layers has torchvision's names: 11.7 M
parameters; `small` is what CIFAR-10's pictures are trained on (a first convolution of 3 x 3, no pooling, ten classes: 11.2 M).

A forward pass takes two operations for each number of a kernel at each place of its output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from sim.zoo.layers import affine, begins, statistics, variable

WIDTHS = (64, 128, 256, 512)
PICTURE, CLASSES = 224, 1000


def bottlenecks(blocks: Sequence[int], batch: int) -> dict:
    """Blocks of 1 x 1, 3 x 3 and 1 x 1, so many at each of four sizes."""
    layers = [_keras("conv1", 7, 3, 64, 112)]
    channels, size = 64, 56
    before = size  # of a block's input
    for stack, (width, several) in enumerate(zip(WIDTHS, blocks, strict=True), 2):
        for block in range(1, several + 1):
            found = _bottleneck(f"conv{stack}_block{block}", channels, width, size, block == 1)
            layers += _block(found, channels * before**2)
            channels, before = 4 * width, size
        size //= 2
    variables = [one for found, _ in layers for one in found]
    last = [variable("predictions/kernel", channels, CLASSES), variable("predictions/bias", CLASSES)]
    variables += begins(last, channels)
    flops = sum(flops for _, flops in layers) + 2 * channels * CLASSES
    return _pictures(PICTURE, CLASSES, batch, flops, variables)


def resnet18(small: bool = False) -> dict:
    """Two blocks of two 3 x 3 at each of four sizes."""
    picture, classes, stem, size = (32, 10, 3, 32) if small else (PICTURE, CLASSES, 7, 56)
    layers = [_torch("conv1", "bn1", stem, 3, 64, 32 if small else 112)]
    channels, before = 64, size  # of a block's input
    for stack, width in enumerate(WIDTHS, 1):
        for block in range(2):
            found = _two_convolutions(f"layer{stack}.{block}", channels, width, size)
            layers += _block(found, channels * before**2)
            channels, before = width, size
        size //= 2
    variables = [one for found, _ in layers for one in found]
    variables += begins(affine("fc", classes, channels, out=classes), channels)
    flops = sum(flops for _, flops in layers) + 2 * channels * classes
    return _pictures(picture, classes, 128 if small else 64, flops, variables)


def _pictures(picture: int, classes: int, batch: int, flops: int, variables: list[dict]) -> dict:
    table = {"sample_shape": [picture, picture, 3], "classes": classes, "batch": batch}
    return table | {"flops_per_sample": float(flops), "variables": variables}


Layer = tuple[list[dict], int]  # its variables, and the operations of a forward pass


def _block(layers: Iterator[Layer], items: int) -> list[Layer]:
    """Layers whose first one's input has so many numbers for a sample."""
    (variables, flops), *rest = layers
    return [(begins(variables, items), flops), *rest]


def _bottleneck(name: str, channels: int, width: int, size: int, first: bool) -> Iterator[Layer]:
    if first:
        yield _keras(f"{name}_0", 1, channels, 4 * width, size)
    yield _keras(f"{name}_1", 1, channels, width, size)
    yield _keras(f"{name}_2", 3, width, width, size)
    yield _keras(f"{name}_3", 1, width, 4 * width, size)


def _two_convolutions(name: str, channels: int, width: int, size: int) -> Iterator[Layer]:
    yield _torch(f"{name}.conv1", f"{name}.bn1", 3, channels, width, size)
    yield _torch(f"{name}.conv2", f"{name}.bn2", 3, width, width, size)
    if channels != width:
        yield _torch(f"{name}.downsample.0", f"{name}.downsample.1", 1, channels, width, size)


def _keras(name: str, extent: int, channels: int, width: int, size: int) -> Layer:
    """A convolution with a bias, and batch normalisation."""
    kernel = variable(f"{name}_conv/kernel", extent, extent, channels, width)
    rest = [variable(f"{name}_{one}", width) for one in ("conv/bias", "bn/gamma", "bn/beta")]
    known = statistics(f"{name}_bn/", width, "moving_mean", "moving_variance")
    return [kernel, *rest, *known], _flops(kernel, size)


def _torch(convolution: str, norm: str, extent: int, channels: int, width: int, size: int) -> Layer:
    """A convolution without a bias, and batch normalisation."""
    kernel = variable(f"{convolution}.weight", width, channels, extent, extent)
    known = statistics(f"{norm}.", width, "running_mean", "running_var")
    return [kernel, *affine(norm, width, out=width), *known], _flops(kernel, size)


def _flops(kernel: dict, size: int) -> int:
    return 2 * prod(kernel["shape"]) * size**2
