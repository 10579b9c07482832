"""Data sets: labelled pictures (digits that scikit-learn carries, synthetic ones, the user's files), or sentences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from real.data import cifar, digits, idx, npz, pictures, synthetic
from real.data.batches import Batches
from real.data.pictures import Raw
from sim.base.errors import WrongSetting
from sim.model.workload import Workload

__all__ = ["FORMATS", "Batches", "Data", "data_for", "default_of", "load"]

FORMATS = (npz, cifar, idx)  # each says whether it `recognises` a path, and can `read` it
ALLOWED = (
    "digits, synthetic, an .npz with x_train y_train x_test y_test, or a folder of MNIST idx or CIFAR-10 python files"
)
WORD_KINDS = (np.float32, np.int32, np.float32, np.int32)  # what graphs are fed with, whatever they read


@dataclass(frozen=True)
class Data:
    """A data set: samples to train on and to test with.

    Args:
        name: the source, and its changes for the workload.
        synthetic: no real pictures.
        train_x, test_x: float32 in [0, 1], or numbers of words, shape (samples, *sample_shape).
        train_y, test_y: int32 labels from 0 to classes - 1, shape (samples,).
    """

    name: str
    synthetic: bool
    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def data_for(workload: Workload, name_or_path: str | None, seed: int) -> Data:
    """Data that a workload can be trained on; its default if none is named: digits, or words if it reads words.

    Raises:
        WrongSetting: see `load`; or pictures for a workload that reads words, or words for one that reads pictures.
    """
    default = default_of(workload)
    if (name_or_path == "words") != (default == "words") and name_or_path is not None:
        raise WrongSetting("--data", name_or_path, f"{default}, for {workload.name} reads {workload.inputs}")
    return load(name_or_path or default, workload.sample_shape, workload.classes, seed)


def default_of(workload: Workload) -> str:
    """The data set of a workload if none is named."""
    return "words" if workload.inputs == "words" else "digits"


def load(name_or_path: str, sample_shape: tuple[int, ...], classes: int, seed: int) -> Data:
    """Data of a workload's shape: `digits`, `synthetic`, `words`, or files at a path.

    Pictures of another size are resized, and the name says so. The seed draws synthetic pictures, and which digits are
    held out.

    Raises:
        WrongSetting: missing, malformed or unsuitable files.
    """
    if name_or_path == "synthetic":
        raw = synthetic.pictures(sample_shape, classes, seed)
        return _data(f"synthetic {pictures.spelled(sample_shape)}", raw, sample_shape, synthetic=True)
    if name_or_path == "words":
        raw = synthetic.sentences(*sample_shape, classes, seed)
        return Data("words", True, *(part.astype(kind) for part, kind in zip(raw, WORD_KINDS, strict=True)))
    name, raw = (
        ("digits", digits.read(seed)) if name_or_path == "digits" else (_stem(name_or_path), _read(name_or_path))
    )
    try:
        pictures.check(raw, classes)
        resized = pictures.resized_to(raw.train_x, sample_shape)
        return _data(name + (f" resized to {resized}" if resized else ""), raw, sample_shape, synthetic=False)
    except ValueError as error:
        raise WrongSetting("--data", name_or_path, str(error)) from error


def _stem(path: str) -> str:
    return Path(path).resolve().name


def _read(path: str) -> Raw:
    readers = [format_ for format_ in FORMATS if format_.recognises(Path(path))]
    if not readers:
        raise WrongSetting("--data", path, ALLOWED)
    try:
        return readers[0].read(Path(path))
    except (OSError, ValueError) as error:
        raise WrongSetting("--data", path, f"{ALLOWED} ({' '.join(str(error).split())})") from error


def _data(name: str, raw: Raw, sample_shape: tuple[int, ...], synthetic: bool) -> Data:
    fit = pictures.fitted
    train_x, test_x = fit(raw.train_x, sample_shape), fit(raw.test_x, sample_shape)
    return Data(name, synthetic, train_x, raw.train_y.astype(np.int32), test_x, raw.test_y.astype(np.int32))
