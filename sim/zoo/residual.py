"""Residual networks: K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016 (arXiv 1512.03385), table 1.

Those of 50 layers and more are made of bottlenecks, with the names that Keras gives and in the order in which Keras creates
them; `tests/tensorflow/test_device_setter.py` compares them with Keras. The one of 18 layers has torchvision's names: 11.7 M
parameters; `small` is what CIFAR-10's pictures are trained on (a first convolution of 3 x 3, no pooling, ten classes: 11.2 M).

A forward pass takes two operations for each number of a kernel at each place of its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

from sim.zoo.layers import affine, begins, statistics, variable

WIDTHS = (64, 128, 256, 512)
PICTURE, CLASSES = 224, 1000


def bottlenecks(blocks: Sequence[int], batch: int) -> dict:
    """Blocks of 1 x 1, 3 x 3 and 1 x 1, so many at each of four sizes."""
    named = "conv{}_block{}".format
    layers = [_keras("conv1", 7, 3, 64, 112), *_stacks(blocks, 56, 4, _bottleneck, lambda i, j: named(i + 2, j + 1))]
    channels = 4 * WIDTHS[-1]
    last = [variable("predictions/kernel", channels, CLASSES), variable("predictions/bias", CLASSES)]
    return _pictures(PICTURE, CLASSES, batch, layers, begins(last, channels))


def resnet18(small: bool = False) -> dict:
    """Two blocks of two 3 x 3 at each of four sizes."""
    picture, classes, stem, size = (32, 10, 3, 32) if small else (PICTURE, CLASSES, 7, 56)
    layers = [_torch("conv1", "bn1", stem, 3, 64, 32 if small else 112)]
    layers += _stacks((2, 2, 2, 2), size, 1, _two_convolutions, lambda i, j: f"layer{i + 1}.{j}")
    channels = WIDTHS[-1]
    last = begins(affine("fc", classes, channels, out=classes), channels)
    return _pictures(picture, classes, 128 if small else 64, layers, last)


Layer = tuple[list[dict], int]  # its variables, and the operations of a forward pass


def _pictures(picture: int, classes: int, batch: int, layers: list[Layer], last: list[dict]) -> dict:
    """A model of these layers and a classifier of the numbers that they leave."""
    flops = sum(flops for _, flops in layers) + 2 * prod(last[0]["shape"])
    return {
        "sample_shape": [picture, picture, 3],
        "classes": classes,
        "batch": batch,
        "flops_per_sample": float(flops),
        "variables": [*(one for found, _ in layers for one in found), *last],
    }


def _stacks(blocks: Sequence[int], size: int, times: int, made: Callable, name: Callable) -> Iterator[Layer]:
    """Blocks by `made`, so many of each width; the first layer's input is what the block before has left, `times` the width."""
    channels, before = 64, size
    for stack, (width, several) in enumerate(zip(WIDTHS, blocks, strict=True)):
        for block in range(several):
            (variables, flops), *rest = made(name(stack, block), channels, width, size)
            yield begins(variables, channels * before**2), flops
            yield from rest
            channels, before = times * width, size
        size //= 2


def _bottleneck(name: str, channels: int, width: int, size: int) -> Iterator[Layer]:
    if channels != 4 * width:
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
