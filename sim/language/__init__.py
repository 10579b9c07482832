"""The language of named vectors: primitives in which protocols are written (rank.py), and the worlds that run them."""
