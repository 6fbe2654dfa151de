"""How text becomes words, for the search sink and for stored queries: the same rules for both.

A text is cut where a character is neither a letter nor a digit; words of 40 bytes and more are
left out; letters become small; with a language, words lose their endings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

LANGUAGES = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "fi": "finnish", "fr": "french", "hu": "hungarian", "it": "italian",
    "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
LONG_BYTES = 40
LEFT_OUT = "\x01"  # stands where a word was left out, so that its neighbours are none
_LONG_ASCII, _LONG_OTHER = LONG_BYTES - 8, LONG_BYTES // 4 - 4  # endings are shorter than that


def is_language(language: str) -> bool:
    return language in LANGUAGES or language in LANGUAGES.values()


def analyzer(language: str = "") -> Any:
    """tantivy's analyzer; ValueError for a language it does not know."""
    return _filtered(language, limited=True)


def _filtered(language: str, *, limited: bool) -> Any:
    import tantivy

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    if limited:
        builder = builder.filter(tantivy.Filter.remove_long(LONG_BYTES))
    builder = builder.filter(tantivy.Filter.lowercase())
    if language:
        builder = builder.filter(tantivy.Filter.stemmer(LANGUAGES.get(language, language)))
    return builder.build()


@lru_cache(maxsize=64)
def words_of(language: str = "") -> Callable[[str], list[str]]:
    """A function from a text to its words in their order, `LEFT_OUT` for those left out."""
    import tantivy

    whole = _filtered(language, limited=False).analyze
    bare = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).build().analyze

    def words(text: str) -> list[str]:
        found: list[str] = whole(text)
        most = _LONG_ASCII if text.isascii() else _LONG_OTHER
        if found and max(map(len, found)) >= most:
            for place, word in enumerate(bare(text)):
                if len(word.encode()) >= LONG_BYTES:
                    found[place] = LEFT_OUT
        return found

    return words
