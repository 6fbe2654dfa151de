"""SQLite files by triggers: changes are written in the user's own transaction."""
