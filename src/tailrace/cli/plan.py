"""`tailrace plan`: how many partitions and brokers a load needs, and when a disk is full."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta
from typing import Any

import click

from tailrace.cli.output import bootstrap_address, json_option, log_option, print_json, print_rows
from tailrace.config import parse_duration, parse_size
from tailrace.errors import ConfigValueError, UsageError

_BITS = re.compile(r"\s*([\d.]+)\s*([KMGT]?)bit(?:/s|ps)?\s*", re.IGNORECASE)
_POWERS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Rate(click.ParamType[float]):
    """`20 MB/s`, `10 Gbit/s`; a bare number is bytes a second."""

    name = "RATE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        if bits := _BITS.fullmatch(value):
            return float(bits[1]) * _POWERS[bits[2].upper()] / 8
        try:
            found = float(parse_size(re.sub(r"\s*(/s|ps)\s*$", "", value)))
        except ConfigValueError:
            self.fail(f"{value!r} is not a rate: write '20 MB/s' or '10 Gbit/s'", param, ctx)
        if found <= 0:
            self.fail("a rate must be more than 0", param, ctx)
        return found


class Size(click.ParamType[int]):
    """`4 TB`, `64 GiB`; a bare number is bytes."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return parse_size(value)
        except ConfigValueError as error:
            self.fail(error.message, param, ctx)


@click.command()
@click.option("--topic", metavar="NAME", help="Measure this topic of a running log and plan for it.")  # fmt: skip
@click.option("--sample", default="10s", show_default=True, metavar="TIME", help="How long --topic is watched.")  # fmt: skip
@click.option("--rate", type=Rate(), help="What comes in on average.")
@click.option("--peak", type=Rate(), help="What comes in at worst.  [default: the average]")
@click.option("--producer", type=Rate(), help="What one producer can write to one partition.")
@click.option("--consumer", type=Rate(), help="What one consumer can process.")
@click.option("--groups", type=click.IntRange(min=0), default=1, show_default=True, help="Groups that read everything.")  # fmt: skip
@click.option("--members", type=click.IntRange(min=1), default=1, show_default=True, help="The most members a group may have.")  # fmt: skip
@click.option("--keys", type=click.IntRange(min=1), help="Different keys.")
@click.option("--record", type=Size(), help="Bytes of a record (with --compacted).")
@click.option("--compacted", is_flag=True, help="Only the last record of each key is kept.")
@click.option("--retention", metavar="TIME", help="How long records stay, or 'forever'.  [default: 7 days]")  # fmt: skip
@click.option("--replication", type=click.IntRange(min=1), default=1, show_default=True, help="Copies of each partition.")  # fmt: skip
@click.option("--disk", type=Size(), help="Disk of one broker.")
@click.option("--disk-rate", type=Rate(), help="What that disk writes.")
@click.option("--network", type=Rate(), help="Network of one broker, each way.")
@click.option("--memory", type=Size(), help="Memory of one broker.")
@click.option("--partitions-per-broker", type=click.IntRange(min=1), default=4000, show_default=True, help="The most partition copies on one broker.")  # fmt: skip
@click.option("--brokers", type=click.IntRange(min=1), help="How many there are: says whether they suffice.")  # fmt: skip
@click.option("--used", type=Size(), default=0, help="What others keep on their disks.")
@log_option
@json_option
def plan(address: str | None, as_json: bool, **given: Any) -> int:
    """How many partitions and brokers a load needs, and when a disk is full.

    Every figure comes with its reason. With --brokers, exit status 1 says that they do not
    suffice.
    """
    from tailrace.client import capacity

    load, machine, measured = _question(given, address)
    made = capacity.plan(
        load,
        machine,
        brokers=given["brokers"],
        used_bytes=given["used"],
        kept_now=measured.used_bytes if measured else 0,
    )
    status = 1 if made.enough is False else 0
    if as_json:
        document = dataclasses.asdict(made)
        document["measured"] = None if measured is None else dataclasses.asdict(measured)
        print_json(document)
        return status
    if measured is not None:
        click.echo(f"{given['topic']}: {load.rate / 1e6:,.3f} MB/s in {measured.partitions} partitions, {measured.used_bytes / 1e9:,.3f} GB kept now\n")  # fmt: skip
    rows = [("partitions", need) for need in made.partitions] + [("brokers", need) for need in made.brokers]  # fmt: skip
    seen: set[str] = set()
    listed = []
    for what, need in rows:  # the first of each is the answer, the others smaller demands
        listed.append({"": what if what not in seen else "", "at least": need.count, "because": need.reason})  # fmt: skip
        seen.add(what)
    print_rows(listed, ["", "at least", "because"], as_json=False)
    click.echo()
    kept = "without end" if made.kept_bytes is None else f"{made.kept_bytes / 1e9:,.1f} GB a copy"
    click.echo(f"kept        {kept}")
    if machine.disk_bytes is not None:
        hours = made.hours_until_full
        full = "never: retention removes the oldest before" if hours is None else f"in {hours:,.1f} hours ({hours / 24:,.1f} days)"  # fmt: skip
        click.echo(f"disk full   {full}")
    if made.enough is not None:
        click.echo(
            f"brokers     {given['brokers']} {'suffice' if made.enough else 'do not suffice'}"
        )
    for note in made.notes:
        click.echo(f"note        {note}")
    return status


def _question(given: dict[str, Any], address: str | None) -> tuple[Any, Any, Any]:
    """The load and the machine of the options, with what was measured where none were given."""
    from tailrace.client import capacity
    from tailrace.client.admin import Admin

    measured: capacity.Measured | None = None
    if given["topic"]:
        seconds = parse_duration(given["sample"]).total_seconds()
        with Admin(bootstrap_address(address)) as admin:
            measured = capacity.measure(admin, given["topic"], seconds)
    rate = given["rate"] if given["rate"] is not None else measured.rate if measured else None
    if rate is None:
        raise UsageError(
            "the rate is missing", hint="--rate '20 MB/s', or --topic NAME to measure one"
        )
    retention: timedelta | None
    if given["retention"]:
        forever = given["retention"].strip().lower() == "forever"
        retention = None if forever else parse_duration(given["retention"])
    else:
        retention = measured.retention if measured else timedelta(days=7)
    load = capacity.Load(
        rate=rate,
        peak=max(rate, given["peak"] or rate),
        retention=retention,
        producer_rate=given["producer"],
        consumer_rate=given["consumer"],
        groups=given["groups"],
        members=given["members"],
        keys=given["keys"],
        record_bytes=given["record"] or (measured.record_bytes if measured else None),
        compacted=given["compacted"] or bool(measured and measured.compacted),
        replication=given["replication"],
    )
    machine = capacity.Machine(
        disk_bytes=given["disk"],
        disk_rate=given["disk_rate"],
        network_rate=given["network"],
        memory_bytes=given["memory"],
        partitions=given["partitions_per_broker"],
    )
    return load, machine, measured
