"""The `tailrace` command; one file per noun."""
