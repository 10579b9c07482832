"""real.models.operations.Operations by TensorFlow."""

from __future__ import annotations

import tensorflow as tf

relu, sigmoid, tanh, add_bias, reshape = tf.nn.relu, tf.nn.sigmoid, tf.nn.tanh, tf.nn.bias_add, tf.reshape


def convolve(x, kernel):
    """As the operation."""
    return tf.nn.conv2d(x, kernel, strides=1, padding="SAME")


def max_pool(x):
    """As the operation."""
    return tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")


def rows(table, numbers):
    """As the operation."""
    return tf.gather(table, tf.cast(numbers, tf.int32))


def concatenate(parts):
    """As the operation."""
    return tf.concat(parts, 1)


def split(x, parts):
    """As the operation."""
    return tf.split(x, parts, axis=1)


def last_state(cell, state, x):
    """As the operation; unrolled, so as many slices as the graph knows."""
    for part in tf.unstack(x, axis=1):
        state = cell(state, part)
    return state


def zeros(like, width):
    """As the operation."""
    return tf.zeros((tf.shape(like)[0], width))
