"""Pages of a mapped file that lie in memory are mapped at once, others are left where they are."""

from __future__ import annotations

import mmap
import os
import resource
from pathlib import Path

import lmdb
import pytest

from tailrace.pipelines.state.mapped import map_ahead

PAGES = 2048
OLD_KERNEL = "this kernel does not map ahead: Linux 5.14 does"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a file"
    path.write_bytes(os.urandom(PAGES * mmap.PAGESIZE))
    return path


def faults_of_touching(mapped: mmap.mmap) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert sum(mapped[at] for at in range(0, len(mapped), mmap.PAGESIZE)) > 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_pages_in_memory_are_met_without_faults(file: Path) -> None:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        if not map_ahead(file, PAGES * mmap.PAGESIZE):
            pytest.skip(OLD_KERNEL)
        ahead = faults_of_touching(mapped)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        assert ahead < faults_of_touching(mapped) / 4


def test_a_file_on_the_disk_is_not_read(file: Path) -> None:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0):
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert not map_ahead(file, PAGES * mmap.PAGESIZE)


def test_what_is_not_mapped_or_less_than_a_page_is_left_alone(file: Path) -> None:
    assert not map_ahead(file, PAGES * mmap.PAGESIZE)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0):
        assert not map_ahead(file, 100)
        file.rename(file.with_name("renamed"))
        file.write_bytes(b"another" * 10_000)
        assert not map_ahead(file, 8192)


def test_an_environment_of_lmdb_is_found(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), map_size=64 << 20, writemap=True) as environment:
        with environment.begin(write=True) as transaction:
            for number in range(5000):
                transaction.put(b"%d" % number, bytes(500))
        used = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
        if not map_ahead(tmp_path / "data.mdb", used):
            pytest.skip(OLD_KERNEL)
