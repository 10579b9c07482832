"""A scenario as a job of the language, and the outcome and trace of a run of it."""
