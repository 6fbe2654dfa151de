"""`tailrace certificate`: a throw-away authority, to try TLS with."""

from __future__ import annotations

from pathlib import Path

import click

from tailrace.cli.output import json_option, print_json


@click.group()
def certificate() -> None:
    """Certificates to try TLS with on a laptop."""


@certificate.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--host", "hosts", metavar="NAME", multiple=True,
    help="A further name or address of the broker; localhost, this machine's name and "
    "127.0.0.1 are in it always.",
)  # fmt: skip
@click.option("--client", "clients", metavar="NAME", multiple=True, help="A certificate for a client of this name.")  # fmt: skip
@click.option("--days", default=30, show_default=True, type=click.IntRange(1, 825), help="How long they are valid.")  # fmt: skip
@json_option
def dev(
    directory: Path, hosts: tuple[str, ...], clients: tuple[str, ...], days: int, as_json: bool
) -> None:
    """Make an authority in DIRECTORY, a certificate for the broker, and one for each --client.

    The authority is kept, so that a second call can add clients. Nothing here is for production:
    whoever reads ca.key can pretend to be anybody.
    """
    from tailrace.broker.authentication.throw_away import make

    made = make(directory, hosts=hosts, clients=clients, days=days)
    if as_json:
        print_json({name: str(path) for name, path in made.items()})
        return
    for name, path in made.items():
        click.echo(f"{name:12} {path}")
    click.echo(
        "\ntailrace broker start --data DIR --listen SSL://127.0.0.1:9093 \\\n"
        f"  --set ssl.keystore.location={made['broker']}"
    )
