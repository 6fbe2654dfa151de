"""Many stored queries, indexed by what they need, and matched against a batch of documents.

A query is compiled to numbers of leaves, which it shares with all others, and to ANDs, ORs and
NOTs of them. Words, wildcards and equal values have numbers from 0, what is answered on demand
has negative ones. Every query is *anchored*: at some leaves of which one must match before the
query can (a conjunction at one of its parts, a disjunction at all), or at nothing, if it may
match a document that has none of them. So a batch looks only at the queries anchored at a leaf
that one of its documents matches: its candidates, which hold all that match.

A conjunction that fell through because no document has one of its other parts moves its anchor
there: queries settle at what is rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

from tailrace.pipelines.engine.percolate.batch import Documents, compiled
from tailrace.pipelines.engine.percolate.fields import Comparable, Fields, as_written
from tailrace.pipelines.engine.percolate.language import (
    And,
    Equal,
    Everything,
    Leaf,
    Like,
    Not,
    Or,
    Phrase,
    Present,
    Range,
    Tree,
    Wild,
    parse_query,
    pattern_text,
)

# A leaf's number; or what it is and its parts.
_Node: TypeAlias = "int | tuple[Any, ...]"
_AND, _OR, _NOT = 0, 1, 2
_MOST_KNOWN = 200_000  # words whose leaves are remembered where there are wildcards


class Match(NamedTuple):
    """A query and the documents of a batch that it matches."""

    key: bytes
    documents: int


@dataclass(slots=True)
class _Stored:
    node: _Node
    anchor: tuple[int, ...]  # () : always a candidate


class QuerySet:
    """Stored queries by key (bytes)."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.candidates = 0  # queries looked at by `match`, so far
        self._stored: dict[bytes, _Stored] = {}
        self._always: dict[bytes, None] = {}
        self._at: dict[int, dict[bytes, None]] = {}  # leaf → queries anchored there
        self._numbers: dict[Leaf, int] = {}
        self._leaves: dict[int, Leaf] = {}
        self._uses: dict[int, int] = {}
        self._free: list[int] = []
        self._free_asked: list[int] = []
        self._next, self._next_asked = 0, -1
        self._words: dict[tuple[str, ...], dict[str, int]] = {}  # columns → word → leaf
        self._wild: dict[tuple[str, ...], dict[int, Wild]] = {}
        self._known: dict[tuple[str, ...], dict[str, tuple[int, ...]]] = {}
        self._equal: dict[str, dict[Comparable, int]] = {}
        self._letters: dict[int, tuple[int, ...]] = {}  # a phrase → the leaves of its words

    def __len__(self) -> int:
        return len(self._stored)

    def put(self, key: bytes, text: str) -> None:
        """Add a query, or replace it; QueryFault if it cannot be read."""
        tree = parse_query(text, self.fields)
        self.remove(key)
        node = self._compile(tree)
        anchor = self._anchor(node) or ()
        self._stored[key] = _Stored(node, anchor)
        self._tie(key, anchor)

    def remove(self, key: bytes) -> None:
        stored = self._stored.pop(key, None)
        if stored is None:
            return
        self._untie(key, stored.anchor)
        for leaf in _leaves_of(stored.node):
            self._release(leaf)

    def unanchored(self) -> list[bytes]:
        """The queries that are candidates for every document."""
        return list(self._always)

    # Matching -----------------------------------------------------------------------------

    def match(self, documents: Documents) -> Iterator[Match]:
        """The queries that match one of some documents, in no order."""
        batch = Answers(self, documents)
        found = batch.found
        value, stored, moved = batch.value, self._stored, list[tuple[bytes, int]]()
        seen: set[bytes] = set()
        for leaf in list(found):
            for key in self._at.get(leaf, ()):
                if key in seen:
                    continue
                one = stored[key]
                if len(one.anchor) > 1:
                    seen.add(key)
                self.candidates += 1
                node = one.node
                bits = value(node)
                if bits:
                    yield Match(key, bits)
                elif node.__class__ is not int:
                    absent = self._absent(cast("tuple[Any, ...]", node), found)
                    if absent is not None:
                        moved.append((key, absent))
        self.candidates += len(self._always)
        for key in self._always:
            bits = value(stored[key].node)
            if bits:
                yield Match(key, bits)
        for key, absent in moved:
            one = stored[key]
            self._untie(key, one.anchor)
            one.anchor = (absent,)
            self._tie(key, one.anchor)

    def answer(self, key: bytes, answers: Answers) -> int:
        """The documents of a batch that one query matches."""
        return answers.value(self._stored[key].node)

    def candidacy(self, key: bytes, answers: Answers) -> int:
        """The documents of a batch that have what a query is anchored at."""
        anchor = self._stored[key].anchor
        bits = 0 if anchor else answers.documents.full
        for leaf in anchor:
            bits |= answers.found.get(leaf, 0)
        return bits

    def reasons(self, key: bytes, batch: Answers) -> tuple[list[str], list[str]]:
        """What of a query the first document of a batch has, and what it has not."""
        has: dict[str, None] = {}
        lacks: dict[str, None] = {}
        for leaf in _shown_leaves(self._stored[key].node):
            words = shown(self._leaves[leaf], self.fields)
            (has if batch.value(leaf) & 1 else lacks)[words] = None
        return list(has), list(lacks)

    def _absent(self, node: tuple[Any, ...], found: dict[int, int]) -> int | None:
        """A leaf that a conjunction needs and that no document has."""
        if node[0] != _AND:
            return None
        for part in node[1]:
            if part.__class__ is int:
                if part >= 0:
                    if part not in found:
                        return part
                else:
                    for leaf in self._letters.get(part, ()):
                        if leaf not in found:
                            return leaf
        return None

    # Compiling ----------------------------------------------------------------------------

    def _compile(self, tree: Tree) -> _Node:
        match tree:
            case And():
                parts = [self._compile(part) for part in tree.parts]
                # What is known without asking stands first.
                return (_AND, tuple(sorted(parts, key=_costs)))
            case Or():
                return (_OR, tuple(self._compile(part) for part in tree.parts))
            case Not():
                return (_NOT, self._compile(tree.part))
            case _:
                return self._leaf(tree)

    def _leaf(self, leaf: Leaf) -> int:
        number = self._numbers.get(leaf)
        if number is not None:
            self._uses[number] += 1
            return number
        asked = not _is_found(leaf)
        if asked:
            number = self._free_asked.pop() if self._free_asked else self._next_asked
            self._next_asked = min(self._next_asked, number - 1)
        else:
            number = self._free.pop() if self._free else self._next
            self._next = max(self._next, number + 1)
        self._numbers[leaf], self._leaves[number], self._uses[number] = number, leaf, 1
        match leaf:
            case Phrase() if not asked:
                self._words.setdefault(leaf.columns, {})[leaf.words[0]] = number
                self._forget(leaf.columns)
            case Phrase():
                self._letters[number] = tuple(
                    self._leaf(Phrase(leaf.columns, (word,))) for word in dict.fromkeys(leaf.words)
                )
            case Wild():
                self._wild.setdefault(leaf.columns, {})[number] = leaf
                self._forget(leaf.columns)
            case Equal():
                self._equal.setdefault(leaf.column, {})[leaf.value] = number
        return number

    def _release(self, number: int) -> None:
        self._uses[number] -= 1
        if self._uses[number]:
            return
        leaf = self._leaves.pop(number)
        del self._uses[number], self._numbers[leaf]
        (self._free if number >= 0 else self._free_asked).append(number)
        match leaf:
            case Phrase() if number >= 0:
                del self._words[leaf.columns][leaf.words[0]]
                self._forget(leaf.columns)
            case Phrase():
                for one in self._letters.pop(number):
                    self._release(one)
            case Wild():
                del self._wild[leaf.columns][number]
                self._forget(leaf.columns)
            case Equal():
                del self._equal[leaf.column][leaf.value]

    def _forget(self, columns: tuple[str, ...]) -> None:
        if columns in self._known:
            del self._known[columns]

    def _tie(self, key: bytes, anchor: tuple[int, ...]) -> None:
        if not anchor:
            self._always[key] = None
        for leaf in anchor:
            self._at.setdefault(leaf, {})[key] = None

    def _untie(self, key: bytes, anchor: tuple[int, ...]) -> None:
        if not anchor:
            del self._always[key]
        for leaf in anchor:
            del self._at[leaf][key]
            if not self._at[leaf]:
                del self._at[leaf]

    def _anchor(self, node: _Node) -> tuple[int, ...] | None:
        """Leaves of which one matches whatever the node matches; None if there are none such."""
        if isinstance(node, int):
            if node >= 0:
                return (node,)
            letters = self._letters.get(node)
            return None if letters is None else (min(letters, key=self._weight),)
        kind, parts = node
        if kind == _NOT:
            return None
        found = [self._anchor(part) for part in parts]
        if kind == _AND:
            known = [one for one in found if one is not None]
            return min(known, key=lambda one: (len(one), sum(map(self._weight, one))), default=None)
        if any(one is None for one in found):
            return None
        return tuple(dict.fromkeys(leaf for one in found if one is not None for leaf in one))

    def _weight(self, leaf: int) -> float:
        """About how often a leaf matches: long words are rare, and so are whole values."""
        match self._leaves[leaf]:
            case Phrase() as phrase:
                return 1 / (1 + len(phrase.words[0]))
            case Equal():
                return 0.2
        return 1.0

    # What a batch asks --------------------------------------------------------------------

    def leaves_of_word(self, columns: tuple[str, ...], word: str) -> tuple[int, ...]:
        """The leaves that a word matches, where there are wildcards."""
        known = self._known.setdefault(columns, {})
        found = known.get(word)
        if found is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            own = self._words.get(columns, {}).get(word)
            found = known[word] = (
                *(() if own is None else (own,)),
                *(n for n, wild in self._wild[columns].items() if compiled(wild.pattern)(word)),
            )
        return found


class Answers:
    """Answers for one batch: `found` by number, of leaves that match at least one document."""

    def __init__(self, queries: QuerySet, documents: Documents) -> None:
        self.queries, self.documents = queries, documents
        self.found: dict[int, int] = {}
        self._asked: dict[int, int] = {}
        for columns in {*queries._words, *queries._wild}:
            self._read_words(columns)
        for column, numbers in queries._equal.items():
            if numbers:
                self._read_values(documents.columns[column], numbers)

    def _read_words(self, columns: tuple[str, ...]) -> None:
        queries, found = self.queries, self.found
        several = [self.documents.words[column] for column in columns]
        numbers = queries._words.get(columns, {})
        bit = 1
        if queries._wild.get(columns):
            for texts in zip(*several, strict=True):
                for word in set().union(*texts):
                    for number in queries.leaves_of_word(columns, word):
                        found[number] = found.get(number, 0) | bit
                bit <<= 1
            return
        if not numbers:
            return
        number_of = numbers.get
        for texts in zip(*several, strict=True):
            for word in set(texts[0]) if len(texts) == 1 else set().union(*texts):
                own = number_of(word)
                if own is not None:
                    found[own] = found.get(own, 0) | bit
            bit <<= 1

    def _read_values(self, values: Sequence[object], numbers: dict[Comparable, int]) -> None:
        found, bit = self.found, 1
        for value in values:
            if value is not None:
                number = numbers.get(value)  # type: ignore[call-overload]
                if number is not None:
                    found[number] = found.get(number, 0) | bit
            bit <<= 1

    def value(self, node: _Node) -> int:
        """The documents that a node matches."""
        if node.__class__ is int:
            return self._leaf(node)
        kind, parts = cast("tuple[Any, Any]", node)
        found = self.found
        if kind == _AND:
            bits: int = -1
            for part in parts:
                if part.__class__ is int and part >= 0:
                    bits &= found.get(part, 0)
                else:
                    bits &= self.value(part)
                if not bits:
                    return 0
            return bits
        if kind == _OR:
            bits = 0
            for part in parts:
                if part.__class__ is int and part >= 0:
                    bits |= found.get(part, 0)
                else:
                    bits |= self.value(part)
            return bits
        return self.documents.full & ~self.value(parts)

    def _leaf(self, number: int) -> int:
        if number >= 0:
            return self.found.get(number, 0)
        known = self._asked.get(number)
        if known is None:
            among = self.documents.full
            for letter in self.queries._letters.get(number, ()):
                among &= self.found.get(letter, 0)
            leaf = self.queries._leaves[number]
            known = self._asked[number] = self.documents.answer(leaf, among) if among else 0
        return known


def _costs(node: _Node) -> int:
    """Words first, then what is looked up, then what is gone through."""
    if isinstance(node, int):
        return 0 if node >= 0 else 1
    return 3 if node[0] == _NOT else 2


def _is_found(leaf: Leaf) -> bool:
    """Whether going through the documents once finds it."""
    return isinstance(leaf, Wild | Equal) or (isinstance(leaf, Phrase) and len(leaf.words) == 1)


def _leaves_of(node: _Node) -> Iterator[int]:
    if isinstance(node, int):
        yield node
        return
    kind, parts = node
    for part in [parts] if kind == _NOT else parts:
        yield from _leaves_of(part)


def _shown_leaves(node: _Node) -> Iterable[int]:
    return dict.fromkeys(_leaves_of(node))


def shown(leaf: Leaf, fields: Fields) -> str:
    """A leaf in words, for people."""
    match leaf:
        case Phrase():
            text = " ".join(leaf.words)
            return f"{'|'.join(leaf.columns)}:{text if len(leaf.words) == 1 else f'{chr(34)}{text}{chr(34)}'}"  # fmt: skip
        case Wild():
            return f"{'|'.join(leaf.columns)}:{pattern_text(leaf.pattern)}"
        case Equal():
            return f"{leaf.column}:{as_written(leaf.value, fields.type(leaf.column))}"
        case Like():
            return f"{leaf.column}:{pattern_text(leaf.pattern)}"
        case Present():
            return f"{leaf.column}:*"
        case Everything():
            return "*"
        case Range():
            kind = fields.type(leaf.column)
            ends = [None if end is None else as_written(end, kind) for end in (leaf.low, leaf.high)]
            if ends == [None, None]:
                return f"{leaf.column}:[* TO *]"
            if ends[1] is None:
                return f"{leaf.column}:>{'=' if leaf.with_low else ''}{ends[0]}"
            if ends[0] is None:
                return f"{leaf.column}:<{'=' if leaf.with_high else ''}{ends[1]}"
            return f"{leaf.column}:{'[' if leaf.with_low else '{'}{ends[0]} TO {ends[1]}{']' if leaf.with_high else '}'}"  # fmt: skip
