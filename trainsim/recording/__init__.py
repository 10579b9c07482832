"""What records a training loop that is somebody else's: it imports nothing but Python's own library, and what the loop has imported."""
