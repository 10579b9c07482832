"""README.md and the pages of docs/ do what they say: files are written, commands run, and print what stands beside them."""

from __future__ import annotations

import pytest
from documents import PAGES, ROOT, fences, play

pytestmark = [pytest.mark.mpi, pytest.mark.tensorflow]
PROGRAMS = [page for page in PAGES if any("long" not in fence.words and fence.commands() for fence in fences(page))]


@pytest.mark.parametrize("page", PROGRAMS, ids=[str(page.relative_to(ROOT)) for page in PROGRAMS])
def test_a_page_does_what_it_says(page, tmp_path):
    assert play(page, tmp_path) == []
