"""The two places a product is kept: a database and a search index, with nothing in common."""

from __future__ import annotations

import sqlite3
from pathlib import Path


class Database:
    """Products in an SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY, title TEXT, price REAL)"
        )

    def save(self, identifier: int, title: str, price: float) -> None:
        self._connection.execute(
            "INSERT INTO products VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
            "SET title = excluded.title, price = excluded.price",
            [identifier, title, price],
        )

    def titles(self) -> dict[int, str]:
        return dict(self._connection.execute("SELECT id, title FROM products ORDER BY id"))

    def close(self) -> None:
        self._connection.close()


class SearchIndex:
    """A full-text index in a file of its own, as a search server would have."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS products USING fts5 (title)")

    def put(self, identifier: int, title: str) -> None:
        self.remove(identifier)
        self._connection.execute(
            "INSERT INTO products (rowid, title) VALUES (?, ?)", [identifier, title]
        )

    def remove(self, identifier: int) -> None:
        self._connection.execute("DELETE FROM products WHERE rowid = ?", [identifier])

    def search(self, words: str) -> list[int]:
        found = self._connection.execute(
            "SELECT rowid FROM products WHERE products MATCH ? ORDER BY rowid", [words]
        )
        return [row[0] for row in found]

    def titles(self) -> dict[int, str]:
        return dict(self._connection.execute("SELECT rowid, title FROM products ORDER BY rowid"))

    def close(self) -> None:
        self._connection.close()
