"""A recommender with embedding tables: DLRM.

M. Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019 (arXiv 1906.00091).
13 numbers and 26 categories, as in Criteo's data; every sample reads one row of each table.

All tables have one size, 100,000 rows; real ones have from 3 rows to tens of millions. Layers are those of MLPerf's model.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sim.zoo.layers import affine, multiplied

NUMBERS, CATEGORIES = 13, 26
BOTTOM, TOP = (512, 256, 128), (1024, 1024, 512, 256, 1)


def dlrm(rows: int = 100_000) -> dict:
    """Tables of so many rows, and the dense layers below and above the products of their rows."""
    width = BOTTOM[-1]
    features = CATEGORIES + 1
    products = features * (features - 1) // 2
    tables = [
        {"name": f"emb_l.{i}.weight", "shape": [rows, width], "rows": {"per_sample": 1}} for i in range(CATEGORIES)
    ]
    dense = [*_dense("bot_l", (NUMBERS, *BOTTOM)), *_dense("top_l", (width + products, *TOP))]
    return {
        "sample_shape": [NUMBERS + CATEGORIES],
        "classes": 2,
        "batch": 2048,
        "flops_per_sample": float(2 * (multiplied(dense) + products * width)),
        "variables": [*tables, *dense],
    }


def _dense(name: str, widths: Sequence[int]) -> list[dict]:
    return [
        one
        for i, (before, after) in enumerate(pairwise(widths))
        for one in affine(f"{name}.{2 * i}", after, before, out=after)
    ]
