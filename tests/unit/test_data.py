"""Data loaders, over files that the tests write; none needs TensorFlow."""

import gzip
import os
import pickle

import numpy as np
import pytest

from real import data
from real.data import Batches, data_for, load
from real.models import FORWARD
from sim.base.errors import WrongSetting
from sim.laws.randomness import generator
from sim.model.workload import NAMED

RNG = np.random.default_rng(0)
X, Y = RNG.integers(256, size=(40, 28, 28), dtype=np.uint8), RNG.integers(10, size=40).astype(np.uint8)
SHAPE = (28, 28, 1)


def idx_bytes(array):
    """An idx file by its specification: 0, 0, type, dimensions; sizes big-endian; data."""
    return bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def write_idx(folder, zipped):
    for name, array in (("train-images-idx3", X[:30]), ("train-labels-idx1", Y[:30]), ("t10k-images-idx3", X[30:])):
        _write(folder, name, idx_bytes(array), zipped)
    _write(folder, "t10k-labels-idx1", idx_bytes(Y[30:]), zipped)
    return folder


def _write(folder, name, content, zipped):
    path = folder / (f"{name}-ubyte.gz" if zipped else f"{name}-ubyte")
    path.write_bytes(gzip.compress(content) if zipped else content)


def write_cifar(folder, protocol=2, pictures=3):
    for name in ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"):
        planes = np.arange(pictures * 3072, dtype=np.uint64).astype(np.uint8).reshape(pictures, 3072)
        batch = {b"data": planes, b"labels": [1] * pictures, b"batch_label": b"testing"}
        (folder / name).write_bytes(pickle.dumps(batch, protocol))
    return folder


def write_npz(path, **changes):
    arrays = {"x_train": X[:30], "y_train": Y[:30], "x_test": X[30:], "y_test": Y[30:]} | changes
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    return path


def check_mnist(loaded, name):
    assert (loaded.name, loaded.synthetic) == (name, False)
    np.testing.assert_array_equal(loaded.train_x, X[:30, ..., None] / np.float32(255))
    np.testing.assert_array_equal(loaded.test_y, Y[30:])
    assert (loaded.train_x.dtype, loaded.train_y.dtype) == (np.float32, np.int32)


def test_the_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    from real.data import digits

    for ours, theirs in zip(digits._all(), load_digits(return_X_y=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)


SEEING = [name for name in FORWARD if NAMED[name].inputs == "pictures"]


@pytest.mark.parametrize("workload", [NAMED[name] for name in SEEING], ids=SEEING)
@pytest.mark.parametrize("source", ["digits", "synthetic"])
def test_every_workload_can_be_fed(source, workload):
    loaded = load(source, workload.sample_shape, workload.classes, seed=0)
    for x, y in ((loaded.train_x, loaded.train_y), (loaded.test_x, loaded.test_y)):
        assert x.shape == (len(y), *workload.sample_shape)
        assert (x.dtype, y.dtype) == (np.float32, np.int32)
        assert 0 <= x.min() < 0.05
        assert 0.95 < x.max() <= 1
        assert set(y) == set(range(10))
    assert loaded.synthetic == (source == "synthetic")


def test_words_have_a_habit():
    """Numbers of words, some far more frequent than others; after a word mostly the same one."""
    made = data_for(NAMED["lstm_lm"], None, seed=0)
    assert (made.name, made.synthetic, made.train_x.dtype, made.train_y.dtype) == ("words", True, np.float32, np.int32)
    assert made.train_x.shape == (len(made.train_y), 20)
    x, y = made.train_x.astype(int), made.train_y
    assert x.min() >= 0
    assert x.max() < 10_000
    counts = np.bincount(x.reshape(-1))
    assert counts.max() > 50 * counts.mean()
    last = np.bincount(x[:, -1]).argmax()
    followers = np.bincount(y[x[:, -1] == last])
    assert followers.max() > 0.85 * followers.sum()
    np.testing.assert_array_equal(made.train_x, load("words", (20,), 10_000, 0).train_x)
    assert not np.array_equal(made.train_x, load("words", (20,), 10_000, 1).train_x)


@pytest.mark.parametrize(("name", "source"), [("lstm_lm", "digits"), ("lstm_lm", "synthetic"), ("mlp", "words")])
def test_words_are_for_models_that_read_them(name, source):
    with pytest.raises(WrongSetting, match=f"--data: given '{source}'; allowed: .* {name} reads"):
        data_for(NAMED[name], source, 0)


@pytest.mark.parametrize(
    ("shape", "name"),
    [((28, 28, 1), "digits resized to 28x28x1"), ((100,), "digits resized to 10x10"), ((8, 8, 1), "digits")],
)
def test_the_name_says_what_was_done_to_the_digits(shape, name):
    assert load("digits", shape, 10, seed=0).name == name


def test_digits_are_all_there_and_resizing_keeps_the_picture():
    small, large = (load("digits", shape, 10, seed=3) for shape in ((8, 8, 1), (29, 29, 3)))
    assert len(small.train_y) + len(small.test_y) == 1797
    np.testing.assert_array_equal(small.train_y, large.train_y)
    for channel in range(3):  # linear interpolation keeps the 8 x 8 grid points: 28 steps over 7
        np.testing.assert_allclose(large.train_x[:, ::4, ::4, channel], small.train_x[..., 0], atol=1e-6)


@pytest.mark.parametrize("zipped", [True, False])
def test_idx_folder(tmp_path, zipped):
    check_mnist(load(str(write_idx(tmp_path, zipped)), SHAPE, 10, 0), tmp_path.name)


def test_idx_file(tmp_path):
    check_mnist(
        load(str(write_idx(tmp_path, True) / "train-images-idx3-ubyte.gz"), SHAPE, 10, 0), "train-images-idx3-ubyte.gz"
    )


def test_npz(tmp_path):
    path = str(write_npz(tmp_path / "m.npz"))
    check_mnist(load(path, SHAPE, 10, 0), "m.npz")
    assert load(path, (784,), 10, 0).name == "m.npz"
    assert load(path, (32, 32, 3), 10, 0).name == "m.npz resized to 32x32x3"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_cifar_planes_become_channels(tmp_path, protocol):
    loaded = load(str(write_cifar(tmp_path, protocol)), (32, 32, 3), 10, 0)
    assert (loaded.name, len(loaded.train_y), len(loaded.test_y)) == (tmp_path.name, 15, 3)
    red, green, blue = loaded.test_x[0, 3, 7] * 255  # row 3, column 7 of planes that count modulo 256
    np.testing.assert_allclose([red, green, blue], [103, 103, 103])
    assert loaded.test_x[0, 3, 8, 0] * 255 == pytest.approx(104)


class Harmful:
    """Unpickling it would run a command."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_a_pickle_that_runs_code_is_refused(tmp_path):
    write_cifar(tmp_path)
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": Harmful(tmp_path / "harmed")}))
    with pytest.raises(WrongSetting, match=r"--data: .*refuses to import \w+\.system"):
        load(str(tmp_path), (32, 32, 3), 10, 0)
    assert not (tmp_path / "harmed").exists()


def broken_cifar(folder, content):
    (write_cifar(folder) / "test_batch").write_bytes(content)
    return folder


def broken_idx(folder, name="train-images-idx3", content=b"\0\0\x08\x03", zipped=False):
    _write(write_idx(folder, zipped), name, content, zipped)
    return folder


def without(folder, name):
    (folder / name).unlink()
    return folder


WRONG = {
    "no such path": lambda folder: folder / "none",
    "an empty folder": lambda folder: folder,
    "no archive": lambda folder: write_npz(folder / "a.npz").write_bytes(b"text") and folder / "a.npz",
    "an empty archive": lambda folder: write_npz(folder / "a.npz").write_bytes(b"") or folder / "a.npz",
    "an archive without tests": lambda folder: write_npz(folder / "a.npz", x_test=None),
    "objects in the archive": lambda folder: write_npz(folder / "a.npz", x_train=np.array([Harmful("x")])),
    "more pictures than labels": lambda folder: write_npz(folder / "a.npz", y_test=Y[:9]),
    "a label too large": lambda folder: write_npz(folder / "a.npz", y_test=Y[30:] + 10),
    "labels that are fractions": lambda folder: write_npz(folder / "a.npz", y_test=Y[30:] / 2),
    "rows, not pictures": lambda folder: write_npz(folder / "a.npz", x_train=X[:30, 0]),
    "words": lambda folder: write_npz(folder / "a.npz", x_train=X[:30].astype(str)),
    "not a number": lambda folder: write_npz(folder / "a.npz", x_train=np.full((30, 28, 28), np.nan)),
    "negative pixels": lambda folder: write_npz(folder / "a.npz", x_train=X[:30] - 128.0),
    "two shapes": lambda folder: write_npz(folder / "a.npz", x_test=X[30:, 1:]),
    "no pictures": lambda folder: write_npz(folder / "a.npz", x_test=X[:0], y_test=Y[:0]),
    "a short idx file": broken_idx,
    "another idx type": lambda folder: broken_idx(folder, content=b"\0\0\x0d\x03" + idx_bytes(X)[4:]),
    "a cut idx file": lambda folder: broken_idx(folder, content=idx_bytes(X)[:-1]),
    "a cut gzip file": lambda folder: without(broken_gzip(folder), "train-labels-idx1-ubyte"),
    "no gzip file": lambda folder: (
        write_idx(folder, True).joinpath("t10k-labels-idx1-ubyte.gz").write_bytes(b"x") and folder
    ),
    "one idx file missing": lambda folder: without(write_idx(folder, False), "t10k-labels-idx1-ubyte"),
    "one CIFAR file missing": lambda folder: without(write_cifar(folder), "test_batch"),
    "a CIFAR file that is text": lambda folder: broken_cifar(folder, b"text"),
    "a CIFAR file of something else": lambda folder: broken_cifar(folder, pickle.dumps([1, 2])),
    "a CIFAR file of other pictures": lambda folder: broken_cifar(folder, pickle.dumps({b"data": X, b"labels": [1]})),
}


def broken_gzip(folder):
    write_idx(folder, False)
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(Y[:30]))[:-9])
    return folder


@pytest.mark.parametrize("make", WRONG.values(), ids=list(WRONG))
def test_wrong_files_are_refused_on_one_line(tmp_path, make):
    with pytest.raises(WrongSetting) as refusal:
        load(str(make(tmp_path)), SHAPE, 10, 0)
    assert refusal.value.setting == "--data"
    assert "\n" not in str(refusal.value)


def test_digits_do_not_fit_inputs_that_are_no_pictures():
    with pytest.raises(WrongSetting, match="synthetic; the workload's inputs of 7 are no pictures"):
        load("digits", (7,), 10, 0)


def small(samples):
    x = np.arange(samples, dtype=np.float32)[:, None]
    return data.Data("numbers", True, x, x[:, 0].astype(np.int32), x, x[:, 0].astype(np.int32))


@pytest.mark.parametrize("batch", [1, 3, 10, 25])
def test_minibatches_show_each_sample_once_an_epoch(batch):
    batches = Batches(small(10), batch, seed=0, replication=0, rank=1)
    drawn = [next(batches) for _ in range(20)]
    assert all(x.shape == (batch, 1) and y.shape == (batch,) for x, y in drawn)
    assert all((x[:, 0] == y).all() for x, y in drawn)
    labels = np.concatenate([y for _, y in drawn])
    for epoch in range(len(labels) // 10):
        assert sorted(labels[10 * epoch : 10 * epoch + 10]) == list(range(10))


def test_minibatches_are_the_stream_of_seed_replication_and_rank():
    def labels(*key):
        return tuple(next(Batches(small(100), 30, *key))[1])

    assert labels(0, 0, 1) == labels(0, 0, 1) == tuple(generator(0, 0, 1, "data").permutation(100)[:30])
    assert len({labels(*key) for key in ((0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 2))}) == 4


def test_epochs_differ():
    batches = Batches(small(10), 10, 0, 0, 0)
    assert next(batches)[1].tolist() != next(batches)[1].tolist()
