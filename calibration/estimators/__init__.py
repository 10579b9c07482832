"""One number or law each, of evidence."""
