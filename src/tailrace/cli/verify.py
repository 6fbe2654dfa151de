"""`tailrace verify`: does this log keep its promises while its processes are hurt?"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tailrace.cli.output import (
    bootstrap_address,
    json_option,
    log_option,
    print_json,
    print_rows,
    tell,
)
from tailrace.errors import UsageError
from tailrace.extras import require

if TYPE_CHECKING:
    from tailrace.verify.nodes import Node
    from tailrace.verify.run import Plan, Stopping
    from tailrace.verify.throwaway import ThrowAway

REPORTS = Path("tailrace-verify")
EMBEDDED_FAULTS = "kill,pause,restart,cut"
KAFKA_FAULTS = "kill,pause,restart,kill-leader,kill-controller,rolling,cut"
EXPERIMENT_NAMES = ("acks-1", "no-retry", "unclean-election", "min-insync-1", "hang")
JARS = click.Path(path_type=Path, exists=True, file_okay=False)


@click.group(invoke_without_command=True)
@click.option("--embedded", is_flag=True, help="A throw-away embedded broker instead of a log of yours.")  # fmt: skip
@click.option("--kafka", metavar="JARS", type=JARS, help="A throw-away cluster of Apache Kafka, from the folder with its jars.")  # fmt: skip
@click.option("--for", "lasting", metavar="TIME", default="60s", show_default=True, help="How long to write; longer if the faults take longer.")  # fmt: skip
@click.option("--faults", metavar="NAME,…", default=None, help="kill, pause, restart, kill-leader, kill-controller, rolling, cut. Default: none; all that apply on a throw-away log.")  # fmt: skip
@click.option("--node", "nodes", metavar="ID=pid:N,start:COMMAND", multiple=True, help="A broker's process, which may be hurt, and how it is started again.")  # fmt: skip
@click.option("--replication", type=click.IntRange(1, 100), help="Copies of the topic. Default: the log's.")  # fmt: skip
@click.option("--min-insync", type=click.IntRange(1, 100), help="min.insync.replicas of the topic.")
@click.option("--partitions", type=click.IntRange(1, 100), default=3, show_default=True, help="Partitions of the topic.")  # fmt: skip
@click.option("--rate", type=click.IntRange(0), default=2000, show_default=True, help="Records a second; 0: as many as can be.")  # fmt: skip
@click.option("--topic", metavar="NAME", help="Its name; it must not exist. Default: one of its own.")  # fmt: skip
@click.option("--report", metavar="DIR", type=click.Path(path_type=Path, file_okay=False), help="Where the report goes. Default: a new folder in tailrace-verify.")  # fmt: skip
@log_option
@json_option
@click.pass_context
def verify(
    context: click.Context,
    embedded: bool,
    kafka: Path | None,
    lasting: str,
    faults: str | None,
    nodes: tuple[str, ...],
    replication: int | None,
    min_insync: int | None,
    partitions: int,
    rate: int,
    topic: str | None,
    report: Path | None,
    address: str | None,
    as_json: bool,
) -> None:
    """Write and read with every kind of client, hurt named processes, judge what was seen.

    It writes only to a topic that it makes, and deletes it. Exit status 0: every promise held;
    1: one was broken; 2: this cannot be done.
    """
    if context.invoked_subcommand is not None:
        return
    require("numpy")
    require("pyarrow")
    from tailrace.config import parse_duration
    from tailrace.errors import ConfigValueError
    from tailrace.verify.faults import parse_faults
    from tailrace.verify.run import Plan, Stopping
    from tailrace.verify.workload import Load

    if embedded and kafka is not None:
        raise UsageError("--embedded and --kafka are both a throw-away log", hint="give one")
    said = context.get_parameter_source("address") is not ParameterSource.ENVIRONMENT
    if (embedded or kafka is not None) and ((address is not None and said) or nodes):
        raise UsageError(
            "a throw-away log is the only one in its run",
            hint="leave --bootstrap, --project and --node out, or --embedded and --kafka",
        )
    try:
        seconds = parse_duration(lasting).total_seconds()
    except ConfigValueError as error:
        raise UsageError(f"--for: {error}", hint=error.hint) from error
    chosen = faults if faults is not None else _default_faults(embedded, kafka)
    plan = Plan(
        seconds=seconds,
        faults=tuple(parse_faults(chosen)),
        partitions=partitions,
        replication=replication or (3 if kafka is not None else -1),
        min_insync=min_insync or (2 if kafka is not None and replication in (None, 2, 3) else None),
        topic=topic,
        load=Load(rate=rate),
    )
    folder = _new_folder(report)
    stopping = Stopping()
    with stopping.on_signals():
        _verify(plan, folder, address, nodes, embedded, kafka, stopping, as_json)


def _default_faults(embedded: bool, kafka: Path | None) -> str:
    return EMBEDDED_FAULTS if embedded else KAFKA_FAULTS if kafka is not None else ""


def _verify(
    plan: Plan,
    folder: Path,
    address: str | None,
    named: Sequence[str],
    embedded: bool,
    kafka: Path | None,
    stopping: Stopping,
    as_json: bool,
) -> None:
    import orjson

    from tailrace.files import FILES
    from tailrace.verify.faults import Interrupted
    from tailrace.verify.report import as_document, as_page, as_text
    from tailrace.verify.run import run

    throwaway: ThrowAway | None = None
    held: list[Node] = []
    try:
        if embedded or kafka is not None:
            throwaway = _throw_away(kafka, stopping)
            where, held = throwaway.address, throwaway.nodes
        else:
            where = bootstrap_address(address)
            held = _nodes(named, where, folder)
        finished = run(where, plan, held, folder=folder, stopping=stopping, tell=tell)
    except (Interrupted, KeyboardInterrupt):
        tell("interrupted: no verdict")
        raise SystemExit(130) from None
    finally:
        if throwaway is not None:
            throwaway.stop()
        for node in held:
            node.close()
        with contextlib.suppress(OSError):
            folder.rmdir()  # a run that was refused leaves no empty folder
    document = as_document(finished.history, finished.verdict)
    FILES.write_whole(folder / "report.json", orjson.dumps(document))
    FILES.write_whole(folder / "index.html", as_page(finished.history, finished.verdict).encode())
    if as_json:
        print_json(document)
    else:
        for line in as_text(finished.history, finished.verdict):
            click.echo(line)
        click.echo(f"report: {folder / 'index.html'}")
    if not finished.verdict.holds or finished.left:
        raise SystemExit(1)


def _throw_away(kafka: Path | None, stopping: Stopping) -> ThrowAway:
    from tailrace.verify.throwaway import start_embedded, start_kafka

    if kafka is None:
        return start_embedded(stopping)
    tell("starting three brokers of Apache Kafka")
    return start_kafka(kafka, stopping=stopping)


def _nodes(named: Sequence[str], where: str, folder: Path) -> list[Node]:
    """The processes behind `--node`, each seen to serve this log. Raises UsageError."""
    from tailrace.verify.nodes import Node, parse_node
    from tailrace.verify.topology import Topology

    given = [parse_node(text) for text in named]
    if len({each.id for each in given}) < len(given):
        raise UsageError("two --node have one id")
    if not given:
        return []
    topology = Topology(where)
    try:
        brokers = topology.brokers()
    finally:
        topology.close()
    found: list[Node] = []
    try:
        for each in given:
            if each.id not in brokers:
                raise UsageError(
                    f"the log has no broker {each.id}",
                    detail=f"its brokers are {', '.join(map(str, sorted(brokers)))}",
                )
            found.append(
                Node(
                    each.id,
                    each.pid,
                    brokers[each.id],
                    each.start,
                    output=folder / f"node-{each.id}.log",
                )
            )
    except BaseException:
        for node in found:
            node.close()
        raise
    return found


def _new_folder(report: Path | None) -> Path:
    from tailrace.clock import SYSTEM, to_datetime

    if report is None:
        moment = to_datetime(SYSTEM.wall_ms()).strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
        report = REPORTS / moment
    if report.exists() and any(report.iterdir()):
        raise UsageError(
            f"{report} is not empty", hint="give --report a folder that is new or empty"
        )
    report.mkdir(parents=True, exist_ok=True)
    return report


@verify.command()
@click.argument("name", type=click.Choice(EXPERIMENT_NAMES))
@click.option("--kafka", metavar="JARS", type=JARS, required=True, help="The folder with Apache Kafka's jars.")  # fmt: skip
@json_option
def experiment(name: str, kafka: Path, as_json: bool) -> None:
    """Show a loss (or a wait), then the setting that prevents it, on a throw-away cluster."""
    require("numpy")
    require("pyarrow")
    from tailrace.verify.experiments import run_experiment
    from tailrace.verify.faults import Interrupted
    from tailrace.verify.run import Stopping

    stopping = Stopping()
    with stopping.on_signals():
        try:
            outcomes = run_experiment(name, kafka, stopping=stopping, tell=tell)
        except (Interrupted, KeyboardInterrupt):
            tell("interrupted")
            raise SystemExit(130) from None
    if as_json:
        print_json({"experiment": name, "runs": [each.document() for each in outcomes]})
        return
    rows = [
        {
            "setting": ", ".join(f"{key}={value}" for key, value in each.settings.items()),
            "sent": each.sent,
            "acknowledged": each.acknowledged,
            "lost": each.lost,
            "longest wait (s)": each.waited_seconds,
        }
        for each in outcomes
    ]
    print_rows(rows, ["setting", "sent", "acknowledged", "lost", "longest wait (s)"], as_json=False)


@verify.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@json_option
def check(folder: Path, as_json: bool) -> None:
    """Judge the history of an earlier run again."""
    require("numpy")
    require("pyarrow")
    from tailrace.verify.checkers import judge
    from tailrace.verify.history import read_history
    from tailrace.verify.report import as_document, as_text

    history = read_history(folder)
    verdict = judge(history)
    if as_json:
        print_json(as_document(history, verdict))
    else:
        for line in as_text(history, verdict):
            click.echo(line)
    if not verdict.holds:
        raise SystemExit(1)


@verify.command("list")
@click.argument("folder", metavar="[DIR]", default=REPORTS, type=click.Path(path_type=Path, file_okay=False))  # fmt: skip
@json_option
def list_runs(folder: Path, as_json: bool) -> None:
    """The runs that have a report, newest first."""
    import orjson

    rows = []
    for place in sorted(folder.glob("*/report.json"), reverse=True):
        try:
            document = orjson.loads(place.read_bytes())
            broken = [each["name"] for each in document["promises"] if not each["holds"]]
            rows.append(
                {
                    "run": str(place.parent),
                    "holds": bool(document["holds"]),
                    "operations": int(document["operations"]),
                    "faults": len(document["faults"]),
                    "broken": broken if as_json else ", ".join(broken),
                }
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no report of ours
    print_rows(
        rows, ["run", "holds", "operations", "faults", "broken"], as_json=as_json,
        empty=f"no runs in {folder}",
    )  # fmt: skip
