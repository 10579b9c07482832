"""ResNet-18 (K. He et al., CVPR 2016), with the variables of sim.zoo.residual; kernels are (filters, channels, height, width).

Batch normalisation is that of training: by the mean and variance of the minibatch, or of the partition, also when the model is
evaluated. Its moving statistics are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from real.models.operations import Operations

STEM = 3  # extent of the first kernel, and no pooling, for small pictures
KERNELS = (2, 3, 1, 0)  # from PyTorch's order to height, width, channels, filters
PICTURE = (0, 1, 2)  # samples and places, which statistics are of


def resnet18(nn: Operations, variables: list, x):
    """Two blocks of two convolutions at each of four sizes; logits, shape (samples, classes)."""
    left = iter(variables)
    small = int(variables[0].shape[2]) == STEM
    x = nn.relu(_normalised(nn, left, x, 1 if small else 2))
    if not small:
        x = nn.max_pool(x)
    for stack in range(4):
        for block in range(2):
            x = _block(nn, left, x, shrinks=stack > 0 and block == 0)
    weights, bias = left
    return nn.add_bias(nn.mean(x, (1, 2)) @ nn.transpose(weights, (1, 0)), bias)


def _block(nn: Operations, left: Iterator, x, shrinks: bool):
    found = nn.relu(_normalised(nn, left, x, 2 if shrinks else 1))
    found = _normalised(nn, left, found, 1)
    return nn.relu(found + (_normalised(nn, left, x, 2) if shrinks else x))


def _normalised(nn: Operations, left: Iterator, x, stride: int):
    """A convolution with the next kernel, and batch normalisation."""
    kernel, scale, shift = next(left), next(left), next(left)
    convolved = nn.convolve(x, nn.transpose(kernel, KERNELS), stride)
    return nn.normalise(convolved, PICTURE) * scale + shift
