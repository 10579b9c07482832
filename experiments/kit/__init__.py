"""What experiments share: cells, comparisons, pages."""
