"""Manifests for a project whose Spark is Kubernetes, and the image of its pods.

One pod runs `tailrace up` with Spark's driver in it (a StatefulSet of one: there is never a
second beside it). Spark itself asks Kubernetes for executors, which are pods of the same image
after the template in `executors.yaml`, belong to the driver's pod and go when it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tailrace.deployment.needs import Needs
from tailrace.deployment.yaml_text import Node, text_of
from tailrace.pipelines.streams.beginnings import DIRECTORY as STREAMS

WRITTEN = "# Written by `tailrace deploy kubernetes`."
DRIVER_PORT = 7078
BLOCKS_PORT = 7079
USER = 10001
CONFIGURATION = "/etc/tailrace/spark"
SPARK_SECRET = "/etc/tailrace/spark-secret"
CACHE = "/var/tmp/tailrace"
STOP_SECONDS = 180

# What Spark's client does in client mode; a test compares it with what the client really asks.
RULES: Mapping[str, tuple[str, ...]] = {
    "pods": ("create", "delete", "deletecollection", "get", "list", "patch", "watch"),
    "configmaps": ("create", "deletecollection"),
    "services": ("deletecollection",),
    "persistentvolumeclaims": ("deletecollection", "list"),
}


@dataclass(frozen=True, slots=True)
class Choices:
    """What whoever deploys decides, and no project says."""

    image: str
    namespace: str = "default"
    executors: int = 2
    home: str | None = None
    storage: str = "10Gi"
    storage_class: str | None = None
    shared_class: str | None = None
    python: str = "/usr/local/bin/python"


def files(needs: Needs, choices: Choices) -> dict[str, str]:
    """The files by name."""
    made = _Manifests(needs, choices)
    return {
        "Dockerfile": made.dockerfile(),
        "Dockerfile.dockerignore": _IGNORED,
        "roles.yaml": _several(made.roles()),
        "state.yaml": _several([made.state()]),
        "executors.yaml": _several([made.executors()]),
        "driver.yaml": _several(made.driver()),
    }


def _several(documents: Iterator[Mapping[str, Node]] | list[Mapping[str, Node]]) -> str:
    return "---\n".join([f"{WRITTEN}\n", *map(text_of, documents)])


class _Manifests:
    def __init__(self, needs: Needs, choices: Choices) -> None:
        self._needs, self._choices = needs, choices
        self._home = choices.home or f"/home/tailrace/{needs.label}"
        self._driver = f"{needs.label}-driver"
        self._state = f"{needs.label}-state"
        self._spark = f"{needs.label}-spark"

    def _meta(self, name: str) -> dict[str, Node]:
        return {
            "name": name,
            "namespace": self._choices.namespace,
            "labels": self._labels(),
        }

    def _labels(self, role: str | None = None) -> dict[str, Node]:
        labels: dict[str, Node] = {
            "app.kubernetes.io/name": "tailrace",
            "app.kubernetes.io/instance": self._needs.label,
        }
        return {**labels, "app.kubernetes.io/component": role} if role else labels

    # --- roles ---

    def roles(self) -> Iterator[Mapping[str, Node]]:
        """The driver may make executors in its namespace; executors may ask nothing."""
        account = f"{self._needs.label}-executor"
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self._meta(self._driver)}
        yield {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": self._meta(account),
            "automountServiceAccountToken": False,
        }
        yield {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": self._meta(self._driver),
            "rules": [
                {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}
                for resource, verbs in RULES.items()
            ],
        }
        yield {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": self._meta(self._driver),
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": self._driver,
            },
            "subjects": [
                {
                    "kind": "ServiceAccount",
                    "name": self._driver,
                    "namespace": self._choices.namespace,
                }
            ],
        }

    # --- volumes ---

    def state(self) -> Mapping[str, Node]:
        """The volume of state and checkpoints, which driver and executors write."""
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": self._meta(self._state),
            "spec": self._claim("ReadWriteMany", self._choices.shared_class),
        }

    def _claim(self, mode: str, storage_class: str | None) -> dict[str, Node]:
        named: dict[str, Node] = {"storageClassName": storage_class} if storage_class else {}
        return {
            "accessModes": [mode],
            "resources": {"requests": {"storage": self._choices.storage}},
            **named,
        }

    def _shared(self) -> dict[str, str]:
        """Directories of the shared volume, and where driver and executors see them."""
        own = f"{self._home}/.tailrace"
        shared = {STREAMS: f"{own}/{STREAMS}"}
        if not self._needs.state_is_remote:
            shared["state"] = self._needs.state or f"{own}/state"
        return shared

    def _mounts(self) -> list[Node]:
        shared: list[Node] = [
            {"name": "shared", "mountPath": place, "subPath": below}
            for below, place in self._shared().items()
        ]
        return [
            *shared,
            {"name": "cache", "mountPath": self._needs.cache or CACHE},
            {"name": "spark-secret", "mountPath": SPARK_SECRET, "readOnly": True},
        ]

    def _volumes(self) -> list[Node]:
        return [
            {"name": "shared", "persistentVolumeClaim": {"claimName": self._state}},
            {"name": "cache", "emptyDir": {}},
            {"name": "spark-secret", "secret": {"secretName": self._spark, "defaultMode": 0o440}},
        ]

    def _pod_security(self) -> Node:
        return {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }

    def _security(self) -> Node:
        return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

    # --- executors ---

    def executors(self) -> Mapping[str, Node]:
        """Spark's settings, and the template after which it makes executors."""
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self._meta(self._spark),
            "data": {
                "spark-defaults.conf": self.defaults(),
                "executor.yaml": text_of(self.template()),
            },
        }

    def defaults(self) -> str:
        """`spark-defaults.conf`: what the project's own `[spark] conf` says goes before it."""
        choices, needs = self._choices, self._needs
        domain = f"{self._driver}.{choices.namespace}.svc"
        settings = {
            "spark.driver.host": domain,
            "spark.driver.bindAddress": "0.0.0.0",
            "spark.driver.port": str(DRIVER_PORT),
            "spark.driver.blockManager.port": str(BLOCKS_PORT),
            "spark.executor.instances": str(choices.executors),
            "spark.kubernetes.namespace": choices.namespace,
            "spark.kubernetes.container.image": choices.image,
            "spark.kubernetes.driver.pod.name": f"{self._driver}-0",
            "spark.kubernetes.executor.podTemplateFile": f"{CONFIGURATION}/executor.yaml",
            "spark.kubernetes.executor.podTemplateContainerName": "executor",
            "spark.kubernetes.authenticate.executor.serviceAccountName": f"{needs.label}-executor",
            "spark.authenticate": "true",
            "spark.authenticate.secret.file": f"{SPARK_SECRET}/secret",
            "spark.network.crypto.enabled": "true",
        }
        lines = (
            f"{name} {value}\n"
            for given, default in settings.items()
            for name, value in needs.setting(given, default).items()
        )
        return "".join(lines)

    def template(self) -> dict[str, Node]:
        """A pod of an executor; Spark adds name, image, memory, cores and variables."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"labels": self._labels("executor")},
            "spec": {
                "automountServiceAccountToken": False,
                "securityContext": self._pod_security(),
                "containers": [
                    {
                        "name": "executor",
                        "image": self._choices.image,
                        "command": [
                            self._choices.python,
                            "-m",
                            "tailrace.pipelines.spark.executor",
                        ],
                        "workingDir": self._home,
                        "securityContext": self._security(),
                        "volumeMounts": self._mounts(),
                    }
                ],
                "volumes": self._volumes(),
            },
        }

    # --- driver ---

    def driver(self) -> Iterator[Mapping[str, Node]]:
        """The pod of `tailrace up`, and the name under which executors find it."""
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self._meta(self._driver),
            "spec": {
                "clusterIP": "None",
                # Executors come before the driver is ready, which needs them.
                "publishNotReadyAddresses": True,
                "selector": self._labels("driver"),
                "ports": [
                    {"name": "driver", "port": DRIVER_PORT},
                    {"name": "blocks", "port": BLOCKS_PORT},
                ],
            },
        }
        yield {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": self._meta(self._driver),
            "spec": {
                "serviceName": self._driver,
                "replicas": 1,
                "selector": {"matchLabels": self._labels("driver")},
                "template": {
                    "metadata": {"labels": self._labels("driver")},
                    "spec": self._driver_pod(),
                },
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "project"},
                        "spec": self._claim("ReadWriteOnce", self._choices.storage_class),
                    }
                ],
            },
        }

    def _driver_pod(self) -> dict[str, Node]:
        memory = f"{self._needs.driver_memory_mib}Mi"
        own = f"{self._home}/.tailrace"
        folders = " ".join(f"/shared/{name}" for name in self._shared())
        return {
            "serviceAccountName": self._driver,
            "terminationGracePeriodSeconds": STOP_SECONDS,
            # So the pod, not `tailrace up`, reaps processes that lost their parent.
            "shareProcessNamespace": True,
            "securityContext": self._pod_security(),
            # A directory that Kubernetes made for a mount would be root's.
            "initContainers": [
                {
                    "name": "directories",
                    "image": self._choices.image,
                    "command": ["sh", "-c", f"mkdir -p {folders}"],
                    "securityContext": self._security(),
                    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
                }
            ],
            "containers": [
                {
                    "name": "tailrace",
                    "image": self._choices.image,
                    "command": [self._choices.python, "-m", "tailrace", "up", "--quiet"],
                    "workingDir": self._home,
                    "env": self._environment(),
                    "ports": [
                        {"name": "driver", "containerPort": DRIVER_PORT},
                        {"name": "blocks", "containerPort": BLOCKS_PORT},
                    ],
                    "readinessProbe": {
                        "exec": {"command": [self._choices.python, "-m", "tailrace", "status"]},
                        "periodSeconds": 30,
                        "timeoutSeconds": 20,
                    },
                    "resources": {
                        "requests": {"cpu": "1", "memory": memory},
                        "limits": {"memory": memory},
                    },
                    "securityContext": self._security(),
                    "volumeMounts": [
                        {"name": "project", "mountPath": own},
                        *self._mounts(),
                        {"name": "spark", "mountPath": CONFIGURATION, "readOnly": True},
                    ],
                }
            ],
            "volumes": [
                *self._volumes(),
                {"name": "spark", "configMap": {"name": self._spark}},
            ],
        }

    def _environment(self) -> list[Node]:
        """Settings that differ here by value, the project's variables by reference."""
        given = {
            "SPARK_CONF_DIR": CONFIGURATION,
            "TAILRACE_SPARK__MASTER": "k8s://https://kubernetes.default.svc",
        }
        if self._needs.cache is None:
            given["TAILRACE_SPARK__CACHE"] = CACHE
        if self._needs.log is not None:
            given["TAILRACE_LOG__BOOTSTRAP"] = self._needs.log
        optional: dict[str, Node] = {"optional": True}
        referred: list[Node] = [
            {
                "name": name,
                "valueFrom": {
                    "secretKeyRef": {
                        "name": self._needs.label,
                        "key": name,
                        **({} if needed else optional),
                    }
                },
            }
            for name, needed in sorted(self._needs.variables.items())
            if name not in given
        ]
        plain: list[Node] = [{"name": name, "value": value} for name, value in given.items()]
        return [*plain, *referred]

    # --- the image ---

    def dockerfile(self) -> str:
        """The image of the driver and of its executors."""
        return _DOCKERFILE.format(written=WRITTEN, home=self._home, user=USER)


_DOCKERFILE = """\
{written}
# Built in the project's directory: docker build -f THIS_FILE -t IMAGE .
FROM python:3.13-slim
RUN useradd --uid {user} --create-home tailrace \\
 && pip install --no-cache-dir 'tailrace[local]'
WORKDIR {home}
COPY --chown={user} . .
RUN mkdir -p .tailrace && chown {user} . .tailrace
USER {user}
STOPSIGNAL SIGTERM
CMD ["tailrace", "up", "--quiet"]
"""

_IGNORED = """\
**/.tailrace
**/.git
**/.env
**/*.env
**/.venv
**/venv
**/__pycache__
**/tests
**/*.db
**/*.db-*
"""


def next_steps(needs: Needs, choices: Choices, directory: str) -> list[str]:
    """What is to be done with the files, as commands."""
    namespace = f"kubectl -n {choices.namespace}"
    steps = [
        f"docker build -f {directory}/Dockerfile -t {choices.image} . && docker push {choices.image}",
        f"openssl rand -base64 32 | {namespace} create secret generic {needs.label}-spark --from-file=secret=/dev/stdin",
    ]
    if needs.variables:
        names = ", ".join(sorted(needs.variables))
        steps.append(
            f"{namespace} create secret generic {needs.label} --from-env-file={needs.label}.env   # with {names}"
        )
    return [*steps, f"kubectl apply -f {directory}"]
