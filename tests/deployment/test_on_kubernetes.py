"""The manifests beside Kubernetes' own schemas, and what Spark's client asks an API server for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from deployment.test_manifests import SECRET, kubernetes
from deployment.test_manifests import project as project
from servers.kubernetes import RecordingServer, SchemasUnavailable, schemas
from tailrace.deployment.kubernetes import CONFIGURATION, RULES, SPARK_SECRET

pytestmark = pytest.mark.cluster

KUBERNETES = "1.33"
EXECUTORS = 7  # as the project's file says
DRIVER = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master(sys.argv[1]).getOrCreate()
print("begun", flush=True)
sys.stdin.read()
spark.stop()
"""


@pytest.fixture(scope="module")
def schema() -> ModuleType:
    try:
        return schemas()
    except SchemasUnavailable as reason:
        pytest.skip(f"needs kubernetes-validate: {reason}")


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    recording = RecordingServer()
    yield recording
    recording.stop()


def test_every_manifest_is_valid_for_kubernetes(project: Path, schema: ModuleType) -> None:
    made = kubernetes(project)
    assert len(made) == 8
    for one in made.values():
        schema.validate(one, KUBERNETES, strict=True)
    (config,) = [one for (kind, _), one in made.items() if kind == "ConfigMap"]
    schema.validate(yaml.safe_load(config["data"]["executor.yaml"]), KUBERNETES, strict=True)  # type: ignore[index]


def test_a_manifest_with_a_wrong_field_is_not_valid(project: Path, schema: ModuleType) -> None:
    made: dict[Any, Any] = kubernetes(project)
    driver = made["StatefulSet", "my-shop-driver"]
    driver["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]["subpath"] = "x"
    with pytest.raises(schema.ValidationError):
        schema.validate(driver, KUBERNETES, strict=True)


def test_spark_asks_for_valid_executors_and_for_nothing_its_role_forbids(
    project: Path, server: RecordingServer, schema: ModuleType, tmp_path: Path
) -> None:
    made: dict[Any, Any] = kubernetes(project)
    data = made["ConfigMap", "my-shop-spark"]["data"]
    template, secret = tmp_path / "executor.yaml", tmp_path / "secret"
    template.write_text(data["executor.yaml"])
    secret.write_text("between driver and executors")
    defaults = data["spark-defaults.conf"].replace(f"{CONFIGURATION}/executor.yaml", str(template))
    defaults = defaults.replace(f"{SPARK_SECRET}/secret", str(secret))
    lines = [line for line in defaults.splitlines() if not line.startswith("spark.driver.")]
    lines += ["spark.driver.host 127.0.0.1", "spark.ui.enabled false", "spark.driver.memory 512m"]
    lines += [f"spark.executor.instances {EXECUTORS}"]  # `tailrace up` gives the project's own
    (tmp_path / "spark-defaults.conf").write_text("\n".join(lines))
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "my-shop-driver-0", "namespace": "default", "uid": "uid-driver"}}  # fmt: skip
    server.kept["pods", "my-shop-driver-0"] = pod
    log = tmp_path / "spark.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-c", DRIVER, f"k8s://{server.address}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            env={**os.environ, "SPARK_CONF_DIR": str(tmp_path)},
        ) as driver,
    ):  # fmt: skip
        try:
            deadline = time.monotonic() + 240
            while len(_created(server)) < EXECUTORS:
                assert driver.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, server.asked
                time.sleep(0.1)
            driver.communicate("", timeout=120)
        finally:
            driver.kill()
    pods = _created(server)
    for each in pods:
        schema.validate(each, KUBERNETES, strict=True)
        (container,) = each["spec"]["containers"]
        assert container["image"] == "registry/shop:1"
        assert container["command"] == ["/usr/local/bin/python", "-m", "tailrace.pipelines.spark.executor"]  # fmt: skip
        assert each["spec"]["serviceAccountName"] == "my-shop-executor"
        assert each["spec"]["automountServiceAccountToken"] is False
        assert [owner["name"] for owner in each["metadata"]["ownerReferences"]] == [pod["metadata"]["name"]]  # fmt: skip
        assert SECRET not in str(each)
    asked = {(one.resource, one.verb) for one in server.asked}
    allowed = {(resource, verb) for resource, verbs in RULES.items() for verb in verbs}
    assert asked <= allowed, asked - allowed
    assert {("pods", "create"), ("pods", "deletecollection")} <= asked


def _created(server: RecordingServer) -> list[Any]:
    return [one.body for one in server.asked if (one.verb, one.resource) == ("create", "pods")]
