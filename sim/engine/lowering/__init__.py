"""Lowering: the texts of a protocol, from their Python source, to op-codes. Verbs are inlined; what is known before the run is folded.

The subset: `for _ in me.steps()`, `for` over ranges and lists, `while`, `if`, walrus, assignments to names, `me.x`, `me.book.x` and items;
numbers, sets of ranks, lists and dicts of small integers (keys below the number of updates, default 0), comprehensions with one `for`;
letters; functions and verbs over `me`, which may return a letter, a number or a list. Anything else is NotLowered.
"""
