"""`where=` of MySQL and MariaDB: what reaches the log is what the condition selects."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from servers.binlog import MySQLCase
from servers.capture import Running
from tailrace.sources.errors import SourceDeclarationError
from tailrace.sources.mysql.filters import words

Make = Callable[..., MySQLCase]
ITEMS = """CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(40) COLLATE utf8mb4_unicode_ci,
    amount DECIMAL(9,2), kind ENUM('a','B'), made TIMESTAMP(3) NULL, data VARBINARY(20),
    half DOUBLE, flags BIT(4), doc JSON)"""
OPEN = "name = 'ÖPEN' AND (amount > 10 OR amount IS NULL)"


def settle(case: MySQLCase, running: Running) -> None:
    running.copied()
    running.reach(case.position())
    running.until(lambda: not running.part._facts.get("copying"))
    running.reach(case.position())


def selected(case: MySQLCase, running: Running, condition: str, table: str = "items") -> None:
    names = case.columns(table)
    expected = sorted(case.rows(f"SELECT id FROM {table} WHERE {condition}"))
    found = running.written.table(f"{case.schema}.{table}")
    assert sorted((row["id"],) for row in found) == expected
    assert all(set(row) == set(names) for row in found)
    running.written.check()


def until_selected(case: MySQLCase, running: Running, condition: str, table: str = "items") -> None:
    def equal() -> bool:
        try:
            selected(case, running, condition, table)
        except AssertionError:
            return False
        return True

    running.until(equal)
    selected(case, running, condition, table)


def test_rows_come_and_go_with_the_condition(binlog_case: Make) -> None:
    case = binlog_case("items", where={"items": OPEN})
    case.execute(ITEMS, "INSERT INTO items (id, name, amount) VALUES (1, 'open', 20), (2, 'OPEN', 5), (3, 'shut', 30), (4, 'öpen', NULL)")  # fmt: skip
    chance = random.Random(7)
    with case.capture() as running:
        settle(case, running)
        selected(case, running, OPEN)
        for _ in range(60):
            number, name = chance.randrange(20), chance.choice(["open", "Öpen", "shut", "", "o'pen\\"])  # fmt: skip
            amount = chance.choice(["NULL", "5", "10.01", "99"])
            text = name.replace("\\", "\\\\").replace("'", "''")
            case.execute(
                chance.choice(
                    [
                        f"REPLACE INTO items (id, name, amount) VALUES ({number}, '{text}', {amount})",
                        f"UPDATE items SET name = '{text}' WHERE id < {number}",
                        f"UPDATE IGNORE items SET id = id + 7, amount = {amount} WHERE id = {number}",
                        f"DELETE FROM items WHERE id = {number}",
                    ]
                )
            )
        settle(case, running)
        selected(case, running, OPEN)
    with case.capture() as running:
        case.execute("INSERT INTO items (id, name, amount) VALUES (100, 'OPEN', 11), (101, 'x', 11)")  # fmt: skip
        settle(case, running)
        selected(case, running, OPEN)
        case.execute("SET SESSION binlog_row_image = MINIMAL", "UPDATE items SET amount = 1 WHERE id = 100")  # fmt: skip
        until_selected(case, running, OPEN)
        case.execute("TRUNCATE TABLE items", "INSERT INTO items (id, name) VALUES (1, 'open'), (2, 'x')")  # fmt: skip
        until_selected(case, running, OPEN)


@pytest.mark.parametrize(
    "condition",
    ["kind = 'b' AND flags = 5", "made >= '2026-01-02 03:04:05.5'", "data = X'00ff' OR half < 0.3",
     "JSON_EXTRACT(doc, '$.a') = 1", "items.name LIKE 'a%' AND `id` BETWEEN 1 AND 4", "kind IS NULL"],
)  # fmt: skip
def test_a_condition_says_of_the_binlog_what_it_says_of_the_table(binlog_case: Make, condition: str) -> None:  # fmt: skip
    rows = """INSERT INTO items VALUES (%d1, 'Abc', 1, 'B', '2026-01-02 03:04:05.500', X'00ff', 0.1, b'0101', '{"a": 1}'),
        (%d2, 'ab', 2, 'a', '2026-01-02 03:04:05.499', X'00', 0.3, b'0101', '{"a": 2}'),
        (%d3, '', 3, NULL, NULL, '', NULL, NULL, NULL), (%d4, NULL, 4, '', '2026-02-01', X'00ff', -5e9, b'1', '[1]')"""  # fmt: skip
    case = binlog_case("items", where={"items": condition})
    case.execute(ITEMS, rows.replace("%d", ""))
    with case.capture() as running:
        settle(case, running)
        case.execute(rows.replace("%d", "1"), "UPDATE items SET id = id + 10 WHERE id > 12", "DELETE FROM items WHERE id = 2")  # fmt: skip
        settle(case, running)
        selected(case, running, condition)


def test_another_condition_is_followed_by_a_comparison(binlog_case: Make) -> None:
    case = binlog_case("items", where={"items": "id < 5"}, columns={"items": ["name"]})
    case.execute(ITEMS, "INSERT INTO items (id, name) VALUES (1, 'a'), (4, 'b'), (8, 'c')")
    with case.capture() as running:
        settle(case, running)
    with case.capture(where={"items": "id > 2"}) as running:
        running.until(lambda: _ids(case, running) == [4, 8])
        settle(case, running)
        assert _ids(case, running) == [4, 8]


def _ids(case: MySQLCase, running: Running) -> list[int]:
    return sorted(row["id"] for row in running.written.table(f"{case.schema}.items"))


def test_a_table_without_a_key_is_filtered_too(binlog_case: Make) -> None:
    case = binlog_case("loose", where={"loose": "n > 3"})
    case.execute("CREATE TABLE loose (n INT)", "INSERT INTO loose VALUES (1), (4), (4)")
    with case.capture() as running:
        settle(case, running)
        case.execute("INSERT INTO loose VALUES (2), (9)", "UPDATE loose SET n = n + 2 WHERE n = 2")
        settle(case, running)
        topic = f"{case.source.name}.{case.schema}.loose"
        values: list[Any] = list(running.written.shared.values(topic))
    inserted = [one for one in values if one is not None and b'"before":null' in one]
    assert len(inserted) == 4


WRONG = [
    "id IN (SELECT 1)", "now() > made", "rand() < 0.5", "@x = 1", "1 = 1", "id = 1; DROP TABLE items",
    "made < CURRENT_TIMESTAMP", "sleep(9)", "id = 1 -- all", "name = 'open", "my_function(id) = 1",
]  # fmt: skip


@pytest.mark.parametrize("condition", WRONG)
def test_what_may_say_something_else_each_time_is_refused(condition: str) -> None:
    used, refused = words(condition)
    assert refused is not None or not used & {"id", "made", "name"}


def test_a_condition_that_the_server_refuses_is_told_at_the_start(binlog_case: Make) -> None:
    case = binlog_case("items", where={"items": "id = 1 AND colour = 2"})
    case.execute(ITEMS)
    with pytest.raises(SourceDeclarationError) as refused, case.capture() as running:
        running.copied()
    assert "colour" in str(refused.value.detail)
