"""Sockets of edges that take datagrams."""

from __future__ import annotations

import ipaddress
import logging
import selectors
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from time import sleep

from tailrace.errors import PortInUseError, UsageError

log = logging.getLogger(__name__)

DATAGRAM_BYTES = 65_535
_SO_RCVBUFFORCE = 33
_AT_ONCE = 256
_WAIT_SECONDS = 0.1
_IP_MULTICAST_ALL = 49


def bound(host: str, port: int, buffer_bytes: int) -> socket.socket:
    """Listens for datagrams at an address of this machine."""
    sock = socket.socket(_family(host), socket.SOCK_DGRAM)
    try:
        make_room(sock, buffer_bytes)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise _taken(host, port, error) from error
    return sock


def joined(group: str, port: int, interface: str | None, buffer_bytes: int) -> socket.socket:
    """Listens for what is sent to a multicast group, and to nothing else."""
    sock = socket.socket(_family(group), socket.SOCK_DGRAM)
    try:
        make_room(sock, buffer_bytes)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # others may hear it too
        sock.bind((group, port))
        if sock.family == socket.AF_INET6:
            there = socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", _index(interface))
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, there)
        else:
            try:
                sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            except OSError:
                pass  # then the same group joined by others at other interfaces is heard too
            here = socket.inet_aton(interface or "0.0.0.0")
            there = socket.inet_aton(group) + here
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, there)
    except OSError as error:
        sock.close()
        raise _taken(group, port, error) from error
    return sock


def sending(group: str, interface: str | None, hops: int) -> socket.socket:
    """Sends to a multicast group; this machine hears it too."""
    sock = socket.socket(_family(group), socket.SOCK_DGRAM)
    try:
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, _index(interface))
        else:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
            if interface:
                here = socket.inet_aton(interface)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
    except OSError as error:
        sock.close()
        raise UsageError(
            f"nothing can be sent to {group} from interface {interface!r}", detail=str(error)
        ) from error
    return sock


def arriving(sock: socket.socket) -> Iterator[list[bytes]]:
    """What has arrived, as often as it is asked for; an empty list after a quiet moment. Ends when
    the socket is closed."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(sock, selectors.EVENT_READ)
        while True:
            found: list[bytes] = []
            try:
                while len(found) < _AT_ONCE:
                    found.append(sock.recv(DATAGRAM_BYTES, socket.MSG_DONTWAIT))
            except BlockingIOError:
                if not found and waiting.select(_WAIT_SECONDS):
                    continue
            except OSError as error:
                if sock.fileno() < 0:
                    return
                # The interface went down, or memory ran out: datagrams may come again.
                log.warning("datagrams could not be read", extra={"error": str(error)})
                sleep(_WAIT_SECONDS)
            yield found


def make_room(sock: socket.socket, buffer_bytes: int) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer_bytes)
    except OSError:  # only root may have more than net.core.rmem_max
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)


def drops(inode: int) -> int:
    """How many datagrams the kernel dropped at a socket; 0 where it does not tell."""
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) >= 13 and fields[9] == str(inode):
                return int(fields[-1])
    return 0


def is_group(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_multicast
    except ValueError:
        return False


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _index(interface: str | None) -> int:
    return socket.if_nametoindex(interface) if interface else 0


def _taken(host: str, port: int, error: OSError) -> PortInUseError:
    return PortInUseError(
        f"nothing can listen on {host}:{port} (UDP)",
        detail=str(error),
        hint="choose another port, or 0; of a multicast group also look at interface=",
    )
