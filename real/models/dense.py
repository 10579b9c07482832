"""Fully connected layers: variables come as weights, biases, weights, biases ..."""

from __future__ import annotations


def pairs(variables: list) -> list[tuple]:
    """(weights, bias) of each layer."""
    return list(zip(variables[::2], variables[1::2], strict=True))


def layers(variables: list, x, activation):
    """`activation` after every layer but the last; logits, shape (samples, classes)."""
    import tensorflow as tf

    *hidden, (weights, bias) = pairs(variables)
    for w, b in hidden:
        x = activation(tf.nn.bias_add(x @ w, b))
    return tf.nn.bias_add(x @ weights, bias)


def relu_layers(variables: list, x):
    """The toy model of the AMB repository (T. Adikari), fully connected."""
    import tensorflow as tf

    return layers(variables, x, tf.nn.relu)


def sigmoid_layers(variables: list, x):
    """One sigmoid layer of 100 units (I. Schlag, "Distributed Tensorflow Example", 2016)."""
    import tensorflow as tf

    return layers(variables, x, tf.nn.sigmoid)
