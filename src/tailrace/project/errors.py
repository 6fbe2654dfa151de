"""Errors of a user's folder."""

from __future__ import annotations

from tailrace.errors import TailraceError


class ProjectError(TailraceError):
    """The project cannot be loaded."""

    code = "project"
    about: tuple[str, ...] = ()  # the declarations at fault


class ProjectMissingError(ProjectError):
    """There is no `tailrace.toml` in the directory. `tailrace init DIR` makes a project."""

    code = "project-missing"


class ProjectExistsError(ProjectError):
    """`tailrace init` never writes over an existing file."""

    code = "project-exists"


class UserFileError(ProjectError):
    """A file of the project raised an exception while it was imported. The detail shows
    the file, the line and the exception."""

    code = "user-file"


class NameClashError(ProjectError):
    """Two declarations have the same name. Names become topics, so each name can be
    used once in a project."""

    code = "name-clash"


class MissingInputError(ProjectError):
    """A view or stream reads something that no declaration of the project provides."""

    code = "missing-input"


class AmbiguousTableError(ProjectError):
    """`source.table` fits tables of several schemas. Write `source.schema.table`."""

    code = "ambiguous-table"


class CycleError(ProjectError):
    """Declarations feed each other in a circle. A topology must be acyclic; break the
    circle with a topic that another project writes."""

    code = "cycle"


class AddressError(ProjectError):
    """The address of a source or sink is malformed. The hint shows what it looks like; the address
    itself is never repeated, for it may hold a password."""

    code = "address"


class FileMissingError(ProjectError):
    """The SQLite file of a source is not there. Tailrace never makes it: a misspelt path would
    become an empty database. A running project waits for the file."""

    code = "file-missing"


class HistoryNeededError(ProjectError):
    """A stream reads a table's inserts, but the table's topic is compacted and forgets
    old changes. Give the source `history={"table": "90 days"}` (or "forever")."""

    code = "history-needed"
