"""Convolutions, then dense layers: 4-dimensional weights convolve, 2-dimensional ones multiply."""

from __future__ import annotations

from real.models import dense
from real.models.operations import Operations


def pool_each(nn: Operations, variables: list, x):
    """2 x 2 max-pooling after every convolution, as in TensorFlow's MNIST and CIFAR-10 tutorials."""
    return _network(nn, variables, x, lambda layer, convolutions: True)


def pool_last(nn: Operations, variables: list, x):
    """One 2 x 2 max-pooling, after the last convolution."""
    return _network(nn, variables, x, lambda layer, convolutions: layer == convolutions - 1)


def _network(nn: Operations, variables: list, x, pools):
    convolutions = sum(len(v.shape) == 4 for v in variables)
    for layer, (kernel, bias) in enumerate(dense.pairs(variables)[:convolutions]):
        x = nn.relu(nn.add_bias(nn.convolve(x, kernel), bias))
        if pools(layer, convolutions):
            x = nn.max_pool(x)
    others = variables[2 * convolutions :]
    return dense.relu_layers(nn, others, nn.reshape(x, (-1, others[0].shape[0])))
