"""`tailrace mirror`: topics of one log kept in another, exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tailrace.cli.output import (
    bootstrap_address,
    json_option,
    print_json,
    print_rows,
    tell,
)
from tailrace.errors import UsageError

if TYPE_CHECKING:
    from tailrace.client.admin import Admin
    from tailrace.client.fetcher import Fetcher
    from tailrace.mirroring.plan import MirrorPlan
    from tailrace.mirroring.relay import Mirror
    from tailrace.project.load import Project

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def mirror() -> None:
    """Topics of one log kept in another, exactly once."""


def _address(context: click.Context, parameter: click.Parameter, said: str | None) -> str | None:
    return None if said is None else bootstrap_address(said)


def where_options(command: Command) -> Command:
    """Adds `--from`, `--to` and `--project`, passed as `source`, `target` and `project`."""
    options = (
        click.option("--project", "-C", metavar="DIR", default=".", help="The project that declares the mirror (default: here)."),
        click.option("--to", "target", metavar="ADDRESS", callback=_address, help="The log that is written."),
        click.option("--from", "source", metavar="ADDRESS", callback=_address, help="The log that is read: HOST:PORT, or a project's directory. In a project the mirror's name says it."),
    )  # fmt: skip
    for option in options:
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a mirror reads and writes, and its plan if a project declares it."""

    source: str | None
    target: str
    plan: MirrorPlan | None = None


@dataclass(frozen=True, slots=True)
class Where:
    """What the command line says of the ends."""

    source: str | None
    target: str | None
    project: str

    def ends(self, name: str) -> Ends:
        """Those of the mirror `name`, from the command line or the project here."""
        if self.target is not None:
            return Ends(self.source, self.target)
        project = self.load()
        if name not in project.mirrors:
            raise UsageError(
                f"the project has no mirror {name!r}",
                hint=f"it has {', '.join(sorted(project.mirrors)) or 'none'}; or say --from and --to",
            )
        plan, log = project.mirrors[name], self.log(project)
        source = self.source or project.cluster(plan.source, log)
        return Ends(source, project.cluster(plan.target, log), plan)

    def load(self) -> Project:
        from tailrace.project.errors import ProjectMissingError
        from tailrace.project.load import load
        from tailrace.project.mirrors import refuse_mistakes

        try:
            project = load(self.project)
        except ProjectMissingError as error:
            error.hint = "say --from and --to, or go to a project's directory"
            raise
        for plan in project.mirrors.values():
            refuse_mistakes(project, plan)
        return project

    def log(self, project: Project) -> str:
        from tailrace.node.health import log_address

        return log_address(project.settings)


@mirror.command()
@click.argument("name", required=False)
@click.option("--name", "named", metavar="NAME", help="The mirror's name, as the argument.")
@click.option("--topics", metavar="REGEX", help="Topics by their whole names.")
@click.option("--names", type=click.Choice(["same", "prefix"]), default="same", show_default=True, help="What they are called at the target.")  # fmt: skip
@click.option("--prefix", metavar="NAME", default="", help="With --names prefix: NAME.orders.")
@click.option("--groups", metavar="REGEX", help="Store translated offsets of these groups at the target.")  # fmt: skip
@click.option("--site", metavar="NAME", default="", help="What the source is called, where records go both ways.")  # fmt: skip
@click.option("--other", "others", metavar="NAME", multiple=True, help="What the target is called, and whoever else reaches it: what came from there is not sent back.")  # fmt: skip
@click.option("--cut", type=click.Choice(["none", "transactions"]), default="none", show_default=True, help="Whether transactions of the source stay whole.")  # fmt: skip
@click.option("--conflicts", metavar="RULE", help="Which record of a key wins: latest, or site:NAME.")  # fmt: skip
@click.option("--pin", "pins", metavar="TOPIC", multiple=True, help="Keys of the topic begin with the site that writes them, as ams:17.")  # fmt: skip
@click.option("--shard", metavar="K/N", default=None, help="Which of how many processes of the mirror this is, from 0/N.")  # fmt: skip
@click.option("--accept-gap", is_flag=True, help="Go on behind what the source has lost.")
@click.option("--until-caught-up", is_flag=True, help="End when everything is there that the source has now.")  # fmt: skip
@where_options
@json_option
def run(
    name: str | None,
    named: str | None,
    source: str | None,
    target: str | None,
    project: str,
    topics: str | None,
    names: str,
    prefix: str,
    groups: str | None,
    site: str,
    others: tuple[str, ...],
    cut: str,
    conflicts: str | None,
    pins: tuple[str, ...],
    shard: str | None,
    accept_gap: bool,
    until_caught_up: bool,
    as_json: bool,
) -> None:
    """Mirror topics until Ctrl-C. Prints `mirroring NAME` once it has begun.

    In a project, the mirror that it declares. Started again it goes on where it was. A partition
    of which the source has lost something stops, with the offsets, and the others go on.
    """
    if (name is None) == (named is None):
        raise UsageError("a mirror has one name", hint="tailrace mirror run NAME --from … --to …")
    import signal
    import threading

    from tailrace.mirroring import relay
    from tailrace.mirroring.plan import KEY_PREFIX

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    chosen = name or named or ""
    pin = dict.fromkeys(pins, KEY_PREFIX)
    chosen_shard = _shard(shard)
    if source is None and target is None:
        if topics is not None:
            raise UsageError("topics are said without an end", hint="--from ADDRESS --to ADDRESS")
        ends = Where(None, None, project).ends(chosen)
        assert ends.plan is not None
        plan, prefix, site, others = ends.plan, ends.plan.source, ends.plan.source, ends.plan.others
        topics, names, groups = plan.topics_pattern, plan.names, plan.groups_pattern
        cut, conflicts, pin = plan.cut, plan.conflicts, dict(plan.pin)
        source, target = ends.source, ends.target
        if shard is None and plan.shards > 1:
            raise UsageError(
                f'the mirror "{chosen}" has {plan.shards} shards, each a process',
                hint=f"`tailrace up` runs them all; one by hand: --shard 0/{plan.shards}",
            )
    if source is None or target is None or topics is None:
        raise UsageError(
            "a mirror needs --from, --to and --topics",
            hint="or the name of one that the project here declares",
        )
    with relay.Mirror(
        chosen, source, target, topics=topics, names=names, source_name=prefix, groups=groups,
        site=site, others=others, cut=cut, conflicts=conflicts, pin=pin, accept_gap=accept_gap,
        shard=chosen_shard,
    ) as running:  # fmt: skip
        if not as_json:
            print(f"mirroring {chosen}", flush=True)
        if until_caught_up:
            running.run_until_caught_up(stopping.is_set)
        else:
            _run(running, stopping.is_set)
        count = running.records
    if as_json:
        print_json({"name": chosen, "records": count})
    else:
        tell(f"{count} record mirrored" if count == 1 else f"{count} records mirrored")


def _shard(said: str | None) -> tuple[int, int]:
    number, slash, count = (said or "0/1").partition("/")
    if not (slash and number.isdigit() and count.isdigit()):
        raise UsageError(f"{said!r} is no shard", hint="--shard 0/2 and --shard 1/2")
    return int(number), int(count)


def _run(running: Mirror, stopping: Callable[[], bool]) -> None:
    """Until Ctrl-C; each partition that stops is told once."""
    told: set[tuple[str, int]] = set()
    while not stopping():
        running.cycle()
        for place, error in running.stopped.items():
            if place not in told:
                told.add(place)
                tell(error.render())
    running.finish()


@mirror.command("list")
@where_options
@json_option
def list_mirrors(source: str | None, target: str | None, project: str, as_json: bool) -> None:
    """Every mirror of the project, or into a log."""
    mirrors: dict[str, MirrorPlan] = {}
    if target is not None:
        targets = {target: ""}
    else:
        where = Where(source, target, project)
        here = where.load()
        log, mirrors = where.log(here), here.mirrors
        targets = {here.cluster(each.target, log): each.target for each in mirrors.values()}  # fmt: skip
    rows: list[dict[str, Any]] = []
    for address, cluster in targets.items():
        from tailrace.mirroring.rows import read_rows

        with _target(address) as (admin, fetcher):
            found = read_rows(admin, fetcher)
        for name, each in sorted(found.items()):
            if each.state is None or (cluster and name not in mirrors):
                continue
            rows.append(
                {
                    "name": name,
                    "state": each.state.state,
                    "topics": each.state.topics,
                    "partitions": len(each.positions),
                    "records": each.records,
                }
            )
    if target is None:
        rows += [
            {"name": name, "state": "new", "topics": plan.topics_pattern, "partitions": 0, "records": 0}
            for name, plan in mirrors.items()
            if name not in {row["name"] for row in rows}
        ]  # fmt: skip
    columns = ["name", "state", "topics", "partitions", "records"]
    empty = "no mirrors into this log" if target else "the project has no mirrors"
    print_rows(rows, columns, as_json=as_json, empty=empty)


@mirror.command()
@click.argument("name")
@where_options
@json_option
def status(name: str, source: str | None, target: str | None, project: str, as_json: bool) -> None:
    """How far a mirror is, by partition. The lag counts offsets, so markers of transactions as
    well; the state is `running` until a fail-over, even if no process runs it now."""
    from tailrace.mirroring import status as states
    from tailrace.mirroring.fail_over import find

    ends = Where(source, target, project).ends(name)
    with _target(ends.target) as (admin, fetcher):
        rows = find(name, admin, fetcher)
    document = states.document(name, rows, ends.source)
    if as_json:
        print_json(document)
        return
    lag = document["lag_records"]
    behind = "nobody was asked how far behind" if lag is None else f"{lag} offsets behind"
    click.echo(f"{name}: {document['state']}, {document['records']} records, {behind}")
    if document["conflicts"]:
        click.echo(f"{document['conflicts']} records lost a conflict and are in <topic>.conflicts")
    columns = ["topic", "partition", "mirrored", "source_end", "lag_records"]
    print_rows(document["topics"], columns, as_json=False, empty="nothing was mirrored yet")
    for one in document["topics"]:
        if "stopped" in one:
            click.echo(f"{one['stopped']['message']}: {one['stopped']['detail']}  [{one['stopped']['code']}]")  # fmt: skip


@mirror.command()
@click.argument("name")
@where_options
@json_option
def verify(name: str, source: str | None, target: str | None, project: str, as_json: bool) -> None:
    """Compare both sides record by record, as far as the mirror has come; exit status 1 and the
    offsets at the source if they differ."""
    from tailrace.client.fetcher import Fetcher
    from tailrace.mirroring.compare import compare
    from tailrace.mirroring.fail_over import find

    ends = Where(source, target, project).ends(name)
    if ends.source is None:
        raise UsageError("both sides are compared", hint="--from ADDRESS")
    with _target(ends.target) as (admin, fetcher), Fetcher(ends.source) as origin:
        found = compare(find(name, admin, fetcher), origin, fetcher)
    if as_json:
        print_json({"equal": not found.differences, **asdict(found)})
    else:
        columns = ["topic", "partition", "first", "last", "why"]
        print_rows([asdict(each) for each in found.differences], columns, as_json=False, empty="no differences")  # fmt: skip
        click.echo(f"{found.compared} records are the same on both sides; {found.gone} are gone at the source")  # fmt: skip
    if found.differences:
        raise SystemExit(1)


@mirror.command()
@click.argument("name")
@click.argument("place", metavar="TOPIC/PARTITION:OFFSET")
@click.option("--back", is_flag=True, help="An offset of the target, to that of the source.")
@where_options
@json_option
def translate(
    name: str,
    place: str,
    back: bool,
    source: str | None,
    target: str | None,
    project: str,
    as_json: bool,
) -> None:
    """The offset at the target of a record of the source; TOPIC is its name at the source."""
    from tailrace.mirroring import translate as runs
    from tailrace.mirroring.fail_over import find

    said, colon, number = place.rpartition(":")
    topic, slash, index = said.rpartition("/")
    if not (colon and slash and number.isdigit() and index.isdigit()):
        raise UsageError(f"{place!r} is no TOPIC/PARTITION:OFFSET", hint="for example orders/0:17")
    with _target(Where(source, target, project).ends(name).target) as (admin, fetcher):
        found = find(name, admin, fetcher)
        known = found.positions.get((topic, int(index)))
        if known is None:
            raise UsageError(f'the mirror "{name}" has nothing of {said}')
        of_place = found.runs.get((topic, int(index)), [])
        if back:
            offset = runs.translate_back(of_place, int(number), known.next)
        else:
            there = (known.target, int(index))
            offset = runs.translate(of_place, int(number), admin.end_offsets([there])[there])
    if as_json:
        print_json({"offset": offset})
    else:
        click.echo(offset)


@mirror.command("fail-over")
@click.argument("name")
@click.option("--start", type=click.Choice(["translated", "time", "earliest", "latest"]), default="translated", show_default=True, help="Where groups that the mirror carries go on.")  # fmt: skip
@click.option("--execute", is_flag=True, help="Do it; without it, only say what would be missing.")
@where_options
@json_option
def fail_over(
    name: str,
    start: str,
    execute: bool,
    source: str | None,
    target: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Make the target stand alone: the process that runs the mirror is fenced.

    The source may be dead; if it answers, what has not arrived is counted. Groups go on by their
    translated offsets, by the time of the record they had not read, or at either end; those with
    members at the target are left alone.
    """
    from tailrace.mirroring import fail_over as leaving

    ends = Where(source, target, project).ends(name)
    found = leaving.fail_over(name, ends.target, ends.source, start=start, execute=execute)
    if as_json:
        print_json(found.document())
        return
    behind = found.not_mirrored
    click.echo("the source does not answer: how much has not arrived is not known" if behind is None else f"{behind} offsets of the source have not arrived")  # fmt: skip
    if found.mirrored_until is not None:
        from datetime import UTC, datetime

        until = datetime.fromtimestamp(found.mirrored_until / 1000, UTC)
        click.echo(f"the newest record that is there is of {until:%Y-%m-%d %H:%M:%S} UTC")
    for group, offsets in found.groups.items():
        click.echo(f"group {group}: " + ", ".join(f"{there}:{at}" for there, at in offsets.items()))
    for group in found.living:
        click.echo(f"group {group} has members at the target and is left alone")
    click.echo("failed over" if execute else "nothing was changed; --execute does it")


@mirror.command("fail-back")
@click.argument("name")
@click.option("--execute", is_flag=True, help="Do it; without it, only say what would be copied.")
@where_options
@json_option
def fail_back(
    name: str, execute: bool, source: str | None, target: str | None, project: str, as_json: bool
) -> None:
    """Bring what the target was given since the fail-over to the source, and mirror again.

    Stop the target's writers first. What only the source has is kept in <topic>.unmirrored there.
    """
    from tailrace.mirroring import fail_over as leaving

    ends = Where(source, target, project).ends(name)
    if ends.source is None:
        raise UsageError("a fail-back writes the source", hint="--from ADDRESS")
    found = leaving.fail_back(name, ends.source, ends.target, execute=execute)
    if as_json:
        print_json(found.document())
        return
    kept = f", kept in {', '.join(found.topics)}" if found.topics else ""
    click.echo(f"{found.only_at_source} records are only at the source{kept}")
    click.echo(f"{found.to_copy} offsets of the target {'were' if execute else 'are to be'} copied")
    click.echo("failed back: the mirror runs again" if execute else "nothing was changed; --execute does it")  # fmt: skip


@contextmanager
def _target(address: str) -> Iterator[tuple[Admin, Fetcher]]:
    from tailrace.client.admin import Admin
    from tailrace.client.fetcher import Fetcher

    with Admin(address, timeout=10.0) as admin, Fetcher(address) as fetcher:
        yield admin, fetcher
