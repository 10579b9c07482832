"""What texts are held against: closed forms of their steps (`closed.py`), and definitions of what they train (`definitions.py`)."""
