"""Packages that seem not to be installed while another is imported."""

import importlib.util
import json
import sys

import pytest

from real.training.tensorflow_setup import without


def test_packages_are_absent_within_and_there_afterwards(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with without("this", "json"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("this")
        assert importlib.import_module("json") is json
    assert "this" not in sys.modules
    assert importlib.util.find_spec("this") is not None
    with pytest.raises(ZeroDivisionError), without("this"):
        _ = 1 / 0
    assert "this" not in sys.modules
