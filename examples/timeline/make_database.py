"""Makes network.db: 300 people who follow a few others, and a star whom 20,000 follow."""

import random
import sqlite3

PEOPLE = 300
FANS = 20_000

chance = random.Random(1)
database = sqlite3.connect("network.db")
database.execute("PRAGMA journal_mode = WAL")
with database:
    database.execute(
        "CREATE TABLE IF NOT EXISTS posts (id INTEGER PRIMARY KEY, author TEXT NOT NULL,"
        " words TEXT NOT NULL, posted_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)"
    )
    database.execute(
        "CREATE TABLE IF NOT EXISTS follows (reader TEXT NOT NULL, author TEXT NOT NULL,"
        " PRIMARY KEY (reader, author))"
    )
    people = [f"p{number}" for number in range(PEOPLE)]
    follows = [(reader, author) for reader in people for author in chance.sample(people, 5)]
    follows += [(f"fan{number}", "star") for number in range(FANS)]
    database.executemany("INSERT OR IGNORE INTO follows VALUES (?, ?)", follows)
database.close()
