"""Errors of making files for a cluster."""

from __future__ import annotations

from tailrace.errors import TailraceError


class DeploymentError(TailraceError):
    """The files for a cluster cannot be made from this project."""

    code = "deployment"


class LogNotReachableError(DeploymentError):
    """Executors on other machines read the log themselves, and the project's log listens on
    the machine of the driver. Name an Apache Kafka cluster: `bootstrap` in `[log]`, or
    `--log ADDRESS`."""

    code = "deployment-log"


class StateNotSharedError(DeploymentError):
    """Executors keep the state of views in files that all hosts must reach. On YARN `state` in
    `[spark]` names a directory that every host mounts, or a URL such as `s3://bucket/state`."""

    code = "deployment-state"


class FilesChangedError(DeploymentError):
    """A file would be written over that differs from what would be written. Files that were
    changed by hand are kept unless `--force` is given."""

    code = "deployment-files"
