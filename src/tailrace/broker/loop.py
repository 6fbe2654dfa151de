"""One thread, one epoll, timers and a door for other threads.

The loop owns no socket. Whoever registers a descriptor gets called with the epoll
mask; whoever waits for time gets a timer. Callbacks that raise are logged and do not
stop the loop: a bug in one handler must not take the other connections down.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import select
import threading
from collections import deque
from collections.abc import Callable

from tailrace.clock import Clock

log = logging.getLogger(__name__)

READ = select.EPOLLIN
WRITE = select.EPOLLOUT
GONE = select.EPOLLHUP | select.EPOLLERR


class LoopTimer:
    """A call that will be made at `due` unless it is cancelled."""

    __slots__ = ("callback", "due")

    def __init__(self, due: float, callback: Callable[[], None] | None) -> None:
        self.due = due
        self.callback = callback

    def cancel(self) -> None:
        """Forget the callback now; the heap entry goes when its time comes."""
        self.callback = None


class Loop:
    """Runs callbacks for descriptors, timers and other threads until `stop`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.monotonic = clock.monotonic
        self._epoll = select.epoll()
        self._watchers: dict[int, Callable[[int], None]] = {}
        self._forgotten: set[int] = set()
        """Descriptors whose events of the present round are nobody's."""
        self._timers: list[tuple[float, int, LoopTimer]] = []
        self._cancelled_sweep_at = 1024
        self._numbers = itertools.count()
        self._soon: deque[Callable[[], None]] = deque()
        self._foreign: deque[Callable[[], None]] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._woken = False
        self._guard = threading.Lock()
        self._running = False
        self.thread_id = 0
        self.polled_at = 0.0
        self.busy_since = 0.0
        """When the present round of work began; 0 while the loop waits."""
        self.idle_seconds = 0.0
        self.busy_seconds = 0.0
        self._epoll.register(self._wake, READ)

    # descriptors

    def watch(self, descriptor: int, mask: int, callback: Callable[[int], None]) -> None:
        """Call `callback(mask)` whenever `descriptor` is ready (level-triggered)."""
        self._watchers[descriptor] = callback
        self._epoll.register(descriptor, mask)

    def change(self, descriptor: int, mask: int) -> None:
        """Wait for other events on a watched descriptor."""
        self._epoll.modify(descriptor, mask)

    def forget(self, descriptor: int) -> None:
        """Stop watching; call before closing the descriptor."""
        del self._watchers[descriptor]
        # Its number may be another's before this round of events is over: a hang-up that was
        # meant for the old one would close the new one.
        self._forgotten.add(descriptor)
        self._epoll.unregister(descriptor)

    # time and other threads

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> LoopTimer:
        timer = LoopTimer(self._clock.monotonic() + delay_seconds, callback)
        if len(self._timers) >= self._cancelled_sweep_at:
            # Long polls that end early leave cancelled timers behind: without this a busy
            # consumer with a long fetch wait would grow the heap without bound.
            self._timers = [entry for entry in self._timers if entry[2].callback is not None]
            heapq.heapify(self._timers)
            self._cancelled_sweep_at = max(1024, 2 * len(self._timers))
        heapq.heappush(self._timers, (timer.due, next(self._numbers), timer))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Run `callback` on the loop thread soon; safe from any thread."""
        self._foreign.append(callback)
        with self._guard:
            if not self._woken and self._wake >= 0:
                self._woken = True
                os.eventfd_write(self._wake, 1)

    # running

    def run(self) -> None:
        """Work until `stop`; must be called once, on the thread that is to be the loop."""
        self._running = True
        self.thread_id = threading.get_ident()
        monotonic = self._clock.monotonic
        poll = self._epoll.poll
        watchers = self._watchers
        forgotten = self._forgotten
        soon = self._soon
        wake = self._wake
        while self._running:
            before = monotonic()
            if soon or self._foreign:
                timeout = 0.0
            elif self._timers:
                timeout = max(0.0, self._timers[0][0] - before)
            else:
                timeout = -1.0
            self.busy_since = 0.0
            forgotten.clear()
            events = poll(timeout, 512)
            self.polled_at = self.busy_since = after = monotonic()
            self.idle_seconds += after - before
            for descriptor, mask in events:
                callback = watchers.get(descriptor)
                if descriptor in forgotten:
                    continue
                if callback is not None:
                    try:
                        callback(mask)
                    except Exception:
                        log.exception("event handler failed")
                    if soon:
                        self._run_soon()
                elif descriptor == wake:
                    self._drain_foreign()
            if self._timers and self._timers[0][0] <= after:
                self._run_timers(after)
            if soon:
                self._run_soon()
            self.busy_seconds += monotonic() - after

    def stop(self) -> None:
        """End `run` after the present round."""
        self._running = False

    def close(self) -> None:
        """Give the descriptors back."""
        with self._guard:
            self._epoll.close()
            os.close(self._wake)
            self._wake = -1

    def _drain_foreign(self) -> None:
        with self._guard:
            self._woken = False
            os.eventfd_read(self._wake)
        foreign = self._foreign
        for _ in range(len(foreign)):
            self._call(foreign.popleft())
        if foreign:
            self._soon.append(self._drain_rest)

    def _drain_rest(self) -> None:
        while self._foreign:
            self._call(self._foreign.popleft())

    def _run_soon(self) -> None:
        soon = self._soon
        # A callback may add others; they run too, but a chain cannot starve the sockets.
        for _ in range(10_000):
            if not soon:
                return
            self._call(soon.popleft())

    def _run_timers(self, now: float) -> None:
        timers = self._timers
        while timers and timers[0][0] <= now:
            timer = heapq.heappop(timers)[2]
            callback, timer.callback = timer.callback, None
            if callback is not None:
                self._call(callback)
            timers = self._timers

    @staticmethod
    def _call(callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception:
            log.exception("callback failed")
