"""real.models.operations.Operations by JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from real.models.operations import EPSILON, NEVER

LAYOUT = ("NHWC", "HWIO", "NHWC")  # of input, kernel and output, as TensorFlow has them
WINDOW = (1, 2, 2, 1)  # of a pooling

relu, sigmoid, tanh, softmax = jax.nn.relu, jax.nn.sigmoid, jnp.tanh, jax.nn.softmax
reshape, transpose = jnp.reshape, jnp.transpose


def add_bias(x, bias):
    """As the operation."""
    return x + bias


def convolve(x, kernel, stride=1):
    """As the operation."""
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT)


def max_pool(x):
    """As the operation."""
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, WINDOW, WINDOW, "VALID")


def rows(table, numbers):
    """As the operation."""
    return table[numbers.astype(jnp.int32)]


def mean(x, over):
    """As the operation."""
    return jnp.mean(x, over)


def normalise(x, over):
    """As the operation."""
    return (x - jnp.mean(x, over, keepdims=True)) * jax.lax.rsqrt(jnp.var(x, over, keepdims=True) + EPSILON)


def before(x):
    """As the operation."""
    return jnp.where(jnp.tri(x.shape[-1], dtype=bool), x, NEVER)


def concatenate(parts):
    """As the operation."""
    return jnp.concatenate(parts, 1)


def split(x, parts):
    """As the operation."""
    return jnp.split(x, parts, axis=1)


def last_state(cell, state, x):
    """As the operation; a loop, because XLA takes a minute to compile an unrolled one."""
    return jax.lax.scan(lambda state, part: (cell(state, part), None), state, jnp.moveaxis(x, 1, 0))[0]


def zeros(like, width):
    """As the operation."""
    return jnp.zeros((like.shape[0], width))
