"""real.models.operations.Operations by TensorFlow."""

from __future__ import annotations

import tensorflow as tf

from real.models.operations import EPSILON, NEVER

relu, sigmoid, tanh, softmax = tf.nn.relu, tf.nn.sigmoid, tf.nn.tanh, tf.nn.softmax
add_bias, reshape, transpose = tf.nn.bias_add, tf.reshape, tf.transpose


def convolve(x, kernel, stride=1):
    """As the operation."""
    return tf.nn.conv2d(x, kernel, strides=stride, padding="SAME")


def max_pool(x):
    """As the operation."""
    return tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")


def rows(table, numbers):
    """As the operation."""
    return tf.gather(table, tf.cast(numbers, tf.int32))


def mean(x, over):
    """As the operation."""
    return tf.reduce_mean(x, over)


def normalise(x, over):
    """As the operation."""
    middle, variance = tf.nn.moments(x, over, keepdims=True)
    return (x - middle) * tf.math.rsqrt(variance + EPSILON)


def before(x):
    """As the operation."""
    places = x.shape[-1]
    return tf.where(tf.linalg.band_part(tf.ones((places, places), tf.bool), -1, 0), x, NEVER)


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
