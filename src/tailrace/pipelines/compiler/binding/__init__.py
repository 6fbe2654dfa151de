"""Names and types: tree → relational plan."""
