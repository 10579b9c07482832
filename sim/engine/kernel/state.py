"""The state of a run: one record with its constants, its counters, and where its arrays are; and access to what is in the arrays.

A function is handed the record alone, as a pointer. Tens of arrays as arguments of each call took half of the time, or, where numba
put functions in place of their calls, three times as long to compile. Without compilation the same functions are plain Python.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sim.engine.kernel import layout
from sim.engine.kernel.compiling import IS_COMPILED
from sim.engine.kernel.layout import FLOAT, INTEGER, record

LISTS = {  # records by number
    "event": layout.EVENT,  # a heap
    "soon": INTEGER,  # events of now, a queue
    "instruction": layout.INSTRUCTION,  # of all programs
    "strand": layout.STRAND,  # each rank, and its thread beside the computation
    "rank": layout.RANK,
    "todo": INTEGER,  # strands that go on now, the last one first
    "line": layout.LINE,  # costs, by layout's numbers
    "rank_set": layout.RANK_SET,
    "bit": INTEGER,  # whether ranks are in sets, of all strands
    "number_list": layout.NUMBER_LIST,
    "item": FLOAT,  # of lists, of all strands
    "message": layout.MESSAGE,
    "free_message": INTEGER,
    "departure": layout.DEPARTURE,
    "free_departure": INTEGER,
    "inbox": layout.INBOX,
    "port": layout.PORT,
    "window": layout.WINDOW,  # from rank to rank
    "group": layout.GROUP,  # cores of a host
    "core": layout.CORE,
    "turn": layout.TURN,  # the last task of each rank
    "row": layout.ROW,  # exchanges of all collectives
    "table": layout.TABLE,  # collectives
    "choice": layout.CHOICE,
    "bound": layout.BOUND,
    "called": layout.CALLED,
    "variable_bound": INTEGER,
    "part": FLOAT,  # the share of the computing that each gradient takes
    "gradient": layout.GRADIENT,  # of the run, at all ranks
    "decision": layout.DECISION,
    "known_wait": layout.KNOWN_WAIT,
    "flow": layout.FLOW,
    "free_flow": INTEGER,
    "active": INTEGER,  # flows whose bytes pass
    "bucket": layout.BUCKET,  # ports as flows share them
    "callback": layout.CALLBACK,
    "step_end": layout.STEP_END,
    "wait": layout.WAIT,
    "missed": INTEGER,  # gradients that rank 0 added, by the updates that they had missed
    "round": layout.ROUND,
    "variable_bytes": FLOAT,  # where variables travel one by one
    "variable_sum_s": FLOAT,  # seconds of adding the gradient of each
    "server_of": INTEGER,  # variable
    "side_s": FLOAT,  # seconds of what is added or updated side by side
    "gpu": layout.GPU,  # that ranks share
    "background": layout.BACKGROUND,
    "free_background": INTEGER,
}
GRIDS = {  # records by two numbers
    "register": FLOAT,  # strand, register
    "number": FLOAT,  # rank, one of its first fields
    "member": INTEGER,  # strand, set: how many ranks are in it
    "length": INTEGER,  # strand, list
    "task": layout.TASK,  # core, place
    "sleep": FLOAT,  # rank, and again for each further sleep of a step; step
    "at_hand": INTEGER,  # rank, variable: parameters that have come; versions that a server has let leave
    "added": INTEGER,  # rank, variable: gradients of its host
    "own_end": FLOAT,  # rank, step: when it ended its own
    "computing": FLOAT,
    "input": FLOAT,
    "update": FLOAT,
    "poll": FLOAT,  # rank, number
    "size": layout.SIZE,  # what travels, and of gradients how many minibatches; server
    "sides": layout.ROWS,  # of a gradient of so many minibatches, and last of an update; server
    "rows": layout.ROWS,  # table, rank
    "value": INTEGER,  # call, bound
    "ready": FLOAT,  # rank, variable
    "ending": layout.ENDING,  # decision, rank
    "lane": FLOAT,  # kind, rank or part
    "stream": INTEGER,  # rank, rank: the flow between them
    "announced": INTEGER,  # rank, rank: the message
    "weight": FLOAT,  # rank, number
    "gpu_work": layout.GPU_WORK,  # GPU, place
    "moment": FLOAT,  # rank, number of the piece
}
_PLACES = (
    " ".join(f"{name}_at {name}_count" for name in (*LISTS, *GRIDS)) + " " + " ".join(f"{name}_width" for name in GRIDS)
)
_FLOATS, _INTEGERS = zip(layout.CONSTANTS, layout.COUNTERS, strict=True)
STATE = record(" ".join(_FLOATS), " ".join((*_INTEGERS, _PLACES)))
KINDS = LISTS | GRIDS
OFFSETS = {name: of[1] for name, of in (STATE.fields or {}).items()}
FIELDS = {  # where the record has the address of an array, its length and its width
    name: [OFFSETS[f"{name}_{what}"] // 8 for what in ("at", "count", "width")[: 2 + (name in GRIDS)]] for name in KINDS
}
ALIGNED = 64  # bytes, at a multiple of which arrays begin
_arrays: dict[int, np.ndarray] = {}  # by address, where nothing is compiled


class Place(NamedTuple):
    """Where an array is: in which piece of memory, from which byte on, its kind of records and its shape."""

    piece: int
    at: int
    kind: Any
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Of the array."""
        return self.kind.itemsize * math.prod(self.shape)


class Beginning:
    """What runs begin with: a record, and arrays one behind another, of which each run has its own.

    There are two pieces of memory. The first has arrays that are something, and then those that are zeros: pages that the system gives
    as they are used. The second is not written before the run does.

    Args:
        arrays: by the names of LISTS and GRIDS; some are a shape, a kind, and whether they are zeros (sim.engine.arrays.shape.Empty).
        numbers: constants and counters by name; others are 0.
    """

    def __init__(self, arrays: dict[str, Any], numbers: dict[str, float]):
        record, self.places, self.bytes = np.zeros(1, STATE), dict[str, Place](), [0, 0]
        for name, number in numbers.items():
            record[name] = number
        self.numbers = record.view(np.int64)
        full = {name: shaped(name, array) for name, array in arrays.items() if isinstance(array, np.ndarray)}
        for name, array in full.items():
            self._put(name, 0, array.shape)
        self.begun = np.zeros(self.bytes[0], np.uint8)
        for name, array in full.items():
            at = self.places[name].at
            self.begun[at : at + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        for name, (shape, _, zeros) in ((name, array) for name, array in arrays.items() if name not in full):
            self._put(name, 0 if zeros else 1, shape if isinstance(shape, tuple) else (shape,))
        fields = [[FIELDS[name][0] for name, place in self.places.items() if place.piece == piece] for piece in (0, 1)]
        if "rank" in self.places:
            self.numbers[FIELDS["number"][0]] = self.places["rank"].at
            fields[0].append(FIELDS["number"][0])
        self.addresses = [np.array(several, int) for several in fields]  # which are from the beginning of a piece

    def _put(self, name: str, piece: int, shape: tuple[int, ...]) -> None:
        place = self.places[name] = Place(piece, self.bytes[piece], KINDS[name], shape)
        for field, number in zip(FIELDS[name], (place.at, *shape), strict=False):
            self.numbers[field] = number
        self.bytes[piece] += (place.bytes // ALIGNED + 1) * ALIGNED


def shaped(name: str, array: np.ndarray) -> np.ndarray:
    """An array as records, in one piece."""
    kind, array = KINDS[name], np.ascontiguousarray(array)
    assert kind.itemsize in (array.itemsize, array.itemsize * array.shape[-1]), name
    if array.dtype is kind:
        return array
    columns = array.shape[-1] * array.itemsize // kind.itemsize
    return array.view(kind).reshape(len(array), *[columns] * (name in GRIDS))


class Arrays(dict[str, np.ndarray]):
    """The arrays of a run by name; what is not asked for is not made.

    Args:
        places: of all.
        memory: the two pieces.
    """

    def __init__(self, places: dict[str, Place], memory: list[np.ndarray]):
        super().__init__()
        self._places, self._memory = places, memory

    def __missing__(self, name: str) -> np.ndarray:
        place = self._places[name]
        found = self[name] = np.ndarray(place.shape, place.kind, self._memory[place.piece], place.at)
        return found

    @property
    def bytes(self) -> int:
        """Of all."""
        others = sum(array.nbytes for array in self.values() if not any(array.base is one for one in self._memory))
        return others + sum(one.nbytes for one in self._memory)


class State:
    """The arrays of a run, and its record.

    Args:
        beginning: what it begins with.
    """

    def __init__(self, beginning: Beginning):
        begun, (zeros, room) = beginning.begun, beginning.bytes
        memory = [np.zeros(zeros, np.uint8), np.empty(room, np.uint8)]
        memory[0][: len(begun)] = begun
        self.arrays, self._numbers = Arrays(beginning.places, memory), beginning.numbers.copy()
        self.record = self._numbers.view(STATE)  # a copy of whose own takes ten times as long
        for piece, fields in zip(memory, beginning.addresses, strict=True):
            self._numbers[fields] += piece.__array_interface__["data"][0]
        if not IS_COMPILED:
            for name in beginning.places:
                _arrays[int(self._numbers[FIELDS[name][0]])] = self.arrays[name]

    def place(self, name: str, array: np.ndarray) -> None:
        """Put an array in place of another one.

        Fields are found by their place, which takes a tenth of the time that their names do.
        """
        places, numbers = FIELDS[name], self._numbers
        array = self.arrays[name] = shaped(name, array)
        address = array.__array_interface__["data"][0]
        numbers[places[0]], numbers[places[1]] = address, len(array)
        if name in GRIDS:
            numbers[places[2]] = array.shape[1]
        if not IS_COMPILED:
            _arrays[address] = array


def _access(name: str) -> Any:
    """A function that finds a record of an array: found(S, i), or found(S, i, j)."""
    if IS_COMPILED:
        from sim.engine.kernel.pointers import access

        row_bytes = (name == "number") * layout.RANK.itemsize if name in GRIDS else None
        return access(STATE, name, LISTS.get(name) or GRIDS[name], row_bytes)
    if name == "number":
        return lambda S, i, j: _arrays[int(S.rank_at)].view(FLOAT).reshape(int(S.rank_count), -1)[int(i), int(j)]
    field = f"{name}_at"
    if name in GRIDS:
        return lambda S, i, j: _arrays[int(S[field])][int(i), int(j)]
    return lambda S, i: _arrays[int(S[field])][int(i)]


def _lanes() -> Any:
    """A function that finds a number of each rank in a lane, from a place on: found(S, kind, at)."""
    if IS_COMPILED:
        from sim.engine.kernel.pointers import numbers_of_ranks

        return numbers_of_ranks(STATE, "lane")
    return lambda S, kind, at: _arrays[int(S.lane_at)]["value"][int(kind), int(at) : int(at + S.ranks)]


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Each array has a function of its name, which finds a record of it: state.rank(S, r)."""


globals().update({name: _access(name) for name in KINDS})
lanes = _lanes()
