"""Where the compiled kernel is kept: one process compiles it, all others load it, and none loads one that is older than its sources."""

import os
import sys

import pytest
from sim.engine import kept


@pytest.fixture
def sources(monkeypatch, tmp_path):
    """A kernel of one file, which has not been compiled."""
    found = tmp_path / "sources"
    found.mkdir()
    (found / "one.py").write_text("# a function")
    monkeypatch.setattr(kept, "SOURCES", found)
    monkeypatch.setattr(kept, "folder", kept.folder.__wrapped__)
    monkeypatch.setattr(kept, "can_compile", lambda: True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return found


def test_it_is_kept_by_all_that_it_is_made_of(sources):
    """Numba asks for the file of each function alone, and not for those that it calls."""
    before = kept.folder()
    assert before.parent == sources / "__pycache__"
    (sources / "two.py").write_text("# another")
    after = kept.folder()
    assert after != before
    assert kept.keep(lambda: None)
    assert list((sources / "__pycache__").iterdir()) == [after]


def test_one_process_compiles_it_while_others_go_on_without(sources):
    asked = []
    assert kept.keep(lambda: asked.append(kept.keep(lambda: asked.append("again"))))
    assert asked == [False]
    assert kept.keep(lambda: asked.append("again"))
    assert asked == [False]


def test_what_does_not_compile_is_not_kept(sources):
    def fails():
        raise TypeError("cannot compile")

    with pytest.raises(TypeError):
        kept.keep(fails)
    assert not kept.is_kept()


def test_numba_is_not_loaded_to_find_that_nothing_is_kept(sources, monkeypatch):
    """A folder of it may be there, of a process that did not compile it."""
    empty = kept.folder()
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not kept.is_kept()
    monkeypatch.delitem(sys.modules, "numba")
    (empty / kept.ALL).write_text(kept._stamps())
    assert kept.is_kept()


def test_it_is_kept_at_home_where_the_installation_is_read_only(sources, monkeypatch, tmp_path):
    takes_files = kept._takes_files
    monkeypatch.setattr(kept, "_takes_files", lambda at: sources not in at.parents and takes_files(at))
    assert tmp_path / "home" / "trainsim" in kept.folder().parents


def test_what_a_read_only_installation_has_compiled_is_taken_over(sources, monkeypatch, tmp_path):
    """All of it or nothing, and not where something is kept already."""
    takes_files, installed = kept._takes_files, kept.folder()
    (installed / "one").mkdir()
    (installed / "one" / "function.nbc").write_text("compiled")
    monkeypatch.setattr(kept, "_takes_files", lambda at: sources not in at.parents and takes_files(at))
    found = kept.folder()
    assert tmp_path / "home" in found.parents
    assert not list(found.iterdir())
    (installed / kept.ALL).write_text(kept._stamps())
    assert kept.folder() == found
    assert kept.is_kept()
    assert (found / "one" / "function.nbc").read_text() == "compiled"
    assert list(found.parent.iterdir()) == [found]
    (found / kept.ALL).unlink()
    kept.folder()
    assert not (found / kept.ALL).exists()


def test_sources_that_were_copied_are_not_taken_to_be_compiled(sources):
    """As in layers of an image, which keep whole seconds: numba would compile them in the middle of a job."""
    compiled = []
    assert kept.keep(lambda: compiled.append(1))
    assert kept.is_kept()
    os.utime(sources / "one.py", (1e9, 1e9))
    assert not kept.is_kept()
    assert kept.keep(lambda: compiled.append(2))
    assert kept.is_kept()
    assert compiled == [1, 2]


def test_nothing_is_compiled_where_numba_is_told_so(monkeypatch):
    """Plain Python would take much longer than the event world."""
    from numba import config

    monkeypatch.setattr(config, "DISABLE_JIT", True)
    assert not kept.can_compile()
