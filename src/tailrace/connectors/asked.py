"""A question to a connector's class, in a process of its own: `python -m tailrace.connectors.asked`.

Questions are `describe` (a module of plugins), `look` (settings and what is wrong with them),
`tasks` (how the work is split) and `alter` (whether offsets may be set).
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import orjson

from tailrace.connectors import plugins
from tailrace.connectors.base import SinkConnector, SourceConnector
from tailrace.connectors.children import as_parent
from tailrace.connectors.errors import ConnectorError, ConnectorSettingError, PluginError
from tailrace.connectors.secrets import hidden, refers, resolve
from tailrace.errors import TailraceError
from tailrace.masking import mask


def answer(question: dict[str, Any]) -> dict[str, Any]:
    plugins.make_importable(question["plugins"])
    match question["ask"]:
        case "describe":
            return {"connectors": plugins.described(question["module"])}
        case "built-in":
            return {"connectors": plugins.described_built_in()}
        case "look":
            return _look(question)
        case "tasks":
            return _tasks(question)
        case "alter":
            return _alter(question)
    raise ValueError(question["ask"])


def _look(question: dict[str, Any]) -> dict[str, Any]:
    connector = plugins.load(question["where"])()
    given = question["settings"]
    # References stand for secrets that only a task reads: their settings are taken as they are.
    secret = {name for name, text in given.items() if refers(text)}
    values = connector.config.look({n: t for n, t in given.items() if n not in secret})
    found: dict[str, dict[str, Any]] = {}
    for value in values:
        name = value.setting.name
        shown, errors = value.shown, list(value.errors)
        if name in secret:
            shown, errors = given[name], []
        found[name] = {"value": shown, "errors": errors}
    if not any(each["errors"] for each in found.values()):
        known = {one.setting.name: one.value for one in values if one.setting.name not in secret}
        typed = {**hidden(given), **known}
        for name, text in connector.check(typed).items():
            found.setdefault(name, {"value": given.get(name), "errors": []})["errors"].append(text)
    return {"values": found}


def _tasks(question: dict[str, Any]) -> dict[str, Any]:
    connector = plugins.load(question["where"])()
    assert isinstance(connector, SourceConnector | SinkConnector)
    settings = connector.config.typed(resolve(question["settings"]))
    most = question["most"]
    made = list(connector.tasks(settings, most))
    for each in made:
        if not isinstance(each, dict) or not all(isinstance(name, str) for name in each):
            raise ConnectorSettingError(f"tasks() of {question['where']} must return dicts of texts")  # fmt: skip
    if len(made) > most and question["enforce"]:
        raise ConnectorSettingError(
            f"the connector made {len(made)} tasks, tasks.max is {most}",
            hint="raise tasks.max, or have tasks() respect it",
        )
    return {"tasks": [{name: _text(value) for name, value in each.items()} for each in made]}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _alter(question: dict[str, Any]) -> dict[str, Any]:
    connector = plugins.load(question["where"])()
    connector.alter_offsets(question["settings"], question["offsets"])
    return {}


def in_parts(error: BaseException, doing: str) -> dict[str, str]:
    """An error of a connector's own code, in four parts."""
    trace = mask("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    if isinstance(error, TailraceError):
        return {**error.as_dict(), "trace": trace}
    own = ConnectorError(
        f"{doing} raised {type(error).__name__}: {error}".rstrip(": "),
        detail=trace[-20_000:],
        hint="mend the connector or its settings, then restart it",
    )
    return {**own.as_dict(), "trace": trace}


def main() -> None:
    own = os.getpid()
    sock, question = as_parent(sys.argv[1:])
    try:
        found = answer(question)
    except PluginError as error:
        found = {"error": in_parts(error, "the plugin")}
    except BaseException as error:
        found = {"error": in_parts(error, f"{question['ask']}() of {question.get('where', '')}"), "raised": str(error)}  # fmt: skip
    if os.getpid() != own:
        os._exit(0)  # the connector forked, and its child came out here
    sock.sendall(orjson.dumps(found) + b"\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
