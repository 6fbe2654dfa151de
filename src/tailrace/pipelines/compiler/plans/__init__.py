"""The relational plan between SQL and operators, and what is known of its rows."""
