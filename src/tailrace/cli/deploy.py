"""`tailrace deploy …`: files that run a project on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from tailrace.cli.output import json_option, print_json

if TYPE_CHECKING:
    from tailrace.deployment.needs import Needs

Command = TypeVar("Command", bound=Callable[..., object])


@click.group()
def deploy() -> None:
    """Files for Kubernetes or YARN; nothing is started, no value of a secret is written."""


def _common(command: Command) -> Command:
    """What both clusters ask for: where to, which project, its log, how many executors."""
    folder = click.Path(file_okay=False, path_type=Path)
    for add in (
        json_option,
        click.option("--force", is_flag=True, help="Write over files that were changed."),
        click.option("--executors", type=click.IntRange(1), default=2, show_default=True, help="Spark executors to start, unless the project's file says `spark.executor.instances`."),
        click.option("--log", "log", metavar="HOST:PORT,…", help="The log, as the cluster reaches it, if the project's file does not name it."),
        click.option("--project", default=".", type=folder, help="The project (default: here)."),
        click.argument("directory", metavar="DIR", type=folder),
    ):  # fmt: skip
        command = add(command)
    return command


@deploy.command()
@_common
@click.option("--image", required=True, help="The image that is built from DIR/Dockerfile.")
@click.option("--namespace", default="default", show_default=True, help="Where it runs.")
@click.option("--storage", default="10Gi", show_default=True, help="Size of each volume.")
@click.option("--storage-class", help="Class of the driver's own volume.")
@click.option("--shared-class", help="Class of the state volume, which many pods write.")
@click.option("--home", help="The project's directory in the image.")
def kubernetes(
    directory: Path, project: Path, log: str | None, executors: int, force: bool, as_json: bool,
    image: str, namespace: str, storage: str, storage_class: str | None, shared_class: str | None,
    home: str | None,
) -> None:  # fmt: skip
    """Write manifests into DIR: driver, executors, state volume, roles; and the image's file."""
    from tailrace.deployment import kubernetes as made
    from tailrace.deployment.needs import needs_of

    needs = needs_of(project, log)
    choices = made.Choices(
        image=image, namespace=namespace, executors=executors, home=home, storage=storage,
        storage_class=storage_class, shared_class=shared_class,
    )  # fmt: skip
    steps = made.next_steps(needs, choices, str(directory))
    _write(directory, needs, made.files(needs, choices), steps, force=force, as_json=as_json)


@deploy.command()
@_common
@click.option(
    "--home", help="The project's directory on the edge node (default: where it is here)."
)
@click.option(
    "--python",
    default="/opt/tailrace/bin/python",
    show_default=True,
    help="Python with Tailrace, on every host.",
)
@click.option(
    "--hadoop", default="/etc/hadoop/conf", show_default=True, help="Hadoop's client configuration."
)
@click.option(
    "--configuration",
    default="/etc/tailrace",
    show_default=True,
    help="Where the files of DIR go on the edge node.",
)
@click.option("--queue", default="default", show_default=True, help="YARN's queue.")
@click.option("--user", default="tailrace", show_default=True, help="Who runs it on the edge node.")
def yarn(
    directory: Path, project: Path, log: str | None, executors: int, force: bool, as_json: bool,
    home: str | None, python: str, hadoop: str, configuration: str, queue: str, user: str,
) -> None:  # fmt: skip
    """Write into DIR a service for an edge node of YARN, and Spark's settings."""
    from tailrace.deployment import yarn as made
    from tailrace.deployment.needs import needs_of

    needs = needs_of(project, log)
    choices = made.Choices(
        home=home or str(needs.directory.resolve()), python=python, hadoop=hadoop,
        configuration=configuration, executors=executors, queue=queue, user=user,
    )  # fmt: skip
    steps = made.next_steps(needs, choices, str(directory))
    _write(directory, needs, made.files(needs, choices), steps, force=force, as_json=as_json)


def _write(
    directory: Path,
    needs: Needs,
    files: Mapping[str, str],
    steps: list[str],
    *,
    force: bool,
    as_json: bool,
) -> None:
    from tailrace.deployment.files import write

    written = write(directory, files, force=force)
    warnings = [
        f"{one} keeps a file in the project's directory, which is the driver's alone and, in a pod, lost with it"
        for one in needs.own_files
    ]
    if as_json:
        print_json(
            {
                "files": [str(path) for path in written],
                "variables": [
                    {"name": name, "required": needed}
                    for name, needed in sorted(needs.variables.items())
                ],
                "warnings": warnings,
                "steps": steps,
            }
        )
        return
    for path in written:
        click.echo(f"  {path}")
    for warning in warnings:
        click.echo(f"! {warning}")
    click.echo("now:")
    for step in steps:
        click.echo(f"  {step}")
