"""Errors of pipelines: declarations, state, ticks and streams."""

from __future__ import annotations

from typing import TypeVar

from tailrace.errors import TailraceError

E = TypeVar("E", bound=TailraceError)


def told(error: E) -> E:
    """The error with its detail and hint in its traceback, which is all that Spark passes
    on from a Python worker. `streams.RunningStream` reads them back."""
    for name, words in (("detail", error.detail), ("hint", error.hint)):
        if words:
            error.add_note(f"{name}: {words}")
    return error


class PipelineError(TailraceError):
    """A pipeline or view cannot do its work."""

    code = "pipeline"


class DeclarationError(PipelineError):
    """A stream, view or topic is declared in a way that cannot mean anything: a bad
    name, an unknown policy, no inputs."""

    code = "declaration"


class UserFunctionError(PipelineError):
    """A function of the project raised an exception. The detail names its file and
    line; the exception itself is the cause."""

    code = "user-function"


class StateError(PipelineError):
    """The state of an operator cannot be read or written."""

    code = "state"


class StateFileMissingError(StateError):
    """A state file that a committed tick row names is not there. State is never
    guessed: put the file back, or rebuild the views (`tailrace view rebuild NAME`),
    which reads their inputs again."""

    code = "state-file-missing"


class StateFileDamagedError(StateError):
    """A state file's bytes do not have the hash its name promises. Put a good copy
    back, or rebuild the views that use it."""

    code = "state-file-damaged"


class StateVersionError(StateError):
    """A state file was written in a format this version of Tailrace does not read.
    Run the version that wrote it, or rebuild the views."""

    code = "state-version"


class StateOwnedError(StateError):
    """The directory of the state belongs to another project. Two projects in one directory
    would take each other's files for rubbish and sweep them: give each its own."""

    code = "state-owned"


class TickError(PipelineError):
    """A tick could not be planned, run or committed. The views stay at the last
    complete tick; the next attempt starts from it."""

    code = "tick"


class TickFencedError(TickError):
    """Another driver of the same project has started and taken over. This one stops
    at once: whatever it had not committed never happened."""

    code = "tick-fenced"


class TickUnsteadyError(TickError):
    """Spark ran a part of the tick twice and got two different answers; the attempt
    was thrown away. Seen again and again it means a function that is not
    deterministic, such as rand() or current_timestamp()."""

    code = "tick-unsteady"


class ContentsError(TickError):
    """The rows an operator holds cannot be read from its state. A new view that would have
    begun with them is filled from its topics instead, by itself."""

    code = "contents"


class ShardsChangedError(TickError):
    """The number of shards is fixed at a project's first tick, because state is kept
    per shard. Set `pipelines.shards` back, or rebuild the views."""

    code = "shards-changed"


class DataLostError(PipelineError):
    """Records that a pipeline has not read yet were removed by retention, or the topic
    was deleted and created again. Numbers would be silently wrong, so it stops; rebuild
    it, or reset it to where the topic begins now."""

    code = "data-lost"


class UndecodableRecordError(PipelineError):
    """A record does not have the form its topic should have: malformed JSON, a value
    that does not fit the column's type."""

    code = "undecodable-record"


class UnknownTableError(PipelineError):
    """A view or stream reads a table that no source has described in
    `<source>.schemas`. Is the source running, and does it capture the table?"""

    code = "unknown-table"


class StreamChangedError(PipelineError):
    """A replayed batch of a stream gave other rows than the first time, while part of
    the first result is already committed. Writing would double or lose rows. Make the
    function deterministic, or reset the stream (`tailrace pipeline reset NAME`)."""

    code = "stream-changed"


class SketchError(PipelineError):
    """A sketch (distinct count, quantiles, frequent values, membership) cannot be made, read
    or merged: the bytes are of another kind, two filters differ in size, or the package
    `datasketches` is not installed (`pip install 'tailrace[sketches]'`)."""

    code = "sketch"


class NotDeterministicError(PipelineError):
    """A stream uses a function whose result differs from run to run: rand(), uuid(),
    monotonically_increasing_id(), a function declared with asNondeterministic(). A batch
    that is repeated after a failure would give other rows than those already written.
    current_timestamp() is allowed: Spark records a batch's time and repeats it."""

    code = "not-deterministic"


class CheckpointError(PipelineError):
    """The files in which a stream keeps how far it has come do not belong to it, or cannot
    be read: copied from another pipeline, damaged, or written by another form of the
    function (other grouping, other state). Put the right ones back, or start over with
    `tailrace pipeline reset NAME`."""

    code = "checkpoint"


class StreamStuckError(PipelineError):
    """A micro-batch of a stream, or the function that builds it, has run longer than its
    `timeout`. The detail names the user's line it was seen in, where that can be told. The
    batch is stopped; nothing of it that was not committed is in the log."""

    code = "stream-stuck"


class StreamInterruptedError(PipelineError):
    """A stream stopped for a reason that lies neither in its function nor in its records: a
    broker or a Python worker was gone or too slow. It is started again by itself, with a
    pause that doubles up to a minute."""

    code = "stream-interrupted"


class DiskFullError(PipelineError):
    """A disk that a pipeline writes to has no space left. Nothing is lost: make room, and it
    goes on from its last complete batch."""

    code = "checkpoint-disk-full"


class SparkUnavailableError(PipelineError):
    """Spark did not start. The detail shows its last output."""

    code = "spark-unavailable"


class SparkLostError(PipelineError):
    """Spark's own process (the JVM) ended while pipelines ran: it was killed, or the machine
    had no memory left for it. The process of the pipelines ends too and is started again;
    ticks and streams go on from what they last committed."""

    code = "spark-lost"


class ViewError(PipelineError):
    """A view cannot be compiled or kept."""

    code = "view"
    view = ""  # whose SQL it is about, where that is known


class ViewNotJudgedError(ViewError):
    """`tailrace view verify` cannot say what the view should hold: it depends on the clock or
    on a watermark, records it was made of are gone, it is not kept as it is declared now, or
    Spark does not take its SQL as a batch query. The detail says which."""

    code = "view-not-judged"


class SqlSyntaxError(ViewError):
    """The SQL of a view does not parse. The detail shows the line and points at it."""

    code = "sql-syntax"


class SqlNameError(ViewError):
    """A view names a table, column or function that does not exist, or one that could
    mean several things. The detail points into the SQL, the hint lists what exists."""

    code = "sql-name"


class SqlTableError(SqlNameError):
    """A view reads a table or view that nobody has described. Is it captured by a source
    that runs, and is it spelt as `source.table`? The hint lists what is known."""

    code = "sql-table"


class SqlTypeError(ViewError):
    """Types in a view's SQL do not fit each other, by Spark's rules (ANSI)."""

    code = "sql-type"


class NotIncrementalError(ViewError):
    """A view contains something that cannot be kept incrementally: a function that is not
    deterministic, a join without any condition, a construct this version does not know.
    The detail points into the SQL."""

    code = "not-incremental"


class KeyNotUniqueError(ViewError):
    """Two rows of a view have the same key. A view's changelog holds one row per key, so
    the view is suspended before it would lose one: it is shown as it last was, the others
    go on, and it comes back when one of the rows is gone. Declare more key columns, or
    leave `key=` out: the view is then a bag whose rows carry a count."""

    code = "key-not-unique"


class EvaluationError(ViewError):
    """An expression of a view failed on a row, as it would in Spark (ANSI): a number that
    overflows its type, a division by zero, text that is not a number, a scalar subquery
    with more than one row. The view is suspended and shown as it last was; the others go
    on, and it comes back when the row is put right or the SQL is (`try_divide`,
    `try_cast`)."""

    code = "evaluation"


class NoAnswerError(EvaluationError):
    """The JVM that computes Spark's expressions gave no answer in time, or ended again and again in the
    middle of a request. The view that asked is suspended and tried again after a pause; the
    others go on with a new JVM. A pattern that backtracks without end is the usual cause."""

    code = "no-answer"


class UnforeseenError(ViewError):
    """An exception that Tailrace did not foresee while it read a record or ran an operator:
    a fault of Tailrace's, or a declaration that does not fit its records. The views that
    meet it are left out and shown as they last were; the others go on, and they come back
    when the cause is gone. The detail names the record (`topic/partition@offset`) or the
    operator. Please report it with its traceback."""

    code = "unforeseen"
    traceback = ""

    def as_dict(self) -> dict[str, str]:
        return {**super().as_dict(), "traceback": self.traceback}
