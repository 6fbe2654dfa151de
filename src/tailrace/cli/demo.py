"""`tailrace demo`: a moving shop, a real database, live views, in a browser.

The demo is an ordinary project (`examples/shop`) run by the same supervisor as
`tailrace up`; only its Postgres and its customers are started here.
"""

from __future__ import annotations

import fcntl
import html
import http.client
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
import types
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import orjson

from tailrace.cli.output import tell
from tailrace.cli.up import FillWait
from tailrace.clock import SYSTEM
from tailrace.config import parse_address
from tailrace.errors import ComponentMissingError, PortInUseError
from tailrace.modes import make_private
from tailrace.node.processes import end_leftovers, end_with_parent

CONSOLE = "127.0.0.1:8080"
SCRATCH = "tailrace-demo-"
# How long `--for` waits beyond its time for a machine on which the start takes longer.
START_PATIENCE_SECONDS = 300.0
MARK = ".scratch"  # in a directory that goes with its demo
CHILDREN = "children.json"


@click.command()
@click.option(
    "--for",
    "lasting",
    metavar="TIME",
    help="Stop by itself after this time, e.g. 60s, but not before it is ready.",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--rate", default=50.0, show_default=True, help="Changes a second in the shop's database.")  # fmt: skip
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Keep everything in DIR and go on from it next time.")  # fmt: skip
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="Where the log listens.")
@click.option("--console", default=None, metavar="HOST:PORT", help="Where the console listens. [default: 127.0.0.1:8080, or any port if that is taken]")  # fmt: skip
@click.option("--verbose", is_flag=True, help="Show what the parts say.")
def demo(
    lasting: str | None,
    no_browser: bool,
    rate: float,
    keep: Path | None,
    listen: str,
    console: str | None,
    verbose: bool,
) -> int:
    """Run the shop: capture, Spark views, sinks, console."""
    from tailrace.config import parse_duration

    _refuse_missing_packages()
    seconds = parse_duration(lasting).total_seconds() if lasting else None
    with ExitStack() as stack:
        directory = keep or Path(stack.enter_context(_scratch()))
        return _run(stack, directory.resolve(), seconds, not no_browser, rate, listen, console, verbose, keep is not None)  # fmt: skip


def _run(
    stack: ExitStack,
    directory: Path,
    seconds: float | None,
    browse: bool,
    rate: float,
    listen: str,
    console: str | None,
    verbose: bool,
    kept: bool,
) -> int:
    from tailrace import console_token
    from tailrace.node.plan import plan
    from tailrace.node.supervisor import Supervisor
    from tailrace.project import scaffold
    from tailrace.telemetry import logs
    from tailrace.telemetry.part import read_reports

    logs.configure("info" if verbose else "error")
    stop: list[int] = []

    def leave(number: int, frame: types.FrameType | None) -> None:
        stop.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
    began = SYSTEM.monotonic()

    def say(text: str) -> None:
        click.echo(f"{SYSTEM.monotonic() - began:6.1f} s  {text}")

    if not (directory / "tailrace.toml").exists():
        directory.mkdir(parents=True, exist_ok=True)
        scaffold.copy_example("shop", directory)
    say("starting a Postgres for the shop")
    dsn = stack.enter_context(_database(directory))
    os.environ["SHOP_DSN"] = os.environ["TAILRACE_DEMO_DSN"] = dsn
    cache = stack.enter_context(_cache(directory))
    if cache:
        os.environ["SHOP_REDIS"] = cache
    if console is None:
        console = _free(CONSOLE)
        if console != CONSOLE:
            say(f"{CONSOLE} is taken: the console takes another port")
    flags = {"log.listen": listen, "console.listen": console}
    registry = _use_free_ports(directory)
    if registry:
        flags["registry.listen"] = registry
    project = plan(directory, flags=flags)
    standby = stack.enter_context(_standby(directory, project.settings.clusters.get(STANDBY)))
    show = tell if verbose else _errors_only
    supervisor = stack.enter_context(Supervisor(project, echo=show))
    say("starting the log, capture, Spark, views, sinks and the console")
    supervisor.start()
    say(f"log      {supervisor.address}  (any Kafka client)")
    if standby:
        say(f"standby  {standby}  (a mirror keeps some topics there)")
    stack.enter_context(_people(directory, dsn, rate, supervisor.address))
    address, token = "", None
    ready_at: float | None = None
    wait = FillWait()
    shown_at = 0.0
    while not stop:
        supervisor.run_once()
        supervisor.check_state()
        now = SYSTEM.monotonic()
        if not address:
            found = [r for r in read_reports(supervisor.directory) if r["kind"] == "console"]
            if found and found[0].get("address"):
                address = found[0]["address"]
                token = console_token.read(supervisor.directory)
                click.echo(f"console {console_token.link(address, token)}")
                if browse:
                    _browse(supervisor.directory, console_token.link(address, token))
        if ready_at is None and supervisor.parts_run():
            line = wait.line(supervisor.filling(), now)
            if line is not None:
                ready_at = now
                click.echo(line)
                for told in _ways_on(directory, kept=kept):
                    say(told)
        if ready_at is not None and address and now - shown_at > 10:
            shown_at = now - 8  # try again soon while there is nothing to show
            for line in _figures(address, token):
                shown_at = now
                say(line)
        if seconds is not None and is_over(now - began, seconds, ready=ready_at is not None):
            break
    if ready_at is None and not stop:
        reports = read_reports(supervisor.directory)
        states = ", ".join(f"{r['kind']} {r['name']} {r['state']}" for r in reports)
        say(f"it did not become ready: {states or 'no part has reported'}")
    say("stopping")
    return 0 if ready_at is not None else 1


def _refuse_missing_packages() -> None:
    """Say at once what a part would end for again and again."""
    for package in ("psycopg", "pyspark", "duckdb", "tantivy"):
        if importlib.util.find_spec(package) is None:
            raise ComponentMissingError(
                f"the demo needs {package}", hint="pip install 'tailrace[all]'"
            )


def _ways_on(directory: Path, *, kept: bool) -> Iterator[str]:
    """Where the demo is, how to ask it, how to end it."""
    yield f"project  {directory}"
    yield f'ask it   tailrace sql "SELECT * FROM open_orders" --project {directory}'
    yield f"look     tailrace status --project {directory}"
    yield from _tour(directory)
    end = "everything stays there" if kept else "the directory goes with it"
    yield f"stop     Ctrl-C; {end}"


def _tour(directory: Path) -> Iterator[str]:
    """One command for each thing that runs beside views and sinks, as far as this shop has it."""
    known = {path.stem for path in (directory / "pipelines").glob("*.py")}
    if "outside" in known:
        web = os.environ.get("SHOP_WEB", "")
        kind = "-H 'Content-Type: application/vnd.kafka.json.v2+json'"
        value = '{"records":[{"value":{"product_id":1,"stars":1,"text":"broken"}}]}'
        yield f"try      curl http://{web}/topics/reviews {kind} -d '{value}'"
        yield f"         tailrace percolate list --project {directory}"
    if "workshop" in known:
        yield f"         tailrace events reactions --project {directory}"


def is_over(elapsed: float, seconds: float, *, ready: bool) -> bool:
    """Whether a demo for `seconds` has lasted long enough: a slow machine is waited for."""
    return elapsed > seconds + (0 if ready else START_PATIENCE_SECONDS)


def _browse(directory: Path, link: str) -> None:
    """Open a browser at `link`, by way of a file that only this user can read: everybody can
    read a browser's command line, and the token is in the link."""
    path = directory / "console.html"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f'<meta http-equiv="refresh" content="0; url={html.escape(link)}">\n')
    webbrowser.open(path.resolve().as_uri())


def _figures(address: str, token: str | None) -> Iterator[str]:
    """The views as they are now, beside what the database itself says: from the console,
    so that this process stays as small as a supervisor should be."""

    def ask(path: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("GET", path, headers=headers)
        return dict(orjson.loads(connection.getresponse().read()))

    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=5)
    try:
        found = ask("/api/views/open_orders")
        counted = ask("/api/demo?wait=0")["database"]["orders"]
    except (OSError, http.client.HTTPException, orjson.JSONDecodeError, KeyError):
        return
    finally:
        connection.close()
    rows = found.get("rows") or []
    if not rows:
        return
    total = sum(int(row["orders"]) for row in rows)
    text = ", ".join(f"{row['country']} {row['orders']}" for row in rows)
    yield f"open orders in the view {total} ({text}) at {found['position']}; in the database {counted}"  # fmt: skip


def _errors_only(line: str) -> None:
    if " ended (" in line or "error" in line.lower() or "does not stop" in line:
        tell(line)


def _free(address: str) -> str:
    """The address, or the same with a port of the system's choice if somebody has it."""
    from tailrace.errors import PortInUseError
    from tailrace.node.supervisor import refuse_used_port

    try:
        refuse_used_port(address)
    except PortInUseError:
        return f"{address.rpartition(':')[0]}:0"
    return address


@contextmanager
def _scratch() -> Iterator[str]:
    _sweep(Path(tempfile.gettempdir()))
    path = tempfile.mkdtemp(prefix=SCRATCH)
    (Path(path) / MARK).touch()
    # Postgres refuses to run as root and must reach its files as another user.
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _sweep(where: Path) -> None:
    """Remove what demos that were killed left behind; those that run hold their lock."""
    for path in where.glob(f"{SCRATCH}*"):
        lock = path / ".tailrace" / "up.lock"
        with suppress(OSError):
            if not (path / MARK).exists() or path.stat().st_uid != os.getuid():
                continue
            with lock.open("r") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                end_leftovers(path / ".tailrace" / CHILDREN)
                _end_database(path / ".tailrace" / "postgres" / "data")
                shutil.rmtree(path, ignore_errors=True)


def _end_database(data: Path) -> None:
    """End a Postgres that an earlier run left on `data`, and wait for it."""
    from tailrace.node.processes import running

    try:
        pid = int((data / "postmaster.pid").read_text().split("\n")[0])
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return
    if str(data).encode() not in words:
        return  # another process has its number now; Postgres sees that too
    deadline = SYSTEM.monotonic() + 20
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)  # "fast": sessions are ended, nothing is lost
    while running(pid) and SYSTEM.monotonic() < deadline:
        SYSTEM.sleep(0.05)


@contextmanager
def _database(directory: Path) -> Iterator[str]:
    from tailrace.node.apart import apart
    from tailrace.testing.postgres import PostgresServer

    home = directory / ".tailrace" / "postgres"
    make_private(home.parent)
    if os.geteuid() == 0:
        # Postgres refuses to run as root and must pass through as another user.
        home.parent.chmod(0o711)
    _end_database(home / "data")
    with PostgresServer(home, start_with=end_with_parent(signal.SIGINT)) as server:
        apart(lambda: _furnish(directory, server.dsn()))
        yield server.dsn()


def _furnish(directory: Path, dsn: str) -> None:
    """Make the shop's tables and fill its shelves, unless it has them."""
    import psycopg

    spec = importlib.util.spec_from_file_location("people", directory / "people.py")
    assert spec is not None
    assert spec.loader is not None
    people = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(people)
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute("SELECT to_regclass('public.orders')").fetchone()
        if found is None or found[0] is None:
            connection.execute((directory / "schema.sql").read_bytes())
            people.furnish(connection)


@contextmanager
def _cache(directory: Path) -> Iterator[str | None]:
    """A Redis for the shop's cache, where one is installed; else the cache is SQLite."""
    program = shutil.which("redis-server")
    if program is None or importlib.util.find_spec("redis") is None:
        yield None
        return
    home = directory / ".tailrace" / "redis"
    make_private(home)
    with tempfile.TemporaryDirectory(prefix="tailrace-redis-") as short:
        # A socket's path is limited to about a hundred bytes; the project's may be longer.
        path = Path(short) / "redis.sock"
        command = [program, "--port", "0", "--unixsocket", str(path), "--dir", str(home)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent(),
        )
        try:
            deadline = SYSTEM.monotonic() + 10
            while not path.exists() and process.poll() is None and SYSTEM.monotonic() < deadline:
                SYSTEM.sleep(0.02)
            yield f"unix://{path}" if path.exists() else None
        finally:
            process.terminate()
            process.wait()


EDGES = {
    "SHOP_WEB": ("127.0.0.1:9101", socket.SOCK_STREAM),
    "SHOP_CARRIER": ("127.0.0.1:9102", socket.SOCK_STREAM),
    "SHOP_METRICS": ("127.0.0.1:9103", socket.SOCK_DGRAM),
}
STANDBY = "standby"


def _use_free_ports(directory: Path) -> str | None:
    """Where edges, the registry and the second log listen: where the shop's files say, or at
    other ports if those are taken. The registry's address, if there is one."""
    for name, (address, kind) in EDGES.items():
        os.environ.setdefault(name, _open_port(address, kind))
    path = directory / "tailrace.toml"
    text = path.read_text(encoding="utf-8")
    table = tomllib.loads(text)
    address = table.get("clusters", {}).get(STANDBY, {}).get("bootstrap")
    if address and _open_port(address) != address:
        path.write_text(text.replace(f'"{address}"', f'"{_open_port(address)}"'), encoding="utf-8")
    registry = table.get("registry", {}).get("listen")
    return _open_port(registry) if registry else None


def _open_port(address: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> str:
    """The address, or the same with a port that is free if somebody has it."""
    host, port = parse_address(address)
    for wanted in (port, 0):
        with socket.socket(socket.AF_INET, kind) as probe, suppress(OSError):
            probe.bind((host, wanted))
            return f"{host}:{probe.getsockname()[1]}"
    raise PortInUseError(f"no port is free on {host}")


@contextmanager
def _standby(directory: Path, address: str | None) -> Iterator[str | None]:
    """The second log, which the shop's mirror writes to; none if its files name none."""
    if address is None:
        yield None
        return
    home = directory / ".tailrace" / STANDBY
    make_private(home)
    command = [sys.executable, "-m", "tailrace", "broker", "start", "--data", str(home), "--listen", address]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent()) as process:  # fmt: skip
        try:
            yield address
        finally:
            process.terminate()


@contextmanager
def _people(directory: Path, dsn: str, rate: float, log: str) -> Iterator[None]:
    # The address of the database in the environment: everybody can read a command line.
    command = [sys.executable, str(directory / "people.py"), str(rate)]
    process = subprocess.Popen(
        command,
        env={**os.environ, "SHOP_DSN": dsn, "SHOP_LOG": log},
        stderr=subprocess.DEVNULL,
        preexec_fn=end_with_parent(signal.SIGKILL),
    )
    (directory / ".tailrace" / "people.pid").write_text(str(process.pid))
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)  # a proof may be holding them
        process.terminate()
        process.wait()
