"""An XML document as a tree, read by expat without namespaces.

Nothing outside of the document is read (an external entity is empty), and entities that blow
up a document are refused, at the limit that Java's parser has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

_MOST_EXPANSIONS = 64_000
_REFERENCE = re.compile(r"&([^#;&\s][^;&\s]*);")
_DECLARED_VERSION = re.compile(r"""(<\?xml\s+version\s*=\s*['"])1\.1(['"])""")


class XmlError(ValueError):
    """A text that is no XML document."""


class Node:
    """A node of a document. `kind` is root, element, attribute, text, comment, instruction or
    namespace; `order` is its place in the document; `first` what its first piece of text holds
    (a text may be made of pieces: CDATA sections are pieces of their own)."""

    __slots__ = (
        "attributes", "children", "first", "kind", "name", "order", "parent", "value",
    )  # fmt: skip

    def __init__(self, kind: str, name: str, parent: Node | None, order: int) -> None:
        self.kind, self.name, self.parent, self.order = kind, name, parent, order
        self.children: list[Node] = []
        self.attributes: list[Node] = []
        self.value = ""
        self.first: str | None = None

    def text(self) -> str:
        """XPath's string value."""
        if self.kind in ("root", "element"):
            return "".join(node.value for node in self.walk() if node.kind == "text")
        return self.value

    def walk(self) -> Iterator[Node]:
        """The nodes below, in their order."""
        waiting = self.children[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


class Document:
    """A document: its root, and its elements by their ID."""

    def __init__(self, root: Node, ids: dict[str, Node]) -> None:
        self.root, self.ids = root, ids


def read(text: str, *, leading: bool = False) -> Document:
    """The tree of a document; XmlError when it is none. `leading`: whatever follows its element
    is left out, and entities of its own are none (as Spark's reader of rows has it)."""
    builder = _Builder()
    parser = expat.ParserCreate("utf-8")
    parser.ordered_attributes = True
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.CommentHandler = builder.comment
    parser.ProcessingInstructionHandler = builder.instruction
    parser.StartCdataSectionHandler = builder.section
    parser.EndCdataSectionHandler = builder.section
    parser.AttlistDeclHandler = builder.attributes
    parser.EntityDeclHandler = builder.entity
    parser.StartDoctypeDeclHandler = lambda *_: builder.doctype(True)
    parser.EndDoctypeDeclHandler = lambda: builder.doctype(False)
    parser.ExternalEntityRefHandler = lambda *_: 1  # nothing is fetched: it is empty
    builder.body = lambda: text.encode()[parser.CurrentByteIndex :].decode(errors="replace")
    try:
        parser.Parse(_DECLARED_VERSION.sub(r"\g<1>1.0\2", text, count=1).encode(), True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        if not (leading and builder.complete):
            raise XmlError(str(error)) from error
    if leading and builder.entities:
        raise XmlError("entities are not known here")
    return Document(builder.root, builder.ids)


class _Builder:
    """Makes the tree of what the parser meets."""

    def __init__(self) -> None:
        self._orders = 0
        self.root = Node("root", "", None, 0)
        self.ids: dict[str, Node] = {}
        self._at = self.root
        self._id_names: set[tuple[str, str]] = set()
        self.entities: dict[str, str] = {}
        self._inside = self._split = False
        self.body: Any = None

    @property
    def complete(self) -> bool:
        """Whether the element of the document has ended."""
        return self._at is self.root and any(one.kind == "element" for one in self.root.children)

    def _order(self) -> int:
        self._orders += 1
        return self._orders

    def _add(self, kind: str, name: str, value: str) -> None:
        if self._inside:
            return
        node = Node(kind, name, self._at, self._order())
        node.value = node.first = value
        self._at.children.append(node)

    def start(self, name: str, given: list[str]) -> None:
        node = Node("element", name, self._at, self._order())
        self._at.children.append(node)
        self._at = node
        for key, value in sorted(zip(given[::2], given[1::2], strict=True)):
            attribute = Node("attribute", key, node, self._order())
            attribute.value = attribute.first = value
            node.attributes.append(attribute)
            if (name, key) in self._id_names:
                self.ids.setdefault(value, node)

    def end(self, name: str) -> None:
        assert self._at.parent is not None
        self._at = self._at.parent

    def characters(self, text: str) -> None:
        last = self._at.children[-1] if self._at.children else None
        if last is None or last.kind != "text":
            last = Node("text", "", self._at, self._order())
            last.first = ""
            self._at.children.append(last)
            self._split = False
        last.value += text
        if not self._split:
            last.first = last.value

    def section(self) -> None:
        """A CDATA section begins or ends: what follows is another piece."""
        self._split = True

    def comment(self, text: str) -> None:
        self._add("comment", "", text)

    def instruction(self, target: str, data: str) -> None:
        self._add("instruction", target, data)

    def doctype(self, begins: bool) -> None:
        self._inside = begins
        if not begins and self.entities:
            self._refuse_explosions()

    def attributes(
        self, element: str, name: str, kind: str, default: str | None, required: bool
    ) -> None:
        if kind == "ID":
            self._id_names.add((element, name))

    def entity(self, name: str, is_parameter: int, value: str | None, *rest: object) -> None:
        if not is_parameter:
            self.entities.setdefault(name, value or "")

    def _refuse_explosions(self) -> None:
        """Java counts every use of an entity, also inside of others."""
        costs: dict[str, int] = {}

        def cost(name: str, above: frozenset[str]) -> int:
            if name not in costs:
                if name in above:
                    raise XmlError(f"the entity {name!r} is made of itself")
                inner = _REFERENCE.findall(self.entities.get(name, ""))
                costs[name] = 1 + sum(cost(one, above | {name}) for one in inner)
            return costs[name]

        used = [name for name in _REFERENCE.findall(self.body()) if name in self.entities]
        if sum(cost(name, frozenset()) for name in used) > _MOST_EXPANSIONS:
            raise XmlError(f"more than {_MOST_EXPANSIONS} entities")
