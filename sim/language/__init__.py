"""The language of named vectors: 13 primitives in which protocols are written (rank.py), and the worlds that run them."""
