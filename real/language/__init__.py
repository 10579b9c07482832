"""The MPI world of the language: the same texts for real. world.py resumes texts, messages.py moves pieces, computing is one thread."""
