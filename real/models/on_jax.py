"""real.models.operations.Operations by JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

LAYOUT = ("NHWC", "HWIO", "NHWC")  # of input, kernel and output, as TensorFlow has them
WINDOW = (1, 2, 2, 1)  # of a pooling

relu, sigmoid, tanh, reshape = jax.nn.relu, jax.nn.sigmoid, jnp.tanh, jnp.reshape


def add_bias(x, bias):
    """As the operation."""
    return x + bias


def convolve(x, kernel):
    """As the operation."""
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=LAYOUT)


def max_pool(x):
    """As the operation."""
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, WINDOW, WINDOW, "VALID")


def rows(table, numbers):
    """As the operation."""
    return table[numbers.astype(jnp.int32)]


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
