"""`tailrace erase`: what is known of a subject or stands in a record, taken away for good."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tailrace.cli.output import bootstrap_address, in_project, json_option, print_json, print_rows

if TYPE_CHECKING:
    from tailrace.client.log import Log
    from tailrace.facts.erasures import Erased, Erasures
    from tailrace.facts.excising import Found
    from tailrace.facts.sealing import Keys
    from tailrace.project.graph import Topology
    from tailrace.project.load import Project


WITH_VIEWS = ("topic", "table", "view")
"""Kinds of nodes by way of which what was erased is cleared."""


@click.group()
def erase() -> None:
    """Erase a subject, single records or a key, with a proof."""


@dataclass
class _Opened:
    project: Project
    log: Log

    @cached_property
    def keys(self) -> Keys:
        """Raises EventsKeyError where the project has no key."""
        from tailrace.facts.sealing import Keys

        return Keys(self.log, self.project.settings.events.key)

    @cached_property
    def book(self) -> Erasures:
        from tailrace.facts.erasures import Erasures

        return Erasures(self.log)

    @property
    def places(self) -> list[Path]:
        """Directories of this machine that hold what the project keeps."""
        settings = self.project.settings
        found = [settings.state_directory]
        if settings.log.bootstrap is None and not settings.log.directory.is_relative_to(found[0]):
            found.append(settings.log.directory)
        return [each for each in found if each.is_dir()]

    def close(self) -> None:
        for name in ("keys", "book"):
            if name in self.__dict__:
                self.__dict__[name].close()


@contextmanager
def _opened() -> Iterator[_Opened]:
    from tailrace.client.log import connect
    from tailrace.project.load import load

    project = load(Path())
    with connect(bootstrap_address(None)) as log:
        opened = _Opened(project, log)
        try:
            yield opened
        finally:
            opened.close()


_reason = click.option("--reason", help="Why; it stays in the log for good, so name nobody.")
_timeout = click.option(
    "--timeout", default=60.0, help="Seconds to wait until nothing of it is left in the log."
)


@erase.command()
@click.argument("subject")
@_reason
@click.option("--dry-run", is_flag=True, help="Only count what would become unreadable, by place.")
@_timeout
@in_project
@json_option
@click.pass_context
def subject(
    context: click.Context,
    subject: str,
    reason: str | None,
    dry_run: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Destroy the keys of a subject: tailrace erase subject customer:17 --reason "request 4711"

    Sealed values of it become unreadable in every topic, segment, archive, mirror and view. Sinks
    that open columns write its rows again, with NULL. What cannot be reached is listed.
    """
    from tailrace.facts.erasing import UNREACHABLE, erase_subject, search
    from tailrace.facts.erasures import check_reason
    from tailrace.project.opened_rows import opened_rows

    if not dry_run:
        check_reason(reason)
    with _opened() as opened:
        tag = opened.keys.tag(subject)
        rows = opened_rows(opened.project, bootstrap_address(None), tag)
        if dry_run:
            told: dict[str, Any] = {
                "subject": subject,
                "tag": tag,
                "erased": opened.keys.is_erased(tag),
                "keys": opened.keys.live(tag),
                "counts": search(opened.log, tag).counts,
                "edges": rows.counts,
                "unreachable": [*UNREACHABLE, *rows.unreachable],
            }
            _tell(told, as_json)
            return
        done = erase_subject(
            opened.log,
            opened.keys,
            subject,
            str(reason),
            patience=timeout,
            edges=rows.counts,
            beyond=rows.unreachable,
        )
    _finish(context, done, as_json)
    if done.edges and not as_json:
        click.echo(
            "sinks write their rows again when they run: "
            f"`tailrace erase verify {done.id}` tells which have not"
        )


@erase.command()
@click.argument("positions", nargs=-1, required=True, metavar="POSITION...")
@_reason
@click.option("--dry-run", is_flag=True, help="Only count the records and their copies, by topic.")
@_timeout
@in_project
@json_option
@click.pass_context
def record(
    context: click.Context,
    positions: tuple[str, ...],
    reason: str | None,
    dry_run: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Cut records out of the log: tailrace erase record log:accounts/3:991 --reason "4711"

    Every segment that holds one is written again, in the archive too, and every copy that says
    where it came from goes with it: dead letters, late rows, retries, published states. The slot
    stays: offset, key and version.
    """
    from tailrace.facts.erasures import check_reason
    from tailrace.facts.excising import erase_records, find_records, parse_position

    if not dry_run:
        check_reason(reason)
    with _opened() as opened:
        if dry_run:
            topics = {parse_position(each)[0] for each in positions}
            _tell_found(opened, find_records(opened.log, positions), topics, as_json)
            return
        topics = {parse_position(each)[0] for each in positions}
        done = erase_records(
            opened.log,
            opened.book,
            positions,
            str(reason),
            patience=timeout,
            unreachable=_made_of(opened.project, topics),
        )
        _clear_caches(opened, done)
        places = _places(opened, done)
    _finish(context, done, as_json, places)


@erase.command()
@click.argument("topic")
@click.argument("key")
@_reason
@click.option("--dry-run", is_flag=True, help="Only count the records and their copies, by topic.")
@_timeout
@in_project
@json_option
@click.pass_context
def key(
    context: click.Context,
    topic: str,
    key: str,
    reason: str | None,
    dry_run: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Cut out all records of a key: tailrace erase key shop.customers 17 --reason "4711"

    Of an event topic that is a stream, which never takes a new event. Of a table it is a row, with
    its history: a last change deletes it for views, copies and sinks. Delete it in the source
    first, or the source brings it back.
    """
    from tailrace.facts.erasures import check_reason
    from tailrace.facts.excising import erase_key, find_key

    if not dry_run:
        check_reason(reason)
    with _opened() as opened:
        if dry_run:
            _tell_found(opened, find_key(opened.log, topic, key)[0], {topic}, as_json)
            return
        done = erase_key(
            opened.log,
            opened.book,
            topic,
            key,
            str(reason),
            patience=timeout,
            unreachable=_made_of(opened.project, {topic}),
        )
        _clear_caches(opened, done)
        places = _places(opened, done)
    _finish(context, done, as_json, places)


@erase.command("list")
@in_project
@json_option
def list_erasures(as_json: bool) -> None:
    """Every erasure, with its reason and whether it is done."""
    with _opened() as opened:
        opened.book.refresh()
        rows = [_plain(each) for each in opened.book.found.values()]
    rows.sort(key=lambda row: row["at"])
    columns = ["id", "at", "kind", "state", "reason"]
    print_rows(rows, columns, as_json=as_json, empty="nothing was erased")


@erase.command()
@click.argument("id")
@click.option("--needle", help="A text that must stand nowhere: in no record and in no file.")
@_timeout
@in_project
@json_option
@click.pass_context
def verify(
    context: click.Context, id: str, needle: str | None, timeout: float, as_json: bool
) -> None:
    """Look again whether an erasure is whole; finish it if it is not."""
    from tailrace.facts import erasing, excising
    from tailrace.project.opened_rows import waiting

    places: dict[str, str] = {}
    with _opened() as opened:
        if opened.book.get(id).kind == "subject":
            erasing.finish(opened.log, opened.keys, id, patience=timeout)
            found = erasing.verify(opened.log, opened.keys, id, needle=needle, places=opened.places)
        else:
            done = excising.finish(opened.log, opened.book, id, patience=timeout)
            _clear_caches(opened, done)
            places = _places(opened, done)
            found = excising.verify(
                opened.log, opened.book, id, needle=needle, places=opened.places
            )
        behind = waiting(opened.project, found.erased.edges, found.erased.tag)
        behind += [place for place, state in places.items() if state != "done"]
    told = {
        **_plain(found.erased),
        "places": places,
        "good": found.good and not behind,
        "waiting": behind,
        "keys_left": found.keys_left,
        "values": found.values,
        "needles": list(found.needles),
    }
    _tell(told, as_json)
    if not told["good"]:
        context.exit(1)


def _clear_caches(opened: _Opened, erased: Erased) -> None:
    """Delete the indexes of event topics on this machine that no process has open. Those that
    are open are deleted by the processes that have them."""
    from tailrace.facts.index import clear_indexes

    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    for place in (*opened.places, Path(cache) / "tailrace"):
        for topic in erased.offsets:
            for pattern in (f"*events/{topic}-*", f"*/events/{topic}-*"):
                for root in place.glob(pattern):
                    clear_indexes(root)


def _made_of(project: Project, topics: Iterable[str]) -> list[str]:
    """What the project makes of these topics beside views, for the proof: it is not reached."""
    from tailrace.records.event_headers import STATE_TOPIC

    topology = _topology(project)
    if topology is None:
        return []
    told: list[str] = []
    for topic in sorted(topics):
        cleared = topology.made_of(topic, WITH_VIEWS)
        for node in topology.made_of(topic):
            if node.label == f"{topic}{STATE_TOPIC}" or (node.kind == "view" and node in cleared):
                continue  # the records of the stream go there, too
            said = f"{node.kind} {node.label}, made of {topic}"
            if node.kind == "sink" and node in cleared:
                said += (
                    ": filled again with its view; the rows before are kept for a rollback "
                    f"until `tailrace sink replay {node.label}`, what was appended or sent stays"
                )
            told.append(said)
        told += [
            f"reaction {each.name}, made of {topic}"
            for each in project.reactions.values()
            if topic in each.sources
        ]
    return told


def _topology(project: Project) -> Topology | None:
    """What the project makes of what; None where that cannot be told."""
    from tailrace.errors import TailraceError
    from tailrace.project.graph import build

    try:
        return build(project)
    except TailraceError:
        return None  # `tailrace check` tells what is wrong


def _cleared(topology: Topology, topic: str) -> set[str]:
    """The views that are cleared of what a topic held: they read it, or views that do."""
    made = topology.made_of(topic, WITH_VIEWS)
    return {node.label for node in made if node.kind == "view"}


def _places(opened: _Opened, erased: Erased) -> dict[str, str]:
    """What the project clears by itself when it runs, and whether it has: "done", "waiting"."""
    from tailrace.facts.erased_records import topics_of, views_place

    topology = _topology(opened.project)
    if topology is None or erased.kind == "subject":
        return {}
    if not any(_cleared(topology, topic) for topic in topics_of(erased)):
        return {}
    place = views_place(opened.project.name)
    return {place: "done" if opened.book.is_cleared(erased, place) else "waiting"}


def _tell_found(opened: _Opened, found: Found, topics: Iterable[str], as_json: bool) -> None:
    from tailrace.facts.excising import NOT_IN_THE_LOG

    told = {
        "counts": found.counts,
        "positions": found.positions,
        "unreachable": [*_made_of(opened.project, topics), *NOT_IN_THE_LOG],
    }
    _tell(told, as_json)


def _finish(
    context: click.Context, done: Erased, as_json: bool, places: dict[str, str] | None = None
) -> None:
    told = _plain(done) if places is None else {**_plain(done), "places": places}
    _tell(told, as_json)
    if places and not as_json:
        click.echo(
            "views are filled again when the project runs: "
            f"`tailrace erase verify {done.id}` tells when they are done"
        )
    if done.state != "done":
        if not as_json:
            click.echo(f"the log has not dropped all of it yet: `tailrace erase verify {done.id}`")
        context.exit(1)


def _plain(erased: Erased) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(erased)
    return plain


def _tell(told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(told)
        return
    for name, value in told.items():
        if value == "":
            continue  # what this kind of erasure does not have
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {each}" for key, each in value.items()) or "none"
        if isinstance(value, list):
            click.echo(f"{name.replace('_', ' ')}:" + ("" if value else " none"))
            for each in value:
                click.echo(f"  {each}")
        else:
            click.echo(f"{name.replace('_', ' ')}: {value}")
