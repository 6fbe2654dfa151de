"""For users and for us: fixtures, memory log, fake clock, naive models, contract suites."""
