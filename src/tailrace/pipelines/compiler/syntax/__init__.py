"""Text → tree: parsed, with errors that point into the text; what no pass understands is refused."""
