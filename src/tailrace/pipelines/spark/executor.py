"""`python -m tailrace.pipelines.spark.executor`: the process of a Spark executor in a pod.

Spark's driver says in `SPARK_…` variables what an executor is to be, and leaves it to the image
to start it. So any image that has Tailrace and PySpark is an image for executors; the Java is the
one that the driver would take.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tailrace.errors import ComponentMissingError, MissingVariableError, TailraceError
from tailrace.pipelines.spark import java

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JAVA_OPTION = "SPARK_JAVA_OPT_"
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(environment: Mapping[str, str], program: Path, jars: Path) -> list[str]:
    """The command line of the executor that these variables describe."""
    lacking = [
        name
        for name in ("SPARK_EXECUTOR_MEMORY", *_ARGUMENTS.values())
        if not environment.get(name)
    ]
    if lacking:
        raise MissingVariableError(
            "this is no pod that Spark made for an executor",
            detail=f"not set: {', '.join(lacking)}",
            hint="Spark's driver starts executors; `tailrace up` starts the driver",
        )
    options = sorted(
        (int(name.removeprefix(_JAVA_OPTION)), value)
        for name, value in environment.items()
        if name.removeprefix(_JAVA_OPTION).isdigit() and name.startswith(_JAVA_OPTION)
    )
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    classes = [environment.get("SPARK_CONF_DIR", ""), str(jars / "*")]
    return [
        str(program),
        *(value for _, value in options),
        # Else it would not read the file of the secret, before it has the driver's settings.
        "-Dspark.master=k8s://driver",
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        os.pathsep.join(filter(None, classes)),
        BACKEND,
        *(word for name, value in _ARGUMENTS.items() for word in (name, environment[value])),
    ]


def main() -> None:
    """Become the executor: its signals and its exit status are the pod's."""
    try:
        try:
            import pyspark
        except ImportError as missing:
            raise ComponentMissingError(
                "PySpark is not installed", hint="pip install 'tailrace[spark]'"
            ) from missing
        home = Path(pyspark.__file__).parent
        found = java.find().home
        words = command(os.environ, found / "bin" / "java", home / "jars")
    except TailraceError as error:
        sys.exit(error.render())
    os.environ.setdefault("SPARK_HOME", str(home))
    os.environ["JAVA_HOME"] = str(found)
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
