"""The `tailrace` command, also as `python -m tailrace`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a broker's start takes the short way."""
    if sys.argv[1:3] == ["broker", "start"]:
        from tailrace.broker import start

        found = start.parse(sys.argv[3:])
        if found is not None:
            start.main(found)
            return
    from tailrace.cli.main import main as long_way

    long_way()


if __name__ == "__main__":
    main()
