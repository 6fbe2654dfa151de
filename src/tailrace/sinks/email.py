"""Changes by mail: one mail a change, or everything of a while as a digest.

At least once: a repeat has the same `Message-ID`, which mail programs show only once. So
that a digest can be repeated as it was, how far it reaches is written down before it is
sent; what has come since goes into the next.
"""

from __future__ import annotations

import hashlib
import smtplib
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from tailrace.config import resolve
from tailrace.sinks.base import OFFSET, PARTITION, Batch, Shape, SinkPosition
from tailrace.sinks.declare import Email
from tailrace.sinks.errors import RowsRefusedError, TargetRefusedError, TargetUnavailableError
from tailrace.sinks.local import LocalPosition
from tailrace.sinks.registry import Copy, Surroundings
from tailrace.sinks.webhook import describe_changes


class EmailSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "every"

    def __init__(self, copy: Copy, surroundings: Surroundings) -> None:
        assert isinstance(copy.declaration, Email)
        self._copy = copy
        self._declaration = copy.declaration
        self._position = LocalPosition(surroundings.directory, copy.name)
        self._sent: set[str] = set()

    def open(self, shape: Shape) -> None:
        self._position.claim()

    def position(self) -> SinkPosition | None:
        return self._position.load()

    def apply(self, batch: Batch) -> None:
        self._position.check()
        if self._declaration.digest is None:
            self._send([[change] for change in describe_changes(self._copy, batch)])
        else:
            for part in self._digests(batch):
                changes = describe_changes(self._copy, part)
                if changes:
                    self._position.intend(part.position)
                    self._send([changes])
                    self._position.store(part.position)
        self._position.store(batch.position)
        self._sent.clear()

    def _digests(self, batch: Batch) -> list[Batch]:
        """What a digest that may be on its way already has, and the rest."""
        intended = self._position.intended()
        position = batch.position
        if intended is None or (intended.topic, intended.generation) != (
            position.topic,
            position.generation,
        ):
            return [batch]
        begun = [
            offset < intended.offsets.get(partition, 0)
            for partition, offset in zip(
                batch.changes[PARTITION].to_pylist(),
                batch.changes[OFFSET].to_pylist(),
                strict=True,
            )
        ]
        if all(begun):
            return [batch]
        first = batch.changes.filter(pa.array(begun, pa.bool_()))
        rest = batch.changes.filter(pa.array([not one for one in begun], pa.bool_()))
        return [Batch(batch.shape, first, intended), Batch(batch.shape, rest, position)]

    def _send(self, groups: Sequence[Sequence[dict[str, Any]]]) -> None:
        mails = [self.compose(group) for group in groups]
        waiting = [mail for mail in mails if mail["Message-ID"] not in self._sent]
        if waiting:
            with self._errors(), self._server() as server:
                for mail in waiting:
                    server.send_message(mail)
                    self._sent.add(mail["Message-ID"])

    def close(self) -> None:
        """A connection is made for every batch."""

    def compose(self, changes: Sequence[dict[str, Any]]) -> EmailMessage:
        """The mail about some changes."""
        declaration = self._declaration
        mail = EmailMessage()
        recipients = [declaration.to] if isinstance(declaration.to, str) else declaration.to
        mail["From"] = declaration.sender
        mail["To"] = ", ".join(recipients)
        first = changes[0]
        mail["Message-ID"] = f"<{_identity(changes)}@tailrace>"
        if first["at_ms"]:
            mail["Date"] = formatdate(first["at_ms"] / 1000)
        mail["Auto-Submitted"] = "auto-generated"
        subject = (
            self._fill(declaration.subject, first)
            if len(changes) == 1
            else f"{first['view']}: {len(changes)} changes"
        )
        mail["Subject"] = " ".join(subject.split())  # no line may be smuggled into the header
        if declaration.body is not None:
            text = "\n\n".join(self._fill(declaration.body, change) for change in changes)
        else:
            text = "\n\n".join(_told(change) for change in changes)
        mail.set_content(text)
        return mail

    def _fill(self, template: str, change: dict[str, Any]) -> str:
        key = ", ".join("–" if part is None else str(part) for part in change["key"].values())
        columns = change["row"] or change["key"]
        own = {"view": change["view"], "key": key, "op": change["op"]}
        try:
            return template.format_map({"row": columns, **columns, **own})
        except (KeyError, IndexError, ValueError, AttributeError, TypeError) as reason:
            raise RowsRefusedError(
                "the mail's template does not fit the row", detail=f"{template!r}: {reason}"
            ) from reason

    @contextmanager
    def _server(self) -> Iterator[smtplib.SMTP]:
        url = urlsplit(resolve(self._declaration.server))
        host, port = url.hostname or "localhost", url.port or (465 if url.scheme == "smtps" else 25)
        # smtplib's own context would take any certificate, and tell the password to anybody.
        context = ssl.create_default_context(cafile=dict(parse_qsl(url.query)).get("cafile"))
        if url.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=30, context=context)
        else:
            server = smtplib.SMTP(host, port, timeout=30)
        with server:
            if url.username:
                if url.scheme != "smtps":
                    server.starttls(context=context)
                server.login(unquote(url.username), unquote(url.password or ""))
            yield server

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (
            smtplib.SMTPRecipientsRefused,
            smtplib.SMTPSenderRefused,
            smtplib.SMTPDataError,
        ) as reason:
            code = getattr(reason, "smtp_code", 550)
            if isinstance(reason, smtplib.SMTPRecipientsRefused):
                code = next((c for c, _ in reason.recipients.values()), 550)
            if 400 <= code < 500:
                raise _later(reason) from reason
            raise RowsRefusedError(
                "the mail server refuses the mail", detail=str(reason)
            ) from reason
        except smtplib.SMTPAuthenticationError as reason:
            raise TargetRefusedError(
                "the mail server lets nobody in", detail=str(reason), hint="check user and password"
            ) from reason
        except ssl.SSLCertVerificationError as reason:
            raise TargetRefusedError(
                "nobody vouches for the mail server's certificate",
                detail=reason.verify_message,
                hint="name the authority that signed it: smtps://…?cafile=PATH; the password was not sent",
            ) from reason
        except (smtplib.SMTPException, OSError) as reason:
            raise _later(reason) from reason


def _later(reason: Exception) -> TargetUnavailableError:
    return TargetUnavailableError(
        "the mail server cannot be reached",
        detail=str(reason),
        hint="the sink tries again until it answers",
    )


def _identity(changes: Sequence[dict[str, Any]]) -> str:
    """The same for the same changes, in whatever order they were read."""
    if len(changes) == 1:
        return str(changes[0]["id"])
    text = "\n".join(sorted(change["id"] for change in changes))
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _told(change: dict[str, Any]) -> str:
    values = change["row"] or change["key"]
    width = max((len(name) for name in values), default=0)
    lines = [f"{name.ljust(width)}  {'–' if v is None else v}" for name, v in values.items()]
    return "\n".join(["deleted:", *lines] if change["row"] is None else lines)
