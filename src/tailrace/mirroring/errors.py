"""What stops a mirror."""

from __future__ import annotations

from tailrace.errors import TailraceError


class MirrorError(TailraceError):
    """A mirror cannot go on as it is."""

    code = "mirror"


class MirrorDeclarationError(MirrorError):
    """A mirror of a project says what no mirror does, or names a cluster that the project does not
    know. `tailrace check` names the file and line."""

    code = "mirror-declaration"


class MirrorFencedError(MirrorError):
    """Another process runs the mirror of this name now, or it was failed over. This one has
    stopped, and nothing that it had not committed will be seen."""

    code = "mirror-fenced"


class MirrorFailedOverError(MirrorError):
    """The mirror was failed over: the target is written by others now. Mirroring into it again
    would mix both. `tailrace mirror status` says when. A mirror of another name starts from
    the beginning."""

    code = "mirror-failed-over"


class MirrorShardError(MirrorError):
    """This process runs one of several shards of a mirror, and the first, which writes what the
    mirror is and makes its topics, has not begun, or with another number of shards. In a project it
    is waited for; by hand, run `tailrace mirror run NAME --shard 0/N` first."""

    code = "mirror-shard"


class MirrorLoopError(MirrorError):
    """Records would circulate endlessly: both logs are one, or a mirror of the other direction
    brings the same topics under the same names and does not know of this one. Name both sites for
    both mirrors (`--site ams --other ber` and `--site ber --other ams`; a project does), or use
    `--names prefix`, or topics that differ."""

    code = "mirror-loop"


class MirrorSourceLostError(MirrorError):
    """The source does not hold any more what comes next. The partition stops and the others go on.
    `--accept-gap` goes on behind the gap, which nothing fills; a mirror of another name, into
    topics of other names (`--names prefix`), starts from the beginning."""

    code = "mirror-source-lost"


class MirrorRecordsGoneError(MirrorSourceLostError):
    """Retention at the source removed records before they were mirrored. The partition stops and
    the others go on. Mirror more often or keep records longer at the source; started with
    `--accept-gap` the mirror goes on with the first record that is still there."""

    code = "mirror-records-gone"


class MirrorSourceTruncatedError(MirrorSourceLostError):
    """The source was cut back: an unclean election, or a disk that was lost, took records away that
    are at the target already. Both sides differ from there on, and the partition stops; the others
    go on. `tailrace mirror verify` names what differs. Started with `--accept-gap` the mirror goes
    on where the source was cut, and the target keeps what the source has lost."""

    code = "mirror-source-truncated"
    end: int = 0


class MirrorRecordTooLargeError(MirrorSourceLostError):
    """The target does not take a record: its topic's `max.message.bytes` is smaller than the
    source's. The partition is mirrored up to the record and stops; the others go on. Raise the
    setting at the target and start the mirror again; `--accept-gap` leaves the record out."""

    code = "mirror-record-too-large"


class MirrorTopicAnewError(MirrorSourceLostError):
    """A topic was deleted at the source and made again. Its partitions stop, and the others go on:
    two histories are never mixed unasked. Started with `--accept-gap` the mirror takes the new
    topic from its beginning, behind what the target has of the old one."""

    code = "mirror-topic-anew"
