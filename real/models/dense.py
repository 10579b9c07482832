"""Fully connected layers: variables come as weights, biases, weights, biases ..."""

from __future__ import annotations

from real.models.operations import Operations


def pairs(variables: list) -> list[tuple]:
    """(weights, bias) of each layer."""
    return list(zip(variables[::2], variables[1::2], strict=True))


def layers(nn: Operations, variables: list, x, activation):
    """`activation` after every layer but the last; logits, shape (samples, classes)."""
    *hidden, (weights, bias) = pairs(variables)
    for w, b in hidden:
        x = activation(nn.add_bias(x @ w, b))
    return nn.add_bias(x @ weights, bias)


def one_layer(nn: Operations, variables: list, x):
    """Softmax regression: the loss is convex."""
    ((weights, bias),) = pairs(variables)
    return nn.add_bias(x @ weights, bias)


def relu_layers(nn: Operations, variables: list, x):
    """The toy model of the AMB repository (T. Adikari), fully connected."""
    return layers(nn, variables, x, nn.relu)


def sigmoid_layers(nn: Operations, variables: list, x):
    """One sigmoid layer of 100 units (I. Schlag, "Distributed Tensorflow Example", 2016)."""
    return layers(nn, variables, x, nn.sigmoid)
