"""Changes by mail: one mail a change, or everything of a while as a digest.

At least once: a repeat has the same `Message-ID`, which mail programs show only once.
"""

from __future__ import annotations

import smtplib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

from tailrace.config import resolve
from tailrace.sinks.base import Batch, Shape, SinkPosition
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
        changes = describe_changes(self._copy, batch)
        groups = [changes] if self._declaration.digest is not None else [[c] for c in changes]
        mails = [self.compose(group) for group in groups if group]
        waiting = [mail for mail in mails if mail["Message-ID"] not in self._sent]
        if waiting:
            with self._errors(), self._server() as server:
                for mail in waiting:
                    server.send_message(mail)
                    self._sent.add(mail["Message-ID"])
        self._position.store(batch.position)
        self._sent.clear()

    def close(self) -> None:
        """A connection is made for every batch."""

    def compose(self, changes: Sequence[dict[str, Any]]) -> EmailMessage:
        """The mail about some changes."""
        declaration = self._declaration
        mail = EmailMessage()
        recipients = [declaration.to] if isinstance(declaration.to, str) else declaration.to
        mail["From"] = declaration.sender
        mail["To"] = ", ".join(recipients)
        mail["Message-ID"] = f"<{changes[0]['id']}.{len(changes)}@tailrace>"
        mail["Auto-Submitted"] = "auto-generated"
        first = changes[0]
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
        try:
            return template.format(**columns, view=change["view"], key=key, op=change["op"])
        except (KeyError, IndexError, ValueError, AttributeError) as reason:
            raise RowsRefusedError(
                "the mail's template does not fit the row", detail=f"{template!r}: {reason}"
            ) from reason

    @contextmanager
    def _server(self) -> Iterator[smtplib.SMTP]:
        url = urlsplit(resolve(self._declaration.server))
        host, port = url.hostname or "localhost", url.port or (465 if url.scheme == "smtps" else 25)
        kind = smtplib.SMTP_SSL if url.scheme == "smtps" else smtplib.SMTP
        with kind(host, port, timeout=30) as server:
            if url.username:
                if url.scheme != "smtps":
                    server.starttls()
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
        except (smtplib.SMTPException, OSError) as reason:
            raise _later(reason) from reason


def _later(reason: Exception) -> TargetUnavailableError:
    return TargetUnavailableError(
        "the mail server cannot be reached",
        detail=str(reason),
        hint="the sink tries again until it answers",
    )


def _told(change: dict[str, Any]) -> str:
    values = change["row"] or change["key"]
    width = max((len(name) for name in values), default=0)
    lines = [f"{name.ljust(width)}  {'–' if v is None else v}" for name, v in values.items()]
    return "\n".join(["deleted:", *lines] if change["row"] is None else lines)
