"""The table of proofs: a row a text, and what is not so ends the experiment in a line."""

import json

import pytest

from experiments import proofs
from experiments.kit import kept, pages
from experiments.proving.closed import CLOSED
from real.language.compare import Beside
from sim.base.errors import RunFailed

FOUND = Beside("fmb", 3, 0.02, 0.05, 0.021, 1e-16, (96.0, 96.0))


@pytest.fixture(autouse=True)
def two_texts(monkeypatch):
    monkeypatch.setattr(proofs, "TEXTS", {name: proofs.TEXTS[name] for name in ("fmb", "ddp")})


def test_a_row_for_each_text(tmp_path):
    with pages.keeping() as shown:
        proofs.run(tmp_path)
    (table,) = (kept.part(one, tmp_path) for one in shown)
    assert [row[0] for row in table.rows] == ["ddp", "fmb"]
    assert all(float(row[3]) < 1e-9 and float(row[5]) < 1e-9 and int(row[1]) <= 40 for row in table.rows)


def test_a_step_that_is_not_that_of_the_closed_form_is_a_line(monkeypatch, tmp_path):
    monkeypatch.setattr(proofs, "CLOSED", [one._replace(step_s=(50.0,)) for one in CLOSED])
    with pytest.raises(RunFailed, match=r"^ddp: 5\.0e\+01 s, .*; fmb: 4\.\de\+01 s, \d"):
        proofs.run(tmp_path)


def test_real_runs_are_read_and_shown(monkeypatch, tmp_path):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho 'rank 0: a line'\necho '{json.dumps(FOUND._asdict())}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(proofs.sys, "executable", str(program))
    (one,) = proofs.real("fmb", 4)
    table = kept.part(proofs.of_real([one], 4), tmp_path)
    assert table.rows == [["fmb", "20", "5%", "21", "+5%", "1e-16", "96", "96"]]


def test_real_runs_that_fail_are_a_line(monkeypatch):
    monkeypatch.setattr(proofs.sys, "executable", "false")
    with pytest.raises(RunFailed, match=r"^fmb: "):
        list(proofs.real("fmb", 4))
