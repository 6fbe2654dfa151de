"""One running project: a supervisor and its parts, each a process."""
