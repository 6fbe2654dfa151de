"""Text of strangers never becomes a pattern for Python's backtracking matcher."""

from __future__ import annotations

import ast
from pathlib import Path

import tailrace

ROOT = Path(tailrace.__file__).parent
# Patterns that are not constants, and why that is no stranger's text.
ALLOWED = {
    "broker/authentication/distinguished_names.py": "ssl.principal.mapping.rules are the operator's",
    "broker/groups/patterns.py": "the linear matcher itself; it only parses",
    "console/records.py": "the pattern of a topic is the project's own declaration",
}
FUNCTIONS = {
    "compile",
    "match",
    "fullmatch",
    "search",
    "sub",
    "subn",
    "split",
    "findall",
    "finditer",
}


def computed_patterns(tree: ast.Module) -> list[int]:
    """Lines where `re` gets a pattern that is not a literal."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in FUNCTIONS
        and not (node.args and isinstance(node.args[0], ast.Constant))
    ]


def test_broker_and_console_give_re_no_pattern_made_of_client_text() -> None:
    found = {}
    for room in ("broker", "console"):
        for path in sorted((ROOT / room).rglob("*.py")):
            lines = computed_patterns(ast.parse(path.read_text("utf-8")))
            name = path.relative_to(ROOT).as_posix()
            if lines and name not in ALLOWED:
                found[name] = lines
    assert not found, "use broker.groups.patterns.Pattern, or str.find"


def test_the_rule_sees_what_it_is_for() -> None:
    assert computed_patterns(ast.parse("import re\nre.compile(body.pattern)\n")) == [2]
    assert not computed_patterns(ast.parse('import re\nre.compile("a+")\n'))
