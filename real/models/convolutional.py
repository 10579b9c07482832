"""Convolutions, then dense layers: 4-dimensional weights convolve, 2-dimensional ones multiply."""

from __future__ import annotations

from real.models import dense


def pool_each(variables: list, x):
    """2 x 2 max-pooling after every convolution, as in TensorFlow's MNIST and CIFAR-10 tutorials."""
    return _network(variables, x, lambda layer, convolutions: True)


def pool_last(variables: list, x):
    """One 2 x 2 max-pooling, after the last convolution."""
    return _network(variables, x, lambda layer, convolutions: layer == convolutions - 1)


def _network(variables: list, x, pools):
    import tensorflow as tf

    convolutions = sum(len(v.shape) == 4 for v in variables)
    for layer, (kernel, bias) in enumerate(dense.pairs(variables)[:convolutions]):
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, strides=1, padding="SAME"), bias))
        if pools(layer, convolutions):
            x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
    return dense.relu_layers(variables[2 * convolutions :], tf.reshape(x, (-1, variables[2 * convolutions].shape[0])))
