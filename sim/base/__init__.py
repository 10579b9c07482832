"""What all else rests on: errors, files, units, ranges, how far something has come."""
