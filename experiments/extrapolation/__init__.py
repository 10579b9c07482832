"""Published tables, each with rows that are held out: fitted on the others, predicted, and judged with their intervals."""
