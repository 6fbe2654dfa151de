"""uvicorn's protocol on httptools, with a limit on what comes before a request's body.

The parser keeps the line and the headers of a request until they are complete, however long
they are, and before anybody can ask for a token.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 256 << 10
TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedHeads(HttpToolsProtocol):
    """Ends a connection whose request has a longer head."""

    _reading_head = False
    _head_bytes = 0

    def on_message_begin(self) -> None:
        self._reading_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._reading_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if self._reading_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.transport.write(TOO_LONG)
                self.transport.close()
                return
        super().data_received(data)
