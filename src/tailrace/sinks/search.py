"""An embedded full-text index: one document per row, kept in step like any other copy.

    <index>/current          a link to the directory that is searched
    <index>/data, data-2 …   tantivy's files

Every document stores its key (`_id`) and its row (`_row`); the columns are indexed beside
them. The position is a document too (`_id` = `_tailrace`), so it is committed with the
rows it belongs to. The index is locked only while there is something to write.
"""

from __future__ import annotations

import os
import shutil
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import orjson
import pyarrow as pa
import tantivy

from tailrace.analyzers import LANGUAGES, analyzer
from tailrace.errors import UsageError
from tailrace.files import FILES
from tailrace.records.rows import python_rows, read_rows
from tailrace.sinks.base import DELETED, Batch, Shape, Sink, SinkPosition, decode_position
from tailrace.sinks.declare import Search
from tailrace.sinks.errors import (
    RowsRefusedError,
    ShapeError,
    SinkError,
    SinkFencedError,
    TargetUnavailableError,
)
from tailrace.sinks.registry import Copy, Surroundings

META = "_tailrace"
CURRENT = "current"
FIELDS = "fields.json"
HEAP_BYTES = 64 << 20


class SearchSink:
    """See the module."""

    wants: ClassVar[Literal["latest", "every"]] = "latest"

    def __init__(self, copy: Copy, surroundings: Surroundings, *, link: str = CURRENT) -> None:
        assert isinstance(copy.declaration, Search)
        self._copy = copy
        self._surroundings = surroundings
        self._declaration = copy.declaration
        self._home = surroundings.path(copy.declaration.index)
        self._link = self._home / link
        self._fields: dict[str, str] = {}
        self._epoch = 0
        self._held: tuple[Any, Any] | None = None

    def open(self, shape: Shape) -> None:
        self._fields = _treatments(shape, self._declaration.fields)
        with self._errors():
            self._home.mkdir(parents=True, exist_ok=True)
            if not self._link.exists():
                self._point(self._new_directory(self._fields))
            if _known_fields(self._link) != self._fields:
                self.close()
                self._index_again()
            with self._writer() as (index, writer):
                meta = _meta(index)
                self._epoch = int(meta.get("epoch", 0)) + 1
                self._put_meta(writer, self._epoch, meta.get("position"))

    def position(self) -> SinkPosition | None:
        if not self._link.exists():
            return None
        with self._errors():
            return decode_position(_meta(open_index(self._link)).get("position"))

    def apply(self, batch: Batch) -> None:
        names, key, keyed = batch.shape.names, batch.shape.key, batch.shape.keyed
        documents: list[tuple[str, str | None]] = []
        for row in python_rows(batch.changes):
            identity = orjson.dumps([row[name] for name in key]).decode() if keyed else ""
            text = None if row[DELETED] else self._document(identity, row, names)
            documents.append((identity, text))
        with self._errors(), self._writer() as (index, writer):
            meta = _meta(index)
            if int(meta.get("epoch", 0)) != self._epoch:
                raise SinkFencedError(
                    f"another writer took sink {self._copy.name!r} over",
                    detail=f"Ours is epoch {self._epoch}, the index has {meta.get('epoch')}.",
                    hint="run a project only once",
                )
            fresh = meta.get("position") is None
            for identity, text in documents:
                if not fresh and keyed:
                    writer.delete_documents_by_term("_id", identity)
                if text is not None:
                    writer.add_json(text)
            self._put_meta(writer, self._epoch, batch.position.encode())

    def rest(self) -> None:
        if self._held is not None:
            self._held[1].wait_merging_threads()
            self._held = None

    def close(self) -> None:
        self._held = None

    def scan(self, shape: Shape) -> Iterator[pa.Table]:
        with self._errors():
            stored = _stored(open_index(self._link))
            texts = (text for identity, text in stored if identity != META)
            while part := list(islice(texts, 20_000)):
                yield read_rows(part, shape.columns)[0]

    # ------------------------------------------------------------------ side by side

    def beside(self) -> Sink:
        return SearchSink(self._copy, self._surroundings, link="next")

    def discard(self) -> None:
        self._remove("next")

    def switch(self) -> None:
        self.close()
        self._rotate("previous", "next")

    def previous(self) -> SinkPosition | None:
        link = self._home / "previous"
        if not link.exists():
            return None
        with self._errors():
            return decode_position(_meta(open_index(link)).get("position"))

    def rollback(self) -> None:
        self.close()
        self._rotate("next", "previous")

    def _rotate(self, away: str, back: str) -> None:
        with self._errors():
            epoch = int(_meta(open_index(self._link)).get("epoch", 0))
            served, other = self._link.readlink(), (self._home / back).readlink()
            with self._writer(self._home / back) as (index, writer):
                self._put_meta(writer, epoch + 1, _meta(index).get("position"))
            if (self._home / away).is_symlink():
                self._remove(away)
            _link(self._home / away, served)
            _link(self._link, other)
            (self._home / back).unlink()

    def _remove(self, link: str) -> None:
        path = self._home / link
        if path.is_symlink():
            target = path.parent / path.readlink()
            path.unlink()
            # After a switch that was cut short two links may name one directory.
            others = [p for p in self._home.iterdir() if p.is_symlink()]
            if all(other.readlink().name != target.name for other in others):
                shutil.rmtree(target, ignore_errors=True)

    # ------------------------------------------------------------------ documents

    def _document(self, identity: str, row: dict[str, Any], names: tuple[str, ...]) -> str:
        document: dict[str, Any] = {
            "_id": identity,
            "_row": b64encode(orjson.dumps({name: row[name] for name in names})).decode(),
        }
        for name, treatment in self._fields.items():
            value = row.get(name)
            if value is not None:
                document[name] = _indexed(value, treatment)
        return orjson.dumps(document).decode()

    def _put_meta(self, writer: Any, epoch: int, position: str | None) -> None:
        writer.delete_documents_by_term("_id", META)
        writer.add_json(_meta_document(orjson.dumps({"epoch": epoch, "position": position})))

    def _index_again(self) -> None:
        """A tantivy schema is fixed: other fields mean another directory, filled from the
        rows the old one has stored."""
        old = tantivy.Index.open(
            str(self._link)
        )  # only its rows are read, for which no analyzer matters
        fresh = self._new_directory(self._fields)
        names: tuple[str, ...]
        with self._writer(fresh) as (_, writer):
            for identity, text in _stored(old):
                if identity == META:
                    writer.add_json(_meta_document(text))
                else:
                    row = orjson.loads(text)
                    names = tuple(row)
                    writer.add_json(self._document(identity, row, names))
        former = self._home / self._link.readlink()
        self._point(fresh)
        shutil.rmtree(former, ignore_errors=True)

    def _new_directory(self, fields: Mapping[str, str]) -> Path:
        number = 1
        while (path := self._home / (f"data-{number}" if number > 1 else "data")).exists():
            number += 1
        draft = path.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        tantivy.Index(_schema(fields), path=str(draft))
        FILES.write_whole(draft / FIELDS, orjson.dumps(dict(fields)))
        draft.rename(path)
        return path

    def _point(self, target: Path) -> None:
        _link(self._link, Path(target.name))

    @contextmanager
    def _writer(self, path: Path | None = None) -> Iterator[tuple[Any, Any]]:
        """A writer of the index; commits at the end, drops everything on an error.

        The one of our own index is kept through a backlog, for its merges; `rest` lets
        go of it, and of the lock.
        """
        if path is None and self._held is None:
            index = open_index(self._link)
            self._held = (index, index.writer(HEAP_BYTES, 1))
        if path is None:
            assert self._held is not None
            index, writer = self._held
        else:
            index = open_index(path)
            writer = index.writer(HEAP_BYTES, 1)
        try:
            yield index, writer
            writer.commit()
            if path is not None:
                writer.wait_merging_threads()
        except BaseException:
            self._held = None
            del writer  # releases the lock; nothing uncommitted survives
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        where = f"search index {self._home}"
        try:
            yield
        except ValueError as reason:
            text = str(reason)
            if "lock" in text.lower() or "IO" in text or "open" in text.lower():
                raise _unavailable(where, reason) from reason
            if "schema" in text.lower():
                raise ShapeError(f"{where} has other fields", detail=text) from reason
            raise RowsRefusedError(f"{where} refuses rows", detail=text) from reason
        except OSError as reason:
            raise _unavailable(where, reason) from reason


def _unavailable(where: str, reason: Exception) -> TargetUnavailableError:
    return TargetUnavailableError(
        f"{where} cannot be written now",
        detail=str(reason),
        hint="check the directory and free space; the sink tries again",
    )


def _link(path: Path, target: Path) -> None:
    """Point a link at a directory, replacing it at once."""
    draft = path.with_name(path.name + ".draft")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    os.replace(draft, path)


def _treatments(shape: Shape, declared: Mapping[str, str] | None) -> dict[str, str]:
    kinds = {field.name: field.type for field in shape.schema}
    if declared is not None:
        unknown = [name for name in declared if name not in kinds]
        if unknown:
            raise ShapeError(
                f"the view has no column {unknown[0]!r} to search",
                detail=f"Its columns: {', '.join(kinds)}.",
                hint="change fields= of the sink",
            )
        return dict(declared)
    return {name: _treatment(kind) for name, kind in kinds.items()}


def _treatment(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "float"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_temporal(kind):
        return "date"
    if pa.types.is_nested(kind):
        return "json"
    return "keyword" if pa.types.is_binary(kind) else "text"


def _schema(fields: Mapping[str, str]) -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("_id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("_row", stored=True)
    for name, treatment in fields.items():
        kind, _, language = treatment.partition(":")
        match kind:
            case "integer":
                builder.add_integer_field(name, indexed=True, fast=True)
            case "float":
                builder.add_float_field(name, indexed=True, fast=True)
            case "boolean":
                builder.add_boolean_field(name, indexed=True)
            case "date":
                builder.add_date_field(name, indexed=True, fast=True)
            case "json":
                builder.add_json_field(name)
            case "keyword":
                builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
            case _:
                builder.add_text_field(
                    name, tokenizer_name=f"tr_{language}" if language else "default"
                )
    return builder.build()


def open_index(path: Path) -> Any:
    """The index in a directory, with its analyzers."""
    index = tantivy.Index.open(str(path))
    for treatment in set(read_fields(path).values()):
        kind, _, language = treatment.partition(":")
        if kind == "text" and language:
            index.register_tokenizer(f"tr_{language}", _analyzer(language))
    return index


def _analyzer(language: str) -> Any:
    try:
        return analyzer(language)
    except ValueError:
        raise ShapeError(
            f"there is no analyzer for language {language!r}",
            hint=f"one of {', '.join(LANGUAGES)}",
        ) from None


def read_fields(path: Path) -> dict[str, str]:
    """How each field of an index is searched."""
    found = _known_fields(path)
    if found is None:
        raise SinkError(
            f"the fields of the search index in {path} are damaged",
            hint="start the sink again: it indexes the rows once more",
        )
    return found


def _known_fields(path: Path) -> dict[str, str] | None:
    """None: a crash left only a part of the file, or something else."""
    try:
        found = orjson.loads((path / FIELDS).read_bytes())
    except (ValueError, FileNotFoundError):
        return None
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        return None
    return found


def _indexed(value: Any, treatment: str) -> Any:
    """A JSON value as a document takes it."""
    match treatment.partition(":")[0]:
        case "integer":
            return int(value)
        case "float":
            return float(value)
        case "date":
            text = str(value)
            if len(text) == 10:
                return f"{text}T00:00:00Z"
            return text if text.endswith("Z") else f"{text}Z"
        case "boolean":
            return bool(value)
        case "json":
            return value if isinstance(value, dict) else {"value": value}
        case _:
            return value if isinstance(value, str) else orjson.dumps(value).decode()


def _meta_document(row: bytes) -> str:
    return orjson.dumps({"_id": META, "_row": b64encode(row).decode()}).decode()


def _meta(index: Any) -> dict[str, Any]:
    index.reload()
    searcher = index.searcher()
    query = tantivy.Query.term_query(index.schema, "_id", META)
    hits = searcher.search(query, 1).hits
    if not hits:
        return {}
    found: dict[str, Any] = orjson.loads(bytes(searcher.doc(hits[0][1])["_row"][0]))
    return found


def _stored(index: Any) -> Iterator[tuple[str, bytes]]:
    index.reload()
    searcher = index.searcher()
    if searcher.num_docs == 0:
        return
    for _, address in searcher.search(tantivy.Query.all_query(), searcher.num_docs).hits:
        document = searcher.doc(address)
        yield document["_id"][0], bytes(document["_row"][0])


def search(directory: Path, words: str, limit: int = 10) -> list[dict[str, Any]]:
    """Rows that match, best first, each as `{"score": …, "row": {…}}`.

    `words` is tantivy's query language over the text fields: `red shoes`, `"red shoes"`,
    `title:red AND price:[10 TO 20]`; `*` matches everything.
    """
    link = directory / CURRENT
    if not link.exists():
        raise UsageError(
            f"there is no search index in {directory}",
            hint="it is made when the sink has applied its first tick",
        )
    index = open_index(link)
    index.reload()
    fields = read_fields(link)
    texts = [name for name, kind in fields.items() if kind.partition(":")[0] == "text"]
    searcher = index.searcher()
    try:
        query = (
            tantivy.Query.all_query()
            if words.strip() in ("*", "")
            else index.parse_query(words, texts or list(fields))
        )
    except ValueError as reason:
        raise UsageError(
            f"cannot read the question {words!r}",
            detail=str(reason),
            hint=f"fields: {', '.join(fields)}",
        ) from None
    nobody = tantivy.Query.term_query(index.schema, "_id", META)
    query = tantivy.Query.boolean_query(
        [(tantivy.Occur.Must, query), (tantivy.Occur.MustNot, nobody)]
    )
    found = []
    for score, address in searcher.search(query, limit).hits:
        row = orjson.loads(bytes(searcher.doc(address)["_row"][0]))
        found.append({"score": round(float(score), 4), "row": row})
    return found
