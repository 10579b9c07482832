"""Results of experiments, as rows, tables and figures."""
