"""Files of models that other libraries wrote: a reader for each format, and what is no parameter by its name."""
