"""The kit of experiments: cells, comparisons, pages."""
