"""Named steps at which a test kills the process: `TAILRACE_EVENTS_KILL_AT=<name>[:<n>]`.

The process sends itself SIGKILL the n-th time it reaches the step (n = 1 without one): no
`finally`, no flush. Without the variable `reached` does nothing.

    events.fence.init        the transactional id is taken, no fence is written
    events.fence.written     the fence stands in an open transaction
    events.fence.aborted     nothing is read yet
    events.decided           a batch is decided and encoded
    events.sent              it is on its way
    events.published         events and states stand in an open transaction (publish=True)
    events.acknowledged      it is durable, and nobody has been told
    events.indexed           the index has it
    events.answered          the callers have been told
    reactions.stepped        a fact is taken in, and nothing of it is sent
    reactions.sending        a command is about to be sent
    reactions.sent           its owner has decided it, and the journal does not know
    reactions.settled        the journal knows
    reactions.fired          a timer is about to run out
    reactions.read           it is recorded up to where a source is read
    erasing.begun            an erasure is written down, and no key is destroyed
    erasing.destroyed        its keys have tombstones, and are still in the topic
    erasing.cleaned          they are gone, and that is not written down
    excising.begun           an erasure of records is written down, and nothing is done
    excising.deleted         the row of a key is deleted for those who follow the table
    excising.asked           the log is asked to cut records out
    excising.cut             they are cut out, and that is not written down
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

VARIABLE = "TAILRACE_EVENTS_KILL_AT"


def _nothing(step: str) -> None:
    """A step is reached, and nobody waits for it."""


def _killer(wanted: str) -> Callable[[str], None]:
    name, _, number = wanted.partition(":")
    left = int(number or "1")

    def kill(step: str) -> None:
        nonlocal left
        if step == name:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return kill


_wanted = os.environ.get(VARIABLE)
reached = _killer(_wanted) if _wanted else _nothing
