"""What stops a mirror."""

from __future__ import annotations

from tailrace.errors import TailraceError


class MirrorError(TailraceError):
    """A mirror cannot go on as it is."""

    code = "mirror"


class MirrorFencedError(MirrorError):
    """Another process runs the mirror of this name now, or it was failed over. This one has
    stopped, and nothing that it had not committed will be seen."""

    code = "mirror-fenced"


class MirrorFailedOverError(MirrorError):
    """The mirror was failed over: the target is written by others now. Mirroring into it again
    would mix both. `tailrace mirror status` says when. A mirror of another name starts from
    the beginning."""

    code = "mirror-failed-over"


class MirrorLoopError(MirrorError):
    """Records would go round for ever: both logs are one, or a mirror of the other direction
    brings the same topics under the same names. Use `--names prefix`, or topics that differ."""

    code = "mirror-loop"


class MirrorSourceLostError(MirrorError):
    """The source does not hold any more what comes next: retention removed it, the log was cut
    back by an unclean election, or the topic was deleted and made again. The mirror stops; going
    on would pass records over, or mix two histories. A mirror of another name, into topics of
    other names (`--names prefix`), starts from the beginning."""

    code = "mirror-source-lost"
