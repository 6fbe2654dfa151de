"""`tailrace cluster`: leaders, in-sync replicas and controller; elections and moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click
import orjson

from tailrace.cli.output import (
    bootstrap_address,
    json_option,
    log_option,
    print_json,
    print_rows,
)
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.client.operations import ClusterState, Operations, Throttle

WATCH_SECONDS = 2.0


@click.group()
def cluster() -> None:
    """Leaders, in-sync replicas and controller of a log; elections and moves."""


@cluster.command()
@click.option("--watch", is_flag=True, help="Every two seconds, until Ctrl-C.")
@log_option
@json_option
def status(watch: bool, address: str | None, as_json: bool) -> None:
    """The cluster now; exit status 1 if a partition lacks a replica or a leader, or nobody
    is controller."""
    from tailrace.client.admin import Admin
    from tailrace.client.operations import Flapping, Operations
    from tailrace.clock import SYSTEM

    with Admin(bootstrap_address(address)) as admin:
        operations, flapping = Operations(admin), Flapping()
        while True:
            state = operations.status()
            moving = flapping.observe(state, SYSTEM.monotonic())
            if as_json:
                # One look cannot tell what comes and goes.
                print_json({**state.document(), "flapping": moving if watch else None})
            else:
                _tell(state)
                for each in moving:
                    click.echo(
                        f"{each['topic']}/{each['partition']}: its in-sync replicas changed "
                        f"{each['changes']} times within half an hour"
                    )
            if not watch:
                break
            SYSTEM.sleep(WATCH_SECONDS)
    if not state.good:
        raise SystemExit(1)


def _tell(state: ClusterState) -> None:
    controller = state.controller
    if controller.id < 0:
        click.echo("no controller")
    elif controller.epoch is None:
        click.echo(f"controller {controller.id}")
    else:
        voters = ", ".join(map(str, controller.voters))
        click.echo(f"controller {controller.id}, epoch {controller.epoch}, voters {voters}")
    print_rows(
        [
            {
                "broker": each.id,
                "state": each.state,
                "address": each.address,
                "leaders": each.leaders,
                "replicas": each.replicas,
                "bytes": each.bytes if each.bytes >= 0 else "",
            }
            for each in state.brokers
        ],
        ["broker", "state", "address", "leaders", "replicas", "bytes"],
        as_json=False,
    )
    for words, places in (
        ("without a leader", state.offline),
        ("under-replicated", state.under_replicated),
        ("under min.insync.replicas", state.under_min_insync),
    ):
        if places:
            named = ", ".join(f"{each['topic']}/{each['partition']}" for each in places[:10])
            more = f" and {len(places) - 10} more" if len(places) > 10 else ""
            click.echo(f"{len(places)} {words}: {named}{more}")
    for each in state.suspects[:3]:
        click.echo(f"broker {each['broker']} is missed by {each['partitions']} of them")
    for move in state.moves:
        done = "" if move.progress is None else f", {move.progress:.0%}"
        click.echo(f"moving {move.topic}/{move.partition} to {list(move.adding)}{done}")
    if state.left_throttles:
        click.echo("a throttle was left by a move that is over:")
        for throttle in state.throttles:
            click.echo(f"  {throttle.kind} {throttle.name}: {throttle.setting}={throttle.value}")
    copies = max((each.replication_factor for each in state.topics), default=1)
    if state.good:
        lone = len(state.brokers) == 1 and copies == 1
        click.echo("one broker, one copy of everything" if lone else "every replica is in sync")


@cluster.command()
@click.argument("places", metavar="[TOPIC[/PARTITION] …]", nargs=-1)
@click.option("--unclean", is_flag=True, help="For partitions without a leader: take a replica that may miss records.")  # fmt: skip
@click.option("--accept-loss", is_flag=True, help="What such a replica misses is lost.")
@click.option("--execute", is_flag=True, help="Hold the elections; without it, the plan.")
@log_option
@json_option
def elect(
    places: tuple[str, ...],
    unclean: bool,
    accept_loss: bool,
    execute: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Give partitions their preferred leader back; or, with --unclean, any leader at all."""
    if unclean and not accept_loss:
        raise UsageError(
            "an unclean election loses what the new leader misses",
            detail="acknowledged records that only the old leader had are gone for good",
            hint="start the old leader's broker instead, or add --accept-loss",
        )
    if accept_loss and not unclean:
        raise UsageError("only an unclean election loses anything", hint="leave --accept-loss out")
    from tailrace.client.admin import Admin
    from tailrace.client.elections import plan_or_elect

    with Admin(bootstrap_address(address)) as admin:
        elections = plan_or_elect(admin, places, unclean=unclean, execute=execute)
    rows = [asdict(each) for each in elections]
    if as_json:
        print_json({"executed": execute, "elections": rows})
        return
    nothing = "every partition has a leader" if unclean else "every partition has its preferred leader"  # fmt: skip
    print_rows(rows, ["topic", "partition", "leader", "preferred"], as_json=False, empty=nothing)
    if rows and not execute:
        click.echo("nothing was changed; --execute holds the elections")


@cluster.command()
@click.argument("places", metavar="[TOPIC[/PARTITION] …]", nargs=-1)
@click.option("--from", "leaving", type=int, metavar="BROKER", help="Take this broker off its partitions.")  # fmt: skip
@click.option("--to", metavar="BROKER,…", help="The brokers to move to; all others that are up.")
@click.option("--throttle", metavar="SIZE", help="Bytes a second, such as 50MB; needs --wait.")
@click.option("--execute", is_flag=True, help="Begin the moves; without it, the plan.")
@click.option("--wait", is_flag=True, help="Until they are done.")
@click.option("--cancel", is_flag=True, help="Stop moves that are on their way, and take throttles away.")  # fmt: skip
@log_option
@json_option
def move(
    places: tuple[str, ...],
    leaving: int | None,
    to: str | None,
    throttle: str | None,
    execute: bool,
    wait: bool,
    cancel: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Move partitions to other brokers.

    TOPIC … --to 1,2 leaves no copy anywhere else; --from 3 empties a broker. Moves go on when
    this command ends; `tailrace cluster status` shows how far they are.
    """
    rate = _move_options(places, leaving, to, throttle, execute, wait, cancel)
    from tailrace.client.admin import Admin
    from tailrace.client.moves import plan_or_cancel, plan_or_move
    from tailrace.client.operations import Operations

    with Admin(bootstrap_address(address)) as admin:
        if cancel:
            moves = plan_or_cancel(admin, places, execute=execute)
        else:
            brokers = None if to is None else [int(each) for each in to.split(",")]
            operations = Operations(admin)

            def done(moved: set[tuple[str, int]]) -> None:
                if wait:
                    _await_moves(operations, moved)

            moves = plan_or_move(
                admin,
                places,
                leaving=leaving,
                to=brokers,
                execute=execute,
                throttle=rate,
                guard=partial(_watched, address),
                then=done,
            )
    if as_json:
        print_json({"executed": execute, "moves": [each.document() for each in moves]})
        return
    nothing = "nothing is on its way" if cancel else "nothing to move"
    rows = [each.document() for each in moves]
    print_rows(rows, ["topic", "partition", "from", "to"], as_json=False, empty=nothing)
    if rows and not execute:
        click.echo("nothing was changed; --execute begins it")


def _move_options(
    places: tuple[str, ...],
    leaving: int | None,
    to: str | None,
    throttle: str | None,
    execute: bool,
    wait: bool,
    cancel: bool,
) -> int | None:
    """The throttle in bytes a second. Raises UsageError."""
    if cancel and (leaving is not None or to is not None or throttle is not None or wait):
        raise UsageError("--cancel takes topics and --execute only")
    if not cancel and leaving is None and (to is None or not places):
        raise UsageError(
            "what is to move, and where to?",
            hint="tailrace cluster move orders --to 1,2; tailrace cluster move --from 3",
        )
    if to is not None and not all(each.isdigit() for each in to.split(",")):
        raise UsageError(f"--to takes ids of brokers, not {to!r}", hint="for example --to 1,2")
    if wait and not execute:
        raise UsageError("--wait needs --execute")
    if throttle is None:
        return None
    if not wait:
        raise UsageError(
            "--throttle needs --wait",
            detail="the throttle is taken away when the moves are done, by this command",
        )
    from tailrace.config import parse_size
    from tailrace.errors import ConfigValueError

    try:
        rate = parse_size(throttle)
    except ConfigValueError as error:
        raise UsageError(f"--throttle: {error}", hint=error.hint) from error
    if rate < 1:
        raise UsageError("--throttle is at least one byte a second")
    return rate


@contextmanager
def _watched(address: str | None, throttles: Sequence[Throttle]) -> Iterator[None]:
    """Another process takes the throttles away if this one is killed while this lasts."""
    import subprocess
    import sys

    from tailrace.client.errors import ClientError

    where = [] if address is None else [address]
    told = {"throttles": [asdict(each) for each in throttles]}
    watcher = subprocess.Popen(
        [sys.executable, "-P", "-m", "tailrace.cli.keep_watch", *where],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    assert watcher.stdin is not None
    with watcher.stdin as words:
        words.write(orjson.dumps(told) + b"\n")
        words.flush()
        try:
            yield
        except ClientError:  # a throttle may be where nobody answers: the watcher tries on
            raise
        except BaseException:
            words.write(b"done\n")
            raise
        words.write(b"done\n")
    watcher.wait()


def _await_moves(operations: Operations, places: set[tuple[str, int]]) -> None:
    from tailrace.clock import SYSTEM

    while any((each.topic, each.partition) in places for each in operations.moves()):
        SYSTEM.sleep(0.5)
