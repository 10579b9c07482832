"""What traces say, before anything is fitted."""
