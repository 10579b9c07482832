"""Access to records by address, in compiled functions."""

from __future__ import annotations

from typing import Any

import llvmlite.ir
import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

INTEGER = llvmlite.ir.IntType(64)
BYTE = llvmlite.ir.IntType(8)
NUMBER, NUMBER_BYTES = llvmlite.ir.DoubleType(), 8


def access(state: np.dtype, name: str, kind: np.dtype, row_bytes: int | None) -> Any:
    """A function that finds a record of an array whose address is in the state: found(S, i), or found(S, i, j) in rows.

    Args:
        state: the record of the state, with fields `name`_at and, of a grid whose rows differ from run to run, `name`_width.
        kind: of the array's records.
        row_bytes: of a grid's row, if they are the same in every run; 0 if they differ from run to run, None if the array is none.
    """
    found, at = from_dtype(kind), _offset(state, f"{name}_at")

    def pointer(context, builder, signature, given):
        place = _number(context, builder, signature, given, 1)
        if row_bytes is not None:
            column = builder.mul(_number(context, builder, signature, given, 2), INTEGER(kind.itemsize))
            row = INTEGER(row_bytes)
            if row_bytes == 0:
                width = builder.load(_field(builder, given[0], _offset(state, f"{name}_width"), INTEGER))
                row = builder.mul(width, INTEGER(kind.itemsize))
            place = builder.add(builder.mul(place, row), column)
        else:
            place = builder.mul(place, INTEGER(kind.itemsize))
        start = builder.load(_field(builder, given[0], at, BYTE.as_pointer()))
        return builder.bitcast(builder.gep(start, [place]), context.get_value_type(found))

    if row_bytes is not None:

        @intrinsic
        def find_in_row(_typing, S, i, j):
            return found(S, i, j), pointer

        return find_in_row

    @intrinsic
    def find(_typing, S, i):
        return found(S, i), pointer

    return find


def numbers_of_ranks(state: np.dtype, name: str) -> Any:
    """A function that finds a number of each rank in an array's row: found(S, i, at), an array over which loops can be vectorised."""
    at, wide, ranks = (_offset(state, field) for field in (f"{name}_at", f"{name}_width", "ranks"))
    found = types.Array(types.float64, 1, "C")

    @intrinsic
    def find(_typing, S, i, j):
        def view(context, builder, signature, given):
            width, size = (builder.load(_field(builder, given[0], field, INTEGER)) for field in (wide, ranks))
            place = builder.mul(_number(context, builder, signature, given, 1), width)
            place = builder.add(place, _number(context, builder, signature, given, 2))
            start = builder.load(_field(builder, given[0], at, NUMBER.as_pointer()))
            made, step = context.make_array(found)(context, builder), INTEGER(NUMBER_BYTES)
            populate_array(made, builder.gep(start, [place]), [size], [step], step, meminfo=None)
            return made._getvalue()

        return found(S, i, j), view

    return find


def _offset(state: np.dtype, field: str) -> int:
    assert state.fields is not None
    return state.fields[field][1]


def _field(builder, record, offset: int, kind):
    """A pointer to a field of a record."""
    start = builder.bitcast(record, BYTE.as_pointer())
    return builder.bitcast(builder.gep(start, [INTEGER(offset)]), kind.as_pointer())


def _number(context, builder, signature, given, which: int):
    return context.cast(builder, given[which], signature.args[which], types.int64)
