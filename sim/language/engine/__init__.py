"""The compiled world of the language."""
