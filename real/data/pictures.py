"""Pictures as files hold them, and as a workload takes them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Raw(NamedTuple):
    """Pictures and labels of a source: x (samples, height, width[, channels]), y (samples,).

    Pixels are whole numbers up to 255; or others, up to 255 or up to 1.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def spelled(shape: tuple[int, ...]) -> str:
    """28x28x1."""
    return "x".join(map(str, shape))


def check(raw: Raw, classes: int) -> None:
    """Refuse what cannot be trained on.

    Raises:
        ValueError: says what would be allowed.
    """
    for x, y in ((raw.train_x, raw.train_y), (raw.test_x, raw.test_y)):
        if x.ndim not in (3, 4) or y.shape != (len(x),) or not x.size:
            raise ValueError("pictures of shape (samples, height, width[, channels]) and one label each")
        if not (np.issubdtype(y.dtype, np.integer) and y.min() >= 0 and y.max() < classes):
            raise ValueError(f"labels from 0 to {classes - 1}")
        if not (np.issubdtype(x.dtype, np.integer) or np.issubdtype(x.dtype, np.floating)):
            raise ValueError("pictures of numbers")
        if not (x.min() >= 0 and x.max() <= 255):
            raise ValueError("pictures of numbers from 0 to 255, or to 1")
    if raw.train_x.shape[1:] != raw.test_x.shape[1:]:
        raise ValueError("training and test pictures of one shape")


def resized_to(x: np.ndarray, sample_shape: tuple[int, ...]) -> str:
    """The size that pictures `x` are resized to for a workload, as text; empty if they have it.

    Raises:
        ValueError: the workload's inputs are no pictures.
    """
    target = _picture_shape(sample_shape)
    if _with_channels(x).shape[1:] == target:
        return ""
    return spelled(sample_shape if len(sample_shape) > 1 or target[2] > 1 else target[:2])


def fitted(x: np.ndarray, sample_shape: tuple[int, ...]) -> np.ndarray:
    """Pictures as float32 in [0, 1], (samples, *sample_shape): resized, channels repeated or averaged, flattened."""
    x = _scaled(x)
    if x.shape[1:] == tuple(sample_shape):
        return x
    height, width, channels = _picture_shape(sample_shape)
    x = _channels(_resized(_with_channels(x), height, width), channels)
    return np.ascontiguousarray(x).reshape(len(x), *sample_shape)


def _picture_shape(sample_shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(height, width, channels) of a workload's input; a flat one is a square, grey or of three colours."""
    if len(sample_shape) in (2, 3):
        return (*sample_shape, 1)[:3]
    for channels in (1, 3):
        side = math.isqrt(math.prod(sample_shape) // channels)
        if len(sample_shape) == 1 and side * side * channels == sample_shape[0]:
            return side, side, channels
    raise ValueError(f"synthetic; the workload's inputs of {spelled(sample_shape)} are no pictures")


def _scaled(x: np.ndarray) -> np.ndarray:
    counts = np.issubdtype(x.dtype, np.integer) or x.max() > 1
    return np.asarray(x, np.float32) / np.float32(255 if counts else 1)


def _with_channels(x: np.ndarray) -> np.ndarray:
    return x if x.ndim == 4 else x[..., None]


def _resized(x: np.ndarray, height: int, width: int) -> np.ndarray:
    if x.shape[1:3] == (height, width):
        return x
    rows, columns = _zoom_matrix(x.shape[1], height), _zoom_matrix(x.shape[2], width)
    return np.einsum("ih,nhwc,jw->nijc", rows, x, columns, optimize=True)


def _zoom_matrix(given: int, wanted: int) -> np.ndarray:
    """Linear interpolation by scipy.ndimage.zoom is linear in the pixels: done once, as a matrix (wanted, given)."""
    from scipy.ndimage import zoom

    return zoom(np.eye(given, dtype=np.float32), (wanted / given, 1), order=1)


def _channels(x: np.ndarray, channels: int) -> np.ndarray:
    if x.shape[3] == channels:
        return x
    return np.repeat(x.mean(axis=3, keepdims=True), channels, axis=3)
