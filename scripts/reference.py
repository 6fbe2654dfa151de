"""Writes docs/reference from the code, and the index pages of the other folders.

python scripts/reference.py           write the pages
python scripts/reference.py --check   exit 1 if a page is not what the code says
"""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import yaml

from tailrace.broker import settings as broker_settings
from tailrace.cli.main import COMMANDS, cli
from tailrace.config import KEYS
from tailrace.connectors import common as connector_settings
from tailrace.connectors import settings as worker_settings
from tailrace.connectors.file_stream import FileStreamSink, FileStreamSource
from tailrace.connectors.file_tail import FileTail
from tailrace.connectors.names import BUILT_IN
from tailrace.console.app import Served, create_app
from tailrace.errors import TailraceError, all_errors
from tailrace.log.settings import TOPIC_SETTINGS
from tailrace.mirroring.plan import SETTINGS as MIRROR_SETTINGS
from tailrace.project import load, scaffold
from tailrace.serving.reader import Views

DOCS = Path(__file__).parent.parent / "docs"
NOTE = "<!-- Written by scripts/reference.py from the code. -->\n"


def commands() -> Iterator[str]:
    yield "# Commands\n"
    yield "`--json` gives machine-readable output; exit status 0 good, 1 \"no\" or failed, 2 wrong usage.\n"  # fmt: skip
    context = click.Context(cli, info_name="tailrace", terminal_width=80)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield from _command(command, context, name, 2)


def _command(command: click.Command, parent: click.Context, name: str, depth: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=80)
    yield f"{'#' * depth} {context.command_path}\n"
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            if found is not None:
                yield from _command(found, context, child, min(depth + 1, 6))


def settings() -> Iterator[str]:
    yield "# Settings\n"
    yield "## tailrace.toml\n"
    yield "| key | default | meaning |\n|---|---|---|"
    for name, key in KEYS.items():
        yield f"| `{name}` | {_shown(key.default)} | {key.text} |"
    yield '\n`[topics."NAME"]` takes `partitions` and any topic setting below.\n'
    yield "`[clusters.NAME]` takes `bootstrap`, and `[clusters.NAME.security]` what `log.security` takes.\n"  # fmt: skip
    yield "| `[mirrors.NAME]` | default | meaning |\n|---|---|---|"
    for name, default, text in MIRROR_SETTINGS:
        yield f"| `{name}` | {_shown(default)} | {text} |"
    yield ""
    for title, table in (("Topic settings", TOPIC_SETTINGS), ("Broker settings", broker_settings.DEFINITIONS)):  # fmt: skip
        yield f"## {title}\n"
        yield "By Kafka's names and with Kafka's meanings. A Kafka setting that is not here is refused by name.\n"  # fmt: skip
        yield "| setting | default | meaning |\n|---|---|---|"
        for name in sorted(table):
            setting = table[name]
            yield f"| `{name}` | {_shown(setting.default)} | {setting.documentation} |"
        yield ""


CONNECTORS = """# Connectors

[How to](../how-to/connectors.md) write, test and run them.

## REST interface

Paths, states and error bodies are those of Kafka Connect 4.3; a test asks both side by side.

| path | methods |
|---|---|
| `/`, `/health` | GET |
| `/connectors` | GET (`?expand=status&expand=info`), POST (`name`, `config`, `initial_state`) |
| `/connectors/NAME` | GET, DELETE |
| `/connectors/NAME/config` | GET, PUT, PATCH |
| `/connectors/NAME/status` | GET |
| `/connectors/NAME/pause`, `/resume`, `/stop` | PUT |
| `/connectors/NAME/restart` | POST (`?includeTasks=`, `?onlyFailed=`) |
| `/connectors/NAME/tasks`, `/tasks/N/status` | GET |
| `/connectors/NAME/tasks/N/restart` | POST |
| `/connectors/NAME/topics` | GET |
| `/connectors/NAME/topics/reset` | PUT |
| `/connectors/NAME/offsets` | GET, PATCH, DELETE; the connector must be stopped for the last two |
| `/connector-plugins` | GET (`?connectorsOnly=false`) |
| `/connector-plugins/NAME/config` | GET |
| `/connector-plugins/NAME/config/validate` | PUT |
| `/admin/loggers`, `/admin/loggers/NAME` | GET, PUT (`?scope=cluster`) |

What differs: the words of errors about JSON and about unknown classes, which in Kafka name Java classes; the texts
that document settings; `version` is Tailrace's. `--users`, `--cert` and `--key` ask for a log-in and
serve HTTPS; a worker that others can reach needs them, or `--insecure`.

## Topics

| topic | records |
|---|---|
| `connect-configs` | settings, target states, the settings of tasks and then their commit, fencing, restarts, levels of logging; one partition |
| `connect-offsets` | `["CONNECTOR",{partition}]` and the offset, in the transaction of the records |
| `connect-status` | states of connectors and tasks, topics in use |

They are compacted and hold Kafka Connect's records, so a worker takes over the topics of a Kafka Connect that has stopped,
where its connectors exist here under the same names. Workers of both cannot be one group.
A source's task writes as `tailrace.connect.CONNECTOR.N`, the leader as `connect-cluster-GROUP`, and a sink reads
in the group `connect-CONNECTOR`.

## Converters

| name | class | |
|---|---|---|
| `string` | `org.apache.kafka.connect.storage.StringConverter` | UTF-8, or `converter.encoding`; the default of keys. What is no text is written as JSON |
| `json` | `org.apache.kafka.connect.json.JsonConverter` | `schemas.enable=true`, its default, writes and wants `schema` and `payload`. The default of values is `json` with `schemas.enable=false` |
| `bytes` | `org.apache.kafka.connect.converters.ByteArrayConverter` | as they are |
| `short`, `integer`, `long`, `float`, `double`, `boolean` | `org.apache.kafka.connect.converters.…Converter` | big-endian, as Kafka's serializers |
| `avro`, `json_schema` | `io.confluent.connect.avro.AvroConverter`, `io.confluent.connect.json.JsonSchemaConverter` | Confluent's wire format; `schema.registry.url`, `basic.auth.user.info`, `schema` (else the newest of the subject is taken, which must be there), `auto.register.schemas` |
| `protobuf` | `io.confluent.connect.protobuf.ProtobufConverter` | the same settings, and `message`, such as `shop.Order` or `Order.Line` (else the first of the file); a message is an object of its fields, absent ones are null, enums are names, bytes are base64 when written |
| `simple` | `org.apache.kafka.connect.storage.SimpleHeaderConverter` | headers; read back as text |
| `module:Class` | | one of your own: `configure`, `to_bytes`, `from_bytes` |


## Not supported

Connectors and transforms written in Java, predicates, `topic.creation.…` (topics are made with the log's defaults), a
topic of its own for offsets, transactions that a connector bounds itself, `producer.override.…`;
of `consumer.override.…` only `group.id` and `auto.offset.reset`; views as input of Tailrace's own sinks, and their `open=`.

## Tailrace's own sources and sinks

{own}

A setting is a parameter of the class with dots for underscores (`copy.connections`); lists have commas, mappings and
`outbox` are JSON objects, durations are texts such as `7 days`. A source also has `topic.prefix`, the source's name
(the connector's, if absent); a sink has `key`, the columns that tell rows apart, and takes topics by name, whose values are
JSON objects: a task for each, and `${{topic}}` in a setting is the task's topic. Converters, transforms and `errors.…`
do not apply to them: a source writes what it writes in a project, a sink reads what it reads there."""


def connectors() -> Iterator[str]:
    own = " · ".join(
        f"`{name.rpartition('.')[2]}`" for name in BUILT_IN if "own_connectors" in BUILT_IN[name]
    )
    yield CONNECTORS.replace("{own}", own).replace("{{", "{").replace("}}", "}")
    tables = (
        ("Settings of a worker", worker_settings.KNOWN, "`--set NAME=VALUE`, or `[connect.settings]` in a project. Also `key.converter.…` and the like, for the converter named."),
        ("Settings of every source", connector_settings.SOURCE, "Names and meanings are Kafka Connect's, unless a line says otherwise."),
        ("Settings of every sink", connector_settings.SINK, "Beside those of a source that are about names, converters, transforms and errors, a sink has these."),
        ("When a connector counts as hanging", connector_settings.TIMES, "For a worker, or for one connector."),
        ("FileTail", FileTail.config, "`connector.class=FileTail`; `value.converter` is `string` unless something else is said."),
        ("FileStreamSource", FileStreamSource.config, "`org.apache.kafka.connect.file.FileStreamSourceConnector`: one file, only appended to."),
        ("FileStreamSink", FileStreamSink.config, "`org.apache.kafka.connect.file.FileStreamSinkConnector`: appends; lines may be there twice after a kill. Needs `topics` or `topics.regex`."),
    )  # fmt: skip
    sources = {each.name for each in connector_settings.SOURCE}
    for title, table, words in tables:
        yield f"\n## {title}\n\n{words}\n"
        yield "| setting | default | meaning |\n|---|---|---|"
        for each in table:
            if each.name.startswith("task.n") or each.name == "task.count":
                continue
            if table is connector_settings.SINK and each.name in sources:
                continue
            default = "required" if each.required else _shown(each.default)
            yield f"| `{each.name}` | {default} | {each.help} |"


def _shown(value: object) -> str:
    return "" if value in (None, "", {}, []) else f"`{value}`"


def errors() -> Iterator[str]:
    yield "# Errors\n"
    yield "`tailrace errors CODE` prints the same.\n"
    listed: dict[str, type[TailraceError]] = {}
    for kind in all_errors():
        listed.setdefault(kind.code, kind)
    for code in sorted(listed):
        yield f"## {code}\n"
        yield " ".join((inspect.getdoc(listed[code]) or "").split()) + "\n"


def http() -> Iterator[str]:
    yield "# HTTP API\n"
    yield "On the console's address; the same as OpenAPI at `/api/openapi.json`, in words at `/api/docs`.\n"  # fmt: skip
    yield "Answers about views carry `Tailrace-Position`. Errors are JSON of four parts: `error`, `detail`, `hint`, `code`.\n"  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        scaffold.create(Path(scratch) / "project")
        project = load.load(Path(scratch) / "project")
        served = Served(project, "", Views(Path(scratch) / "views"), None)  # type: ignore[arg-type]
        described = create_app(served).openapi()
    forms = described.get("components", {}).get("schemas", {})
    for path, methods in sorted(described["paths"].items()):
        for method, about in methods.items():
            yield f"## {method.upper()} {path}\n"
            yield about.get("description", "") + "\n"
            for parameter in about.get("parameters", []):
                form = parameter["schema"]
                default = (
                    f", default `{form['default']}`" if form.get("default") is not None else ""
                )
                yield f"- `{parameter['name']}` ({parameter['in']}{'' if parameter.get('required') else ', optional'}{default})"  # fmt: skip
            body = about.get("requestBody", {}).get("content", {}).get("application/json", {})
            named = body.get("schema", {}).get("$ref", "").rpartition("/")[2]
            if named:
                yield f"- body: {forms[named].get('description', '')}"
                for name, form in forms[named]["properties"].items():
                    needed = name in forms[named].get("required", ())
                    yield f"    - `{name}`{'' if needed else ' (optional)'}{_kind(form)}"
            yield ""


def _kind(form: dict[str, Any]) -> str:
    kinds = [form.get("type")] if "type" in form else [one.get("type") for one in form.get("anyOf", [])]  # fmt: skip
    told = " or ".join(kind for kind in kinds if kind and kind != "null")
    return f": {told}" if told else ""


# section → its text, the module, and its public names (of a package: its `__all__`)
PYTHON: dict[str, tuple[str, str, str]] = {
    "tr": (
        "`import tailrace as tr`. Declarations are plain values: importing has no effect.",
        "tailrace",
        "",
    ),
    "tr.sources": ("Databases to capture.", "tailrace.sources", ""),
    "tr.sinks": (
        "Where views and topics are delivered: `to=` of a view or a stream."
        " [Each in words](sinks.md).",
        "tailrace.sinks",
        "",
    ),
    "tr.windows": (
        "Windows over event time, for `tr.windowed`.",
        "tailrace.pipelines.declare.windows",
        "tumbling hopping cumulative session sliding",
    ),
    "tr.analytics": (
        "Views that answer a common question in one line.",
        "tailrace.pipelines.declare.analytics",
        "rate rolling compared alert",
    ),
    "tr.frames": (
        "Steps for streams written in PySpark.",
        "tailrace.pipelines.declare.frames",
        "deduplicated latest",
    ),
    "tr.sketches": (
        "Approximate answers in bounded memory.",
        "tailrace.pipelines.declare.sketches",
        "Distinct Quantiles Heavy Frequent Members",
    ),
    "tr.time": (
        "Event times as they should have been.",
        "tailrace.pipelines.declare.time",
        "corrected corrected_at offset watermark",
    ),
    "tr.views": (
        "Reading views: `tr.views(ADDRESS)` asks a project's console,"
        " `tr.views(DIRECTORY)` the copies on this machine.",
        "tailrace.serving.connect",
        "views",
    ),
}


def python() -> Iterator[str]:
    yield "# Python API\n"
    yield "Every public name, with its parameters and their defaults. After a `*` they are given by name.\n"  # fmt: skip
    for section, (text, module, names) in PYTHON.items():
        room = importlib.import_module(module)
        yield f"## {section}\n\n{text}\n"
        for name in names.split() or room.__all__:
            shown = section if section == f"tr.{name}" else f"{section}.{name}"
            if not name.startswith("_"):
                yield from _public(shown, getattr(room, name))


def _public(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if inspect.isclass(value) and not issubclass(value, Exception):
        yield from _called(name, value)
        yield f"{_text(value)}\n"
        for each, member in inspect.getmembers(value):
            if not each.startswith("_") and each in vars(value):
                found = member.fget if isinstance(member, property) else member
                if callable(found) and inspect.getdoc(found):
                    form = "" if isinstance(member, property) else _parameters(found, bound=True)
                    yield f"- `.{each}{form}`: {_text(found)}"
        yield ""
    elif callable(value):
        yield from _called(name, value)
        yield f"{_text(value)}\n"
    else:
        yield f"`{value!r}`\n"


def _called(name: str, value: Any) -> Iterator[str]:
    yield f"```text\n{name}{_parameters(value)}\n```\n"


def _parameters(value: Any, bound: bool = False) -> str:
    """The parameters as one would write them, one to a line where they are many."""
    signature = inspect.signature(value)
    shown, named = [], False
    for each in list(signature.parameters.values())[1 if bound else 0 :]:
        if each.name == "declared_at" or each.name.startswith("_"):
            continue
        if each.kind is each.KEYWORD_ONLY and not named:
            shown, named = [*shown, "*"], True
        named = named or each.kind is each.VAR_POSITIONAL
        shown.append(_parameter(each))
    returned = signature.return_annotation
    end = "" if returned in (signature.empty, None, "None") else f" -> {_kind_of(returned)}"
    line = f"({', '.join(shown)}){end}"
    if len(line) <= 70 or bound:
        return line
    return "(\n" + "".join(f"    {each},\n" for each in shown) + f"){end}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = "" if parameter.annotation is parameter.empty else f": {_kind_of(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return f"{stars}{parameter.name}{kind}"
    default = repr(parameter.default)
    return f"{parameter.name}{kind} = {'…' if default.startswith('<') else default}"


def _kind_of(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _text(value: object) -> str:
    return (inspect.getdoc(value) or "").replace("\n\n    ", "\n\n        ").strip()


FOLDERS = {
    "reference": ("Reference", "What there is, in full."),
    "how-to": ("How-to", "One task per page."),
    "explanation": ("Explanation", "Why it is built this way."),
    "decisions": ("Decisions", "Context, choice, consequence; one page each."),
}


def listing(folder: str) -> Iterator[str]:
    """The index of a folder: its pages by their titles, in the order of the site's navigation."""
    title, text = FOLDERS[folder]
    yield f"# {title}\n\n{text}\n"
    nav = yaml.load((DOCS.parent / "mkdocs.yml").read_text(), _NavLoader)["nav"]
    section = next(part[title] for part in nav if title in part)
    yield from _listed(section, folder)


def _listed(section: list[Any], folder: str) -> Iterator[str]:
    gap = ""
    for entry in section:
        if isinstance(entry, dict):
            ((name, pages),) = entry.items()
            yield f"{gap}## {name}\n"
            yield from _listed(pages, folder)
            gap = "\n"
        elif entry.startswith(f"{folder}/") and not entry.endswith("/index.md"):
            text = (DOCS / entry).read_text()
            heading = next(line for line in text.splitlines() if line.startswith("# "))
            yield f"- [{heading[2:]}]({entry.removeprefix(f'{folder}/')})"
            gap = "\n"


class _NavLoader(yaml.SafeLoader):
    """Of mkdocs.yml, whose tags of Python names it need not understand."""


PAGES = {
    "connectors": connectors,
    "commands": commands,
    "python": python,
    "settings": settings,
    "errors": errors,
    "http": http,
}


def main() -> int:
    stale = []
    pages = [(DOCS / "reference" / f"{name}.md", make) for name, make in PAGES.items()]
    pages += [(DOCS / folder / "index.md", partial(listing, folder)) for folder in FOLDERS]
    for path, make in pages:
        text = NOTE + "\n" + "\n".join(make()).rstrip() + "\n"
        if not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(DOCS)))
            if "--check" not in sys.argv:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    if "--check" in sys.argv and stale:
        print(f"not what the code says: {', '.join(stale)}; run python scripts/reference.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
