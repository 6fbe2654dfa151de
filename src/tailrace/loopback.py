"""Which addresses only this machine can reach, and what else must be asked for."""

from __future__ import annotations

from tailrace.errors import OpenListenerError


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on `host`."""
    if host == "localhost":
        return True
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_open_log(host: str, *, insecure: bool, place: str, hint: str) -> None:
    """Raise `OpenListenerError` unless the log is for this machine or is meant to be open."""
    if not insecure and not is_loopback(host):
        raise OpenListenerError(
            "a log that other machines can reach is open to all of them",
            detail=f"{place} names {host or 'every address'} and asks nobody who they are, so "
            "whoever reaches the port reads and writes everything",
            hint=hint,
        )
