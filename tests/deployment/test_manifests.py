"""The files of `tailrace deploy`: what is in them, what is refused, what must never be in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from tailrace.cli.deploy import deploy
from tailrace.deployment.errors import FilesChangedError, LogNotReachableError, StateNotSharedError
from tailrace.deployment.needs import label_of
from tailrace.deployment.yaml_text import Node, text_of
from tailrace.errors import MissingVariableError, UsageError
from tailrace.pipelines.spark.executor import command

SECRET = "hunter2-of-the-warehouse"
PIPELINES = """
import tailrace as tr
from tailrace import sinks, sources

shop = sources.Postgres("shop", dsn=tr.env("SHOP_DSN"), tables=["orders"])
totals = tr.view(
    "totals", "SELECT country, count(*) AS orders FROM shop.orders GROUP BY country", key="country",
    to=[sinks.Postgres(tr.env("DWH_DSN", default="postgres:///dwh"), table="totals"),
        sinks.SQLite("copies.db", table="totals")],
)
"""
SETTINGS = """
[project]
name = "My_Shop"

[log]
bootstrap = "kafka-1:9092"
security = { protocol = "SASL_SSL", mechanism = "PLAIN", username = "shop", password = "${LOG_PASSWORD}" }

[spark]
conf."spark.driver.memory" = "3g"
conf."spark.executor.instances" = 7
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "pipelines").mkdir(parents=True)
    (folder / "pipelines" / "shop.py").write_text(PIPELINES)
    (folder / "tailrace.toml").write_text(SETTINGS)
    monkeypatch.setenv("DWH_DSN", f"postgres://dwh:{SECRET}@dwh/dwh")
    monkeypatch.setenv("LOG_PASSWORD", SECRET)
    monkeypatch.delenv("SHOP_DSN", raising=False)
    return folder


def run(project: Path, *words: str) -> Result:
    return CliRunner().invoke(deploy, [*words, "--project", str(project)])


def documents(folder: Path) -> dict[tuple[str, str], dict[str, object]]:
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            if one is not None:
                found[one["kind"], one["metadata"]["name"]] = one
    return found


def kubernetes(project: Path, *further: str) -> dict[tuple[str, str], dict[str, object]]:
    out = project.parent / "out"
    ran = run(project, "kubernetes", str(out), "--image", "registry/shop:1", *further)
    assert ran.exit_code == 0, ran.output
    return documents(out)


def test_secrets_are_referred_to_and_never_written(project: Path) -> None:
    made = kubernetes(project)
    container = _driver(made)
    referred = {
        one["name"]: one["valueFrom"]["secretKeyRef"]
        for one in container["env"]
        if "valueFrom" in one
    }
    assert referred == {
        "DWH_DSN": {"name": "my-shop", "key": "DWH_DSN", "optional": True},
        "LOG_PASSWORD": {"name": "my-shop", "key": "LOG_PASSWORD"},
        "SHOP_DSN": {"name": "my-shop", "key": "SHOP_DSN"},
    }
    ran = run(project, "yarn", str(project.parent / "out"), "--force")
    assert isinstance(ran.exception, StateNotSharedError)
    for path in (project.parent / "out").iterdir():
        assert SECRET not in path.read_text(), path


def test_what_the_project_says_of_spark_goes_before_the_defaults(project: Path) -> None:
    made = kubernetes(project)
    defaults = made["ConfigMap", "my-shop-spark"]["data"]["spark-defaults.conf"]  # type: ignore[index]
    assert "spark.executor.instances" not in defaults
    assert _driver(made)["resources"]["limits"]["memory"] == f"{3 * 1024 + 1536}Mi"


def test_driver_and_executors_see_state_and_checkpoints_at_the_same_paths(project: Path) -> None:
    made = kubernetes(project, "--home", "/srv/shop")
    template = yaml.safe_load(made["ConfigMap", "my-shop-spark"]["data"]["executor.yaml"])  # type: ignore[index]
    executor = template["spec"]["containers"][0]

    def shared(container: dict[str, list[dict[str, str]]]) -> dict[str, str]:
        return {
            one["subPath"]: one["mountPath"]
            for one in container["volumeMounts"]
            if one["name"] == "shared"
        }

    places = {"streams": "/srv/shop/.tailrace/streams", "state": "/srv/shop/.tailrace/state"}
    assert shared(_driver(made)) == shared(executor) == places
    text = SETTINGS.replace("[spark]", '[spark]\nstate = "s3://bucket/state"')
    (project / "tailrace.toml").write_text(text)
    made = kubernetes(project, "--home", "/srv/shop", "--force")
    assert shared(_driver(made)) == {"streams": "/srv/shop/.tailrace/streams"}


def test_executors_get_no_secret_of_the_project_and_may_ask_kubernetes_nothing(
    project: Path,
) -> None:
    made = kubernetes(project)
    template = yaml.safe_load(made["ConfigMap", "my-shop-spark"]["data"]["executor.yaml"])  # type: ignore[index]
    assert "env" not in template["spec"]["containers"][0]
    assert "envFrom" not in template["spec"]["containers"][0]
    assert template["spec"]["automountServiceAccountToken"] is False
    (binding,) = [one for (kind, _), one in made.items() if kind == "RoleBinding"]
    assert [one["name"] for one in binding["subjects"]] == ["my-shop-driver"]  # type: ignore[attr-defined]


def test_a_log_that_the_cluster_cannot_reach_is_refused(project: Path, tmp_path: Path) -> None:
    words = ["kubernetes", str(tmp_path / "out"), "--image", "i"]
    (project / "tailrace.toml").write_text('[project]\nname = "shop"\n')
    assert isinstance(run(project, *words).exception, LogNotReachableError)
    (project / "tailrace.toml").write_text('[log]\nbootstrap = "localhost:9092"\n')
    assert isinstance(run(project, *words).exception, LogNotReachableError)
    refused = run(project, *words, "--log", "kafka-1:9092,127.0.0.1:9092")
    assert isinstance(refused.exception, LogNotReachableError)
    assert not (tmp_path / "out").exists()
    assert run(project, *words, "--log", "kafka-1:9092").exit_code == 0


def test_a_file_that_was_changed_by_hand_is_kept(project: Path, tmp_path: Path) -> None:
    words = ["kubernetes", str(tmp_path / "out"), "--image", "i"]
    assert run(project, *words).exit_code == 0
    assert run(project, *words).exit_code == 0  # the same again changes nothing
    (tmp_path / "out" / "state.yaml").write_text("by hand")
    (tmp_path / "out" / "roles.yaml").unlink()
    assert isinstance(run(project, *words).exception, FilesChangedError)
    assert (tmp_path / "out" / "state.yaml").read_text() == "by hand"
    assert not (tmp_path / "out" / "roles.yaml").exists()
    assert run(project, *words, "--force").exit_code == 0
    assert (tmp_path / "out" / "state.yaml").read_text() != "by hand"


def test_json_says_files_variables_warnings_and_steps(project: Path, tmp_path: Path) -> None:
    ran = run(project, "kubernetes", str(tmp_path / "out"), "--image", "i", "--json")
    told = orjson.loads(ran.stdout)
    assert {Path(one).name for one in told["files"]} == {
        "Dockerfile", "Dockerfile.dockerignore", "roles.yaml", "state.yaml", "executors.yaml", "driver.yaml",
    }  # fmt: skip
    assert {"name": "DWH_DSN", "required": False} in told["variables"]
    assert len(told["warnings"]) == 1
    assert "totals.sqlite" in told["warnings"][0]
    assert told["steps"][-1] == f"kubectl apply -f {tmp_path / 'out'}"


def test_a_service_for_yarn_refers_to_files_and_names_no_value(
    project: Path, tmp_path: Path
) -> None:
    text = SETTINGS.replace("[spark]", '[spark]\nstate = "/shared/state"')
    (project / "tailrace.toml").write_text(text)
    ran = run(project, "yarn", str(tmp_path / "out"), "--queue", "shop", "--python", "/opt/p")
    assert ran.exit_code == 0, ran.output
    made = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert set(made) == {"spark-defaults.conf", "tailrace-my-shop.service", "my-shop.env.example"}
    assert "spark.yarn.queue shop\n" in made["spark-defaults.conf"]
    assert "ExecStart=/opt/p -m tailrace up --quiet\n" in made["tailrace-my-shop.service"]
    assert 'Environment="TAILRACE_SPARK__MASTER=yarn"\n' in made["tailrace-my-shop.service"]
    names = made["my-shop.env.example"].splitlines()[2:]
    assert names == ["# DWH_DSN=", "LOG_PASSWORD=", "SHOP_DSN="]
    assert not [name for name, text in made.items() if SECRET in text]


def test_names_become_labels_of_kubernetes() -> None:
    assert label_of("Shop of_the.North") == "shop-of-the-north"
    assert label_of("a" * 60) == "a" * 40
    for name in ("", "...", "9lives"):
        with pytest.raises(UsageError):
            label_of(name)


def test_an_executor_is_started_as_spark_says(tmp_path: Path) -> None:
    environment = {
        "SPARK_EXECUTOR_MEMORY": "1024m", "SPARK_DRIVER_URL": "spark://d", "SPARK_EXECUTOR_ID": "3",
        "SPARK_EXECUTOR_CORES": "2", "SPARK_APPLICATION_ID": "app", "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
        "SPARK_RESOURCE_PROFILE_ID": "0", "SPARK_EXECUTOR_POD_NAME": "shop-exec-3",
        "SPARK_CONF_DIR": "/opt/spark/conf", "SPARK_JAVA_OPTS": "no option of ours",
        **{f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in range(12)},
    }  # fmt: skip
    words = command(environment, tmp_path / "java", tmp_path / "jars")
    assert words[:13] == [str(tmp_path / "java"), *(f"-Dn={number}" for number in range(12))]
    assert words[13] == "-Dspark.master=k8s://driver"
    assert words[14:18] == ["-Xms1024m", "-Xmx1024m", "-cp", f"/opt/spark/conf:{tmp_path}/jars/*"]
    assert words[-2:] == ["--podName", "shop-exec-3"]
    del environment["SPARK_DRIVER_URL"]
    with pytest.raises(MissingVariableError, match="no pod"):
        command(environment, tmp_path / "java", tmp_path / "jars")


def test_outside_a_pod_the_executor_ends_with_an_error() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tailrace.pipelines.spark.executor"],
        capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "[config-missing-variable]" in ran.stderr


# A key of YAML is shorter than 1,024 characters, and one that is escaped takes ten.
texts = st.text(max_size=90) | st.sampled_from(
    ["yes", "1", "- a", "a: b", "#", "~", "null", "a\nb\n", "x #y"]
)
nodes: st.SearchStrategy[Node] = st.recursive(
    texts | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(texts, nodes, min_size=1, max_size=5))
def test_yaml_reads_back_what_was_written(document: dict[str, Node]) -> None:
    assert yaml.safe_load(text_of(document)) == document


def _driver(made: dict[tuple[str, str], dict[str, object]]) -> dict[str, object]:
    spec = made["StatefulSet", "my-shop-driver"]["spec"]
    found: dict[str, object] = spec["template"]["spec"]["containers"][0]  # type: ignore[index]
    return found
