"""`python -m tailrace` is the `tailrace` command."""

from __future__ import annotations

from tailrace.cli.main import main

main()
