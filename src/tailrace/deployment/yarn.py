"""A project whose Spark is YARN: a service on an edge node, with Spark's settings.

`tailrace up` runs on a machine that has the client configuration of Hadoop, with Spark's driver
in it (YARN's client mode); YARN gives the executors. Hosts have the same Python with Tailrace at
the same path, and the directories of state and checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.deployment.errors import StateNotSharedError
from tailrace.deployment.needs import Needs

WRITTEN = "# Written by `tailrace deploy yarn`."


@dataclass(frozen=True, slots=True)
class Choices:
    """What whoever deploys decides. `home`: the project's directory on the edge node; `python`: on
    every host; `configuration`: where the files of this deployment lie on the edge node."""

    home: str
    python: str = "/opt/tailrace/bin/python"
    hadoop: str = "/etc/hadoop/conf"
    configuration: str = "/etc/tailrace"
    executors: int = 2
    queue: str = "default"
    user: str = "tailrace"


def files(needs: Needs, choices: Choices) -> dict[str, str]:
    """The files by name."""
    if needs.state is None:
        raise StateNotSharedError(
            "the project does not say where its hosts share state",
            detail="[spark] has no `state`, and the project's directory is on one host",
            hint='write `state = "/shared/state"`, or a URL such as s3://bucket/state, in [spark]',
        )
    return {
        "spark-defaults.conf": _defaults(needs, choices),
        f"tailrace-{needs.label}.service": _service(needs, choices),
        f"{needs.label}.env.example": _environment(needs),
    }


def _defaults(needs: Needs, choices: Choices) -> str:
    settings = {
        "spark.executor.instances": str(choices.executors),
        "spark.yarn.queue": choices.queue,
        "spark.pyspark.python": choices.python,
        "spark.executorEnv.PYSPARK_PYTHON": choices.python,
        # YARN makes the secret and hands it to the executors.
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
    }
    lines = (
        f"{name} {value}\n"
        for given, default in settings.items()
        for name, value in needs.setting(given, default).items()
    )
    return f"{WRITTEN}\n{''.join(lines)}"


def _service(needs: Needs, choices: Choices) -> str:
    values = {
        "HADOOP_CONF_DIR": choices.hadoop,
        "SPARK_CONF_DIR": choices.configuration,
        "PYSPARK_PYTHON": choices.python,
        "TAILRACE_SPARK__MASTER": "yarn",
    }
    if needs.log is not None:
        values["TAILRACE_LOG__BOOTSTRAP"] = needs.log
    lines = "\n".join(f'Environment="{name}={value}"' for name, value in values.items())
    return _SERVICE.format(
        written=WRITTEN, name=needs.name, label=needs.label, values=lines, home=choices.home,
        python=choices.python, user=choices.user, configuration=choices.configuration,
    )  # fmt: skip


def _environment(needs: Needs) -> str:
    """The names of the variables; what they hold is written on the edge node, and nowhere else."""
    lines = [
        f"{'' if needed else '# '}{name}=\n" for name, needed in sorted(needs.variables.items())
    ]
    told = "# Copied to the edge node without `.example`, readable by root alone, and filled in.\n"
    return "".join([f"{WRITTEN}\n", told, *lines])


_SERVICE = """\
{written}
[Unit]
Description=Tailrace project {name}, Spark on YARN
After=network-online.target
Wants=network-online.target

[Service]
User={user}
WorkingDirectory={home}
EnvironmentFile=-{configuration}/{label}.env
{values}
ExecStart={python} -m tailrace up --quiet
KillSignal=SIGTERM
TimeoutStopSec=180
Restart=on-failure
NoNewPrivileges=true

[Install]
WantedBy=multi-user.target
"""


def next_steps(needs: Needs, choices: Choices, directory: str) -> list[str]:
    """What is to be done with the files, in the order in which it is done."""
    place = choices.configuration
    return [
        f"on every host: Python with Tailrace at {choices.python}, and {needs.state} mounted"
        if not needs.state_is_remote
        else f"on every host: Python with Tailrace at {choices.python}",
        f"on the edge node: the project in {choices.home}, Hadoop's client configuration in {choices.hadoop}",
        f"install -D -m 644 {directory}/spark-defaults.conf {place}/spark-defaults.conf",
        f"install -m 600 {directory}/{needs.label}.env.example {place}/{needs.label}.env   # and fill it in",
        f"install -m 644 {directory}/tailrace-{needs.label}.service /etc/systemd/system/",
        f"systemctl enable --now tailrace-{needs.label}",
    ]
