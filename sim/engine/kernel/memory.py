"""What programs keep: registers, sets of ranks, and lists and dicts of small integers."""

from __future__ import annotations

from sim.engine.kernel import ops, state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.layout import ENDS, LETTER, NEXT, STAYS, WRONG

MOST = 2.0**53  # integers up to here are exact


@in_place
def read(S, s, r, register):
    """The number in a register of a strand, or of its rank."""
    return state.register(S, s, register).value if register >= 0 else state.number(S, r, -1 - register).value


@in_place
def write(S, s, r, register, value):
    """Put a number into a register."""
    if register >= 0:
        state.register(S, s, register).value = value
    else:
        state.number(S, r, -1 - register).value = value


@in_place
def calculated(operation, x, y):
    """What ALU comes to; comparisons are 0 or 1."""
    if operation == ops.PLUS:
        return x + y
    if operation == ops.MINUS:
        return x - y
    if operation == ops.TIMES:
        return x * y
    if operation == ops.OVER:
        return x / y
    if operation == ops.LEAST:
        return min(x, y)
    if operation == ops.MOST:
        return max(x, y)
    if operation >= ops.FLOOR:
        return of_integers(operation, x, y)
    return 1.0 if compares(operation, x, y) else 0.0


@compiled
def of_integers(operation, x, y):
    """The result of an operator that is mostly for integers."""
    if operation == ops.FLOOR:
        return x // y
    if operation == ops.REST:
        return x % y
    if operation == ops.AND:
        return (int(x) & int(y)) + 0.0
    if operation == ops.OR:
        return (int(x) | int(y)) + 0.0
    return (int(x) ^ int(y)) + 0.0


@in_place
def compares(operation, x, y):
    """Whether a comparison holds."""
    if operation == ops.LESS:
        return x < y
    if operation == ops.AT_MOST:
        return x <= y
    return (x == y) == (operation == ops.EQUAL)


@compiled
def calculate_exactly(S, s, r, line):
    """ALU on integers of a user's text: those that a register cannot hold end the run."""
    x, y = read(S, s, r, line.c), read(S, s, r, line.d)
    operation = line.a - ops.EXACT
    if operation >= ops.FLOOR and y == 0.0:
        return ENDS + WRONG
    value = calculated(operation, x, y)
    if not -MOST < value < MOST:
        return ENDS + WRONG
    write(S, s, r, line.b, value)
    return NEXT


@in_place
def move(S, strand, s, r, line):
    """An instruction about registers alone, or a jump."""
    op, a, b = line.op, line.a, line.b
    if op == ops.ALU and a >= ops.EXACT:
        return calculate_exactly(S, s, r, line)
    if op == ops.ALU:
        if (a == ops.OVER or a == ops.FLOOR or a == ops.REST) and read(S, s, r, line.d) == 0.0:
            return ENDS + WRONG
        write(S, s, r, b, calculated(a, read(S, s, r, line.c), read(S, s, r, line.d)))
    elif op == ops.JMP:
        strand.pc = a
        return STAYS
    elif op == ops.BRZ:
        if read(S, s, r, a) == 0.0:
            strand.pc = b
            return STAYS
    elif op == ops.NEEDS:
        if read(S, s, r, a) == 0.0:
            return ENDS + WRONG
    elif op == ops.MOV:
        write(S, s, r, a, read(S, s, r, b))
    elif op == ops.NOW:
        state.register(S, s, a).value = strand.clock_s
    else:
        for i in range(LETTER):
            state.register(S, s, a + i).value = state.register(S, s, b + i).value
    return NEXT


@in_place
def has(S, strand, k, rank):
    """Whether a rank is in a strand's set."""
    found = state.rank_set(S, k)
    return found.first <= rank < found.stop and state.bit(S, strand.set_at + found.at + rank - found.first).value != 0


@compiled
def fill_set(S, strand, s, k, first, stop):
    """A set of all ranks between two."""
    found, count = state.rank_set(S, k), 0
    for i in range(found.stop - found.first):
        inside = first <= found.first + i < stop
        state.bit(S, strand.set_at + found.at + i).value = inside
        count += inside
    state.member(S, s, k).value = count


@compiled
def change_set(S, strand, s, k, rank, inside):
    """Put a rank into a set, or take it out."""
    found = state.rank_set(S, k)
    at = strand.set_at + found.at + rank - found.first
    state.member(S, s, k).value += inside - state.bit(S, at).value
    state.bit(S, at).value = inside


@in_place
def use_set(S, strand, s, r, line):
    """An instruction about a set of ranks."""
    op, a, b = line.op, line.a, line.b
    if op == ops.SETFILL:
        fill_set(S, strand, s, a, b, line.c)
    elif op == ops.SETADD or op == ops.SETDEL:
        found = state.rank_set(S, a)
        if not found.first <= read(S, s, r, b) < found.stop:
            return ENDS + WRONG
        change_set(S, strand, s, a, int(read(S, s, r, b)), 1 if op == ops.SETADD else 0)
    elif op == ops.SETHAS:
        state.register(S, s, a).value = 1.0 if has(S, strand, b, int(read(S, s, r, line.c))) else 0.0
    else:
        state.register(S, s, a).value = state.member(S, s, b).value
    return NEXT


@in_place
def use_list(S, strand, s, r, line):
    """An instruction about a list."""
    op, a, b = line.op, line.a, line.b
    if op == ops.AGET or op == ops.APOP or op == ops.ALEN:
        place = int(read(S, s, r, line.c)) if op == ops.AGET else 0
        if S.own and op != ops.ALEN:
            place += state.length(S, s, b).value if place < 0 else 0
            if not 0 <= place < state.length(S, s, b).value:
                return ENDS + WRONG
        state.register(S, s, a).value = taken(S, strand, s, op, b, place)
        return NEXT
    at = strand.list_at + state.number_list(S, a).at
    if op == ops.AFILL:
        value = read(S, s, r, line.d)
        for i in range(b, line.c):
            state.item(S, at + i).value = value
        state.length(S, s, a).value = max(line.c, state.length(S, s, a).value)
        return NEXT
    if op == ops.ACLEAR:
        state.length(S, s, a).value = 0
        return NEXT
    place = state.length(S, s, a).value if op == ops.APUSH else int(read(S, s, r, b))
    if S.own and op == ops.APUT:
        place += state.length(S, s, a).value if place < 0 else 0
        if not 0 <= place < state.length(S, s, a).value:
            return ENDS + WRONG
    if place >= state.number_list(S, a).room:
        return ENDS + WRONG
    state.item(S, at + place).value = read(S, s, r, b if op == ops.APUSH else line.c)
    state.length(S, s, a).value += op == ops.APUSH
    return NEXT


@compiled
def taken(S, strand, s, op, k, place):
    """The item of a list at a place, its first one, which is removed, or its length."""
    if op == ops.ALEN:
        return float(state.length(S, s, k).value)
    at = strand.list_at + state.number_list(S, k).at
    if op == ops.AGET:
        return state.item(S, at + place).value
    first = state.item(S, at).value
    state.length(S, s, k).value -= 1
    for i in range(state.length(S, s, k).value):
        state.item(S, at + i).value = state.item(S, at + i + 1).value
    return first
