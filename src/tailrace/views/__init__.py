"""Keyed copies of changelog topics: look up, ask in SQL, subscribe, wait for a position.

The room itself can be called: `tr.views("127.0.0.1:8080")["open_orders"].get("NL")`; see
`tailrace.views.connect.views`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailrace.views.reader import Views
    from tailrace.views.remote import RemoteViews


class _Room(ModuleType):
    # A public name and a package share the word; the module answers to both uses.
    def __call__(self, address: str | Path, *, token: str | None = None) -> Views | RemoteViews:
        from tailrace.views.connect import views

        return views(address, token=token)


sys.modules[__name__].__class__ = _Room
