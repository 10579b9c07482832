"""What is measured apart from any training: links, ports."""
