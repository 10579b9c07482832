"""Sizes on the wire, by themselves, so that code that counts bytes imports nothing else."""

ITEM_BYTES = 4  # float32 throughout, and int32 for the number of a row
HEADER_BYTES = 32  # every message starts with step, version, samples and one spare: four 64-bit integers
