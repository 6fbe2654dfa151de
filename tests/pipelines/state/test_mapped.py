"""Pages of a mapped file that lie in memory are mapped at once, others are left where they are.

How many faults that saves is the kernel's affair (it maps around a fault, in folios of any size):
`benchmarks.views_live` measures it. Here: what is asked for is there, and nothing else is touched.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import lmdb
import pytest

from tailrace.pipelines.state.mapped import map_ahead, mostly_resident

PAGES = 512


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a file"
    path.write_bytes(os.urandom(PAGES * mmap.PAGESIZE))
    return path


def test_a_file_is_mapped_ahead_only_if_nine_in_ten_of_its_pages_lie_in_memory() -> None:
    assert mostly_resident(b"\x01" * 19 + b"\x00")
    assert not mostly_resident(b"\x01" * 8 + b"\x00" * 2)
    assert not mostly_resident(bytes(10))


def test_a_file_reads_the_same_whether_or_not_it_could_be_mapped_ahead(file: Path) -> None:
    content = file.read_bytes()
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        map_ahead(file, PAGES * mmap.PAGESIZE)
        assert mapped[:] == content
        map_ahead(file, 2 * PAGES * mmap.PAGESIZE)  # more than there is
        assert mapped[:] == content


def test_what_is_not_mapped_or_less_than_a_page_is_left_alone(file: Path) -> None:
    assert not map_ahead(file, PAGES * mmap.PAGESIZE)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0):
        assert not map_ahead(file, 100)
        file.rename(file.with_name("renamed"))
        file.write_bytes(b"another" * 10_000)
        assert not map_ahead(file, 8192)


def test_an_environment_of_lmdb_is_read_the_same_behind_it(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), map_size=64 << 20, writemap=True) as environment:
        with environment.begin(write=True) as transaction:
            for number in range(5000):
                transaction.put(b"%d" % number, b"%500d" % number)
        used = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        map_ahead(tmp_path / "data.mdb", used)
        with environment.begin() as transaction:
            assert all(
                transaction.get(b"%d" % number) == b"%500d" % number for number in range(5000)
            )
