"""`python -m tailrace.cli`, the same as `tailrace`."""

from tailrace.cli.main import main

main()
