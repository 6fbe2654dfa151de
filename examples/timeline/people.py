"""People who post, edit, delete, follow and unfollow: `python people.py [SECONDS]`.

The star posts like everybody else; each of those posts goes to 20,000 timelines.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time


def main(seconds: str = "60") -> None:
    chance = random.Random()
    database = sqlite3.connect("network.db", timeout=30, isolation_level=None)
    people = [f"p{number}" for number in range(300)]
    until = time.monotonic() + float(seconds)
    number = 0
    while time.monotonic() < until:
        number += 1
        author = "star" if number % 100 == 0 else chance.choice(people)
        post = ("INSERT INTO posts (author, words) VALUES (?, ?)", (author, f"post {number}"))
        one, other = chance.sample(people, 2)
        statements: list[tuple[str, tuple[object, ...]]] = [post]
        if number % 7 == 0:
            statements.append(("INSERT OR IGNORE INTO follows VALUES (?, ?)", (one, other)))
        if number % 11 == 0:
            statements.append(
                (
                    "DELETE FROM follows WHERE rowid = (SELECT rowid FROM follows WHERE reader = ?"
                    " LIMIT 1)",
                    (one,),
                )
            )
        if number % 13 == 0:
            newest = "(SELECT max(id) FROM posts)"
            statements.append((f"UPDATE posts SET words = words || '!' WHERE id = {newest}", ()))
        if number % 17 == 0:
            statements.append(("DELETE FROM posts WHERE id = (SELECT max(id) - 5 FROM posts)", ()))
        database.execute("BEGIN IMMEDIATE")
        for statement, values in statements:
            database.execute(statement, values)
        database.execute("COMMIT")
        time.sleep(0.05)
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
