"""Op-codes of programs. An instruction is 8 integers: the op-code, and up to 7 operands.

Operands named `register` are registers of a strand from 0 on, and numbers of its rank below 0: -1 - field (sim.engine.kernel.layout).
"""

from __future__ import annotations

WIDTH = 8

(
    END,
    JMP,  # to
    BRZ,  # register, to: where it is 0
    NEEDS,  # register: the run ends where it is 0
    MOV,  # register, register
    ALU,  # operation, register, register, register
    NOW,  # register
    MOVL,  # letter, letter
    SETFILL,  # set, first, stop
    SETADD,  # set, register
    SETDEL,  # set, register
    SETHAS,  # register, set, register
    SETLEN,  # register, set
    AFILL,  # list, first, stop, register
    AGET,  # register, list, register
    APUT,  # list, register, register
    APUSH,  # list, register
    APOP,  # register, list: the first
    ALEN,  # register, list
    ACLEAR,  # list
    SLEEP,
    FETCH,
    COMPUTE,
    UNTIL,  # register, partitions
    LAYERS,
    PART,  # register, parts
    TAKEUP,  # letter
    ADD,  # letter
    UPDATE,
    EVALUATE,
    AWAITV,  # register of a variable: until its parameters have come
    LAYER,  # register of a share of the gradient's time, register: last
    SENDV,  # register of a variable
    UPDATEV,  # register of a variable
    BEGINSUM,  # the gradient at hand is about to be summed
    ROUND,  # a round of `me.steps()` is over
    COPYB,  # register, register: bounds of what is copied into one buffer, or out of it
    AGREE,  # 0: seconds of the runtime, 1: of a core
    SEND,  # what, kind of peers, peers, stop, waits, register of the version or OWN, last
    RECV,  # letter, kind of peers, peers, stop, 1 + register of the deadline or 0
    CALL,  # first choice, register, register: a collective of the items between these bounds
    SWAP,  # register to, register source, bytes, 1: adds, 2: brings samples
    GATHER,  # first choice, register, register: rows of as many items, which each rank adds up
    BARRIER,  # first choice: of servers
    NEGO,  # register: gradients agreed on before, and with the next register now; registers of seconds, and for each gradient
    MEET,  # first choice
    CYCLE,  # register: seconds
    PASS,  # to: where what has been agreed on is summed
    FUSE,  # first of 5 registers: next gradient, end, start and stop of a piece, whether it is copied
    FORK,  # to: where the other strand begins
    JOIN,  # 1 for the strand that computes
) = range(51)

# Operations of ALU.
PLUS, MINUS, TIMES, OVER, LESS, AT_MOST, EQUAL, OTHER, LEAST, MOST, FLOOR, REST, AND, OR, XOR = range(15)
EXACT = 16  # added to an operation on integers, whose result a register can hold
GRADIENT, PARAMETERS, NOTE, REQUEST = range(4)  # what a message carries
RANGE, ONE, SET, LIST = range(4)  # kinds of peers: between two ranks, in a register, in a set, in a list
OWN = -999  # the version that the sender has
