"""`python -m tailrace.cli.keep_watch [ADDRESS]`: what `tailrace cluster move --throttle` starts.

Standard input has one line, {"throttles": […]}, and a second, `done`, when the command has taken
its throttles away. If the second never comes, the command was killed: they are taken away here once no partition moves.
"""

from __future__ import annotations

import sys

import orjson

from tailrace.cli.output import bootstrap_address
from tailrace.client import moves
from tailrace.client.admin import Admin
from tailrace.client.operations import Throttle

DONE = "done"


def main(address: str | None = None) -> None:
    told = orjson.loads(sys.stdin.readline())
    if sys.stdin.readline().strip() == DONE:
        return
    with Admin(bootstrap_address(address, reach=False)) as admin:
        moves.keep_watch(admin, [Throttle(**each) for each in told["throttles"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
