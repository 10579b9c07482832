"""Phases of an instruction by which ranks send, receive or call: where a strand goes on when it is woken."""

from __future__ import annotations

(
    BEGINS,
    CHOOSES,  # the next message or exchange
    CALLS_PORT,
    SENDS,
    SENT,
    RECEIVES,
    GOT,  # a message, or its deadline has come
    LANDS,  # the last byte is waited for
    ASKS,  # the sender of an announced message for it
    TAKES,
    DEPARTS,  # the rank's own message is waited for
    ADDED,
    ALL_SENT,
    ALL_AHEAD,  # messages that were sent ahead are waited for, as one event
    ALL_LEFT,
    OVER,
) = range(16)
