"""Data, digits, words and files that the tests write; none needs TensorFlow."""

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


def write_npz(path, **changes):
    arrays = {"x_train": X[:30], "y_train": Y[:30], "x_test": X[30:], "y_test": Y[30:]} | changes
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    return path


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


def test_the_seed_draws_synthetic_pictures():
    first, again, other = (load("synthetic", (5,), 3, seed).train_x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert load("synthetic", (5,), 3, 1).name == "synthetic 5"


def test_npz(tmp_path):
    path = str(write_npz(tmp_path / "m.npz"))
    loaded = load(path, SHAPE, 10, 0)
    assert (loaded.name, loaded.synthetic) == ("m.npz", False)
    np.testing.assert_array_equal(loaded.train_x, X[:30, ..., None] / np.float32(255))
    np.testing.assert_array_equal(loaded.test_y, Y[30:])
    assert (loaded.train_x.dtype, loaded.train_y.dtype) == (np.float32, np.int32)
    assert load(path, (784,), 10, 0).name == "m.npz"
    assert load(path, (32, 32, 3), 10, 0).name == "m.npz resized to 32x32x3"


WRONG = {
    "no such path": lambda folder: folder / "none",
    "an empty folder": lambda folder: folder,
    "no archive": lambda folder: write_npz(folder / "a.npz").write_bytes(b"text") and folder / "a.npz",
    "an empty archive": lambda folder: write_npz(folder / "a.npz").write_bytes(b"") or folder / "a.npz",
    "an archive without tests": lambda folder: write_npz(folder / "a.npz", x_test=None),
    "objects in the archive": lambda folder: write_npz(folder / "a.npz", x_train=np.array([{}])),
    "more pictures than labels": lambda folder: write_npz(folder / "a.npz", y_test=Y[:9]),
    "a label too large": lambda folder: write_npz(folder / "a.npz", y_test=Y[30:] + 10),
    "labels that are fractions": lambda folder: write_npz(folder / "a.npz", y_test=Y[30:] / 2),
    "rows, not pictures": lambda folder: write_npz(folder / "a.npz", x_train=X[:30, 0]),
    "words": lambda folder: write_npz(folder / "a.npz", x_train=X[:30].astype(str)),
    "not a number": lambda folder: write_npz(folder / "a.npz", x_train=np.full((30, 28, 28), np.nan)),
    "negative pixels": lambda folder: write_npz(folder / "a.npz", x_train=X[:30] - 128.0),
    "two shapes": lambda folder: write_npz(folder / "a.npz", x_test=X[30:, 1:]),
    "no pictures": lambda folder: write_npz(folder / "a.npz", x_test=X[:0], y_test=Y[:0]),
}


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
