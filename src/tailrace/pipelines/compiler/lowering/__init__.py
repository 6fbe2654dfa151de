"""Plan → operators."""
