"""A user's folder: its declarations, its topology, its scaffold."""
