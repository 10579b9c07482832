"""The base of everything: errors, files, units, ranges, progress."""
