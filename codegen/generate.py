"""Write `src/tailrace/wire/messages/` and the table in `wire/apis.py`.

    python codegen/generate.py [--check]

Reads the definitions from the jars in Maven's local repository (see definitions.py).
`--check` writes nothing and exits 1 if the committed code is not what would be written.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from definitions import FIXED, KAFKA_VERSION, Field, Message, jar, parse, read_definitions, snake
from layout import DecodeSource, EncodeSource, literal, symbol

ROOT = Path(__file__).resolve().parent.parent
MESSAGES = ROOT / "src/tailrace/wire/messages"
APIS = ROOT / "src/tailrace/wire/apis.py"

# Requests between brokers and controllers, telemetry and Kafka
# Streams' own groups are not spoken here.
KEYS = (
    *range(0, 4), *range(8, 52), 55, 57, 60, 61, 65, 66, 68, 69,
    *range(74, 80), 90, 91, 92,
)  # fmt: skip

# Formats inside records and assignments: module → (jar, messages).
DATA = {
    "consumer_protocol": (
        "kafka-clients",
        ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"],
    ),
    "group_records": (
        "kafka-group-coordinator",
        [
            "OffsetCommitKey", "OffsetCommitValue", "GroupMetadataKey", "GroupMetadataValue",
            "ConsumerGroupMetadataKey", "ConsumerGroupMetadataValue",
            "ConsumerGroupMemberMetadataKey", "ConsumerGroupMemberMetadataValue",
            "ConsumerGroupTargetAssignmentMetadataKey",
            "ConsumerGroupTargetAssignmentMetadataValue",
            "ConsumerGroupTargetAssignmentMemberKey", "ConsumerGroupTargetAssignmentMemberValue",
            "ConsumerGroupCurrentMemberAssignmentKey",
            "ConsumerGroupCurrentMemberAssignmentValue",
            "ConsumerGroupRegularExpressionKey", "ConsumerGroupRegularExpressionValue",
        ],
    ),
    # A module of their own: their structs carry the same names as those above.
    "share_group_records": (
        "kafka-group-coordinator",
        [
            "ShareGroupMetadataKey", "ShareGroupMetadataValue",
            "ShareGroupMemberMetadataKey", "ShareGroupMemberMetadataValue",
            "ShareGroupTargetAssignmentMetadataKey", "ShareGroupTargetAssignmentMetadataValue",
            "ShareGroupTargetAssignmentMemberKey", "ShareGroupTargetAssignmentMemberValue",
            "ShareGroupCurrentMemberAssignmentKey", "ShareGroupCurrentMemberAssignmentValue",
            "ShareGroupStatePartitionMetadataKey", "ShareGroupStatePartitionMetadataValue",
        ],
    ),
    "transaction_records": (
        "kafka-transaction-coordinator",
        ["TransactionLogKey", "TransactionLogValue"],
    ),
    "share_records": ("kafka-share-coordinator", ["ShareSnapshotKey", "ShareSnapshotValue"]),
}  # fmt: skip

HEAD = '''\
"""{title}: generated from Apache Kafka {kafka}'s definitions by codegen/generate.py; do not edit."""

# mypy: ignore-errors

from __future__ import annotations

from struct import Struct, pack, unpack_from

from tailrace.wire.message import (
    ELEMENTS_LIMIT,
    NEW,
    TAGS_LIMIT,
    TOO_MANY_ELEMENTS,
    Message,
    fail,
    read_long_varint,
    read_varint,
    skip_tags,
    write_bytes,
    write_compact_bytes,
    write_compact_nullable_string,
    write_compact_string,
    write_nullable_string,
    write_string,
    write_varint,
)
'''


def python_type(field: Field) -> str:
    if field.kind in FIXED:
        kind = FIXED[field.kind][2]
    else:
        kind = {"string": "str", "bytes": "bytes", "records": "bytes | bytearray | memoryview"}.get(
            field.kind, field.kind
        )
    if field.array:
        kind = f"list[{kind}]"
    nullable = field.nullable.first <= field.nullable.last or field.default is None
    return f"{kind} | None" if nullable else kind


def class_source(name: str, fields: tuple[Field, ...], message: Message) -> list[str]:
    """A slotted class whose arguments stand in the order of the definition."""
    slots = "".join(f'"{field.name}", ' for field in fields).rstrip()
    lines = ["", "", f"class {name}(Message):", f"    __slots__ = ({slots})", ""]
    if not fields:
        return [*lines[:3], "    __slots__ = ()"]
    lines += ["    def __init__(", "        self,"]
    body = []
    for field in fields:
        default = literal(field, message)
        kind = python_type(field)
        fresh = default == "[]" or default.endswith("()")
        lines.append(f"        {field.name}: {kind} = {'NEW' if fresh else default},")
        value = f"{default} if {field.name} is NEW else {field.name}" if fresh else field.name
        body.append(f"        self.{field.name}: {kind} = {value}")
    return [*lines, "    ) -> None:", *body]


def codec_source(message: Message, formats: set[str]) -> list[str]:
    """All codecs of one message and the two tables from version to function."""
    lines: list[str] = []
    stem = snake(message.name)
    for direction in ("decode", "encode"):
        seen: dict[tuple[str, ...], str] = {}
        table: dict[int, str] = {}
        for version in range(message.versions.first, message.versions.last + 1):
            if direction == "decode":
                reader = DecodeSource(message, version, formats)
                built = reader.struct(message.top)
                reader.line(f"return {built}")
                body = tuple(reader.lines)
            else:
                writer = EncodeSource(message, version, formats)
                writer.struct(message.top, "m")
                body = tuple(writer.lines) or ("    pass",)
            function = seen.get(body)
            if function is None:
                function = seen[body] = f"_{direction}_{stem}_{version}"
                lines += ["", ""]
                if direction == "decode":
                    lines.append(
                        f"def {function}(b: memoryview, p: int = 0) -> {message.top.name}:"
                    )
                    if any(re.search(r"\bend\b", line.split('"')[0]) for line in body):
                        lines.append("    end = len(b)")
                    if any("left -= n" in line for line in body):
                        lines.append("    left = ELEMENTS_LIMIT")
                else:
                    lines.append(f"def {function}(m: {message.top.name}, out: bytearray) -> None:")
                lines += body
            table[version] = function
        lines += ["", "", f"{direction.upper()}_{stem.upper()} = {{"]
        lines += [f"    {version}: {function}," for version, function in table.items()]
        lines.append("}")
    return lines


def module_source(title: str, messages: list[Message]) -> str:
    formats: set[str] = set()
    classes: list[str] = []
    codecs: list[str] = []
    for message in messages:
        for struct in message.structs.values():
            classes += class_source(struct.name, struct.fields, message)
        codecs += codec_source(message, formats)
    packers = [""]
    for code in sorted(formats):
        packers.append(f'_struct_{symbol(code)} = Struct(">{code}")')
        packers.append(f"_read_{symbol(code)} = _struct_{symbol(code)}.unpack_from")
        packers.append(f"_write_{symbol(code)} = _struct_{symbol(code)}.pack")
    head = HEAD.format(title=title, kafka=KAFKA_VERSION)
    return head + "\n".join([*packers, *classes, *codecs]) + "\n"


def api_sources(definitions: dict[str, dict]) -> tuple[dict[str, str], list[str]]:  # type: ignore[type-arg]
    """Module text by module name, and the rows of the table of APIs."""
    by_key: dict[int, dict[str, dict]] = {}  # type: ignore[type-arg]
    for definition in definitions.values():
        if definition["type"] in ("request", "response") and definition["validVersions"] != "none":
            by_key.setdefault(definition["apiKey"], {})[definition["type"]] = definition
    modules: dict[str, str] = {}
    rows: list[str] = []
    for key in KEYS:
        pair = by_key[key]
        request, response = parse(pair["request"]), parse(pair["response"])
        shared = set(request.structs) & set(response.structs)
        request = parse(pair["request"], {name: f"Request{name}" for name in shared})
        response = parse(pair["response"], {name: f"Response{name}" for name in shared})
        name = request.name.removesuffix("Request")
        modules[snake(name)] = module_source(name, [request, response])
        flexible = request.flexible
        first = flexible.first if flexible.first <= flexible.last else "NEVER"
        versions = request.versions
        if response.versions != versions:
            raise SystemExit(f"{name}: request and response differ in versions")
        rows.append(
            f'    ApiKey.{snake(name).upper()}: Api({key}, "{snake(name)}", '
            f"{versions.first}, {versions.last}, {first}),"
        )
    return modules, rows


def table_source(current: str, rows: list[str], modules: dict[str, str]) -> str:
    """apis.py with its two generated parts replaced."""
    names = [re.search(r"ApiKey\.(\w+): Api\((\d+)", row) for row in rows]
    keys = "\n".join(f"    {found[1]} = {found[2]}" for found in names if found)
    for mark, text in (("keys", keys), ("table", "\n".join(rows))):
        current = re.sub(
            rf"(    # begin generated {mark}\n).*?(    # end generated {mark}\n)",
            lambda found, text=text: found[1] + text + "\n" + found[2],
            current,
            flags=re.DOTALL,
        )
    return current


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--repository", type=Path, default=Path.home() / ".m2/repository")
    options = parser.parse_args()

    definitions = {
        artifact: read_definitions(jar(artifact, options.repository))
        for artifact in {artifact for artifact, _ in DATA.values()}
    }
    modules, rows = api_sources(definitions["kafka-clients"])
    for name, (artifact, wanted) in DATA.items():
        modules[name] = module_source(
            name, [parse(definitions[artifact][message]) for message in wanted]
        )
    files = {MESSAGES / f"{name}.py": text for name, text in modules.items()}
    files[APIS] = table_source(APIS.read_text(), rows, modules)

    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    stale += [
        path for path in MESSAGES.glob("*.py") if path not in files and path.stem != "__init__"
    ]
    if options.check:
        for path in stale:
            print(f"stale: {path.relative_to(ROOT)}")
        return 1 if stale else 0
    for path in stale:
        if path in files:
            path.write_text(files[path])
        else:
            path.unlink()
    print(f"{len(files)} files, {len(stale)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
