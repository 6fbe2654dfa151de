"""One blocking connection to one broker.

Requests are answered in the order they were sent, so several may be on their way:
`send` them all, then `receive` each. Versions are agreed once, after connecting.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence

from tailrace.client.errors import AuthenticationError, BrokerUnavailableError
from tailrace.clock import SYSTEM
from tailrace.security import Security
from tailrace.wire.apis import APIS, Api, ApiKey
from tailrace.wire.errors import DecodeError, ErrorCode
from tailrace.wire.frames import (
    MAX_FRAME_BYTES,
    common_version,
    decode_response,
    encode_request,
)
from tailrace.wire.message import Message
from tailrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

API_VERSIONS = APIS[ApiKey.API_VERSIONS]
MOST_PIECES = 512  # of one sendmsg; the kernel takes 1,024


RENEWED_AT = 0.8  # of a session's lifetime we log in again

Opener = Callable[[str, int, float], socket.socket]


def open_socket(host: str, port: int, timeout: float) -> socket.socket:
    """A connected TCP socket. Raises OSError."""
    made = socket.create_connection((host, port), timeout)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def secured(opener: Opener, security: Security) -> Opener:
    """An opener whose sockets speak TLS, with the server's certificate and name checked."""
    context = security.context()

    def open_secured(host: str, port: int, timeout: float) -> socket.socket:
        plain = opener(host, port, timeout)
        try:
            return context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise

    return open_secured


class Connection:
    """A socket, the versions the broker speaks, and the answers still to come.

    Any failure of the socket closes it and raises BrokerUnavailableError; whether a
    request was carried out is then unknown. With `security` over SASL it logs in first, and
    again before the session ends, at a moment when no answer is expected.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout: float = 30.0,
        client_id: bytes = b"tailrace",
        opener: Opener = open_socket,
        security: Security | None = None,
    ) -> None:
        self.address = f"{host}:{port}"
        self._security = security if security is not None and security.sasl else None
        self._log_in_at: float | None = None
        self.closed = False
        self._client_id = client_id
        self._correlation_id = 0
        self._expected: deque[tuple[int, Api, int]] = deque()
        try:
            self._socket = opener(host, port, timeout)
        except ssl.SSLError as error:
            raise AuthenticationError(
                f"no TLS connection to {self.address}",
                detail=getattr(error, "verify_message", "") or error.reason or str(error),
                hint="check ca, certificate and key under [log.security], and that it speaks TLS",
            ) from error
        except OSError as error:
            raise BrokerUnavailableError(
                f"no broker answers at {self.address}", detail=str(error)
            ) from error
        self._ranges: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        try:
            self._agree()
            self._log_in()
        except BaseException:
            self.close()
            raise

    def _agree(self) -> None:
        for version in (4, 3, 0):
            self.send(API_VERSIONS, ApiVersionsRequest("tailrace", "1"), version)
            _, _, _, frame = self._receive_frame()
            # A broker that does not know the version answers in version 0.
            told = int.from_bytes(frame[4:6], "big")
            _, response = decode_response(
                API_VERSIONS, 0 if told == ErrorCode.UNSUPPORTED_VERSION else version, frame
            )
            assert isinstance(response, ApiVersionsResponse)
            if response.error_code == ErrorCode.NONE:
                break
        else:
            raise BrokerUnavailableError(f"{self.address} does not speak Kafka's protocol")
        self._ranges = {
            each.api_key: (each.min_version, each.max_version) for each in response.api_keys
        }
        self.features = {each.name: each.max_version_level for each in response.finalized_features}

    def _log_in(self) -> None:
        if self._security is None:
            return
        from tailrace.client.sasl import log_in

        self._log_in_at = None  # its own requests do not log in first
        lifetime = log_in(self.address, self._security, self.request)
        if lifetime is not None:
            self._log_in_at = SYSTEM.monotonic() + RENEWED_AT * lifetime

    @property
    def session_ends(self) -> bool:
        """Whether the broker wants the log-in to be repeated after a while."""
        return self._log_in_at is not None

    def _renew(self) -> None:
        """Log in again if it is time and no answer is on its way."""
        if (
            self._log_in_at is not None
            and not self._expected
            and SYSTEM.monotonic() >= self._log_in_at
        ):
            self._log_in()

    def version(self, api: Api, highest: int | None = None) -> int:
        """The version to speak, at most `highest`. Raises UnsupportedVersionError."""
        lowest, offered = self._ranges.get(api.key, (0, -1))
        return common_version(api, lowest, offered if highest is None else min(offered, highest))

    def offers(self, api: Api) -> bool:
        return api.key in self._ranges

    def request(self, api: Api, message: Message, highest: int | None = None) -> Message:
        """Send a request and wait for its answer."""
        self.send(api, message, self.version(api, highest))
        return self.receive()

    def send(self, api: Api, message: Message, version: int) -> None:
        self._renew()
        frame = encode_request(api, version, self._next(), message, self._client_id)
        self._write([frame])
        self._expected.append((self._correlation_id, api, version))

    def send_pieces(
        self, api: Api, version: int, pieces: Sequence[bytes | bytearray | memoryview]
    ) -> None:
        """Send a frame that was made with `next_correlation_id()`."""
        self._write(pieces)
        self._expected.append((self._correlation_id, api, version))

    def next_correlation_id(self) -> int:
        self._renew()
        return self._next()

    def receive(self) -> Message:
        """The answer to the oldest request that has none yet."""
        correlation_id, api, version, frame = self._receive_frame()
        try:
            answered, message = decode_response(api, version, frame)
        except DecodeError as error:
            self.close()
            raise BrokerUnavailableError(
                f"{self.address} sent an answer that cannot be read", detail=error.message
            ) from error
        if answered != correlation_id:
            self.close()
            raise BrokerUnavailableError(f"{self.address} answered another request")
        return message

    def fileno(self) -> int:
        """For `select`: readable when an answer begins to arrive, unless `buffered`."""
        return self._socket.fileno()

    @property
    def buffered(self) -> bool:
        """Whether bytes were taken from the socket that nobody has read."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def close(self) -> None:
        self.closed = True
        self._expected.clear()
        self._socket.close()

    def _next(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def _write(self, pieces: Sequence[bytes | bytearray | memoryview]) -> None:
        try:
            for start in range(0, len(pieces), MOST_PIECES):
                part = pieces[start : start + MOST_PIECES]
                if isinstance(self._socket, ssl.SSLSocket):  # has no sendmsg
                    self._socket.sendall(b"".join(part))
                    continue
                sent = self._socket.sendmsg(part)
                for piece in part:
                    if sent >= len(piece):
                        sent -= len(piece)
                    else:
                        self._socket.sendall(memoryview(piece)[sent:])
                        sent = 0
        except OSError as error:
            self.close()
            raise self._lost(error) from error

    def _receive_frame(self) -> tuple[int, Api, int, memoryview]:
        if not self._expected:
            raise BrokerUnavailableError(f"the connection to {self.address} is closed")
        correlation_id, api, version = self._expected[0]
        size = int.from_bytes(self._read(4), "big", signed=True)
        if not 4 <= size <= MAX_FRAME_BYTES * 2:
            self.close()
            raise BrokerUnavailableError(
                f"{self.address} does not speak Kafka's protocol",
                detail=f"an answer claims to be {size} bytes long",
            )
        frame = self._read(size)
        self._expected.popleft()
        return correlation_id, api, version, frame

    def _read(self, size: int) -> memoryview:
        buffer = memoryview(bytearray(size))
        filled = 0
        try:
            while filled < size:
                count = self._socket.recv_into(buffer[filled:])
                if count == 0:
                    raise ConnectionResetError("the broker closed the connection")
                filled += count
        except OSError as error:
            self.close()
            raise self._lost(error) from error
        return buffer

    def _lost(self, error: OSError) -> BrokerUnavailableError:
        return BrokerUnavailableError(
            f"the connection to {self.address} was lost", detail=str(error) or repr(error)
        )
