"""The version, by itself, so that code that writes it in a file imports nothing else."""

VERSION = "0.1.0"
