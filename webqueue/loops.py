"""The one shape of every background loop: it sleeps interruptibly, and survives a round that fails."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from webqueue import logs

log = logs.get(__name__)

FIRST_BACKOFF_SEC: Final = 0.5
LONGEST_BACKOFF_SEC: Final = 15.0


class Loop:
    """A daemon thread that calls `do_round` until it is stopped.

    A round that raises is logged, and tried again after a pause that doubles from 0.5 s to `longest_backoff_sec`; the
    loop goes on. `problem` tells whoever asks that it is failing, and why.

    Args:
        name: of the thread, and in the log.
        do_round: does one round and returns how many seconds to sleep before the next.
        sleep: sleeps so many seconds, or until there is a reason not to; the default sleeps until `stop`. Whatever it
            waits for, `stop` must end it: see `on_stop`.
        on_stop: called by `stop`, to end a `sleep` of one's own.
        longest_backoff_sec: the longest pause after failures.
    """

    def __init__(
        self,
        name: str,
        do_round: Callable[[], float],
        *,
        sleep: Callable[[float], object] | None = None,
        on_stop: Callable[[], None] | None = None,
        longest_backoff_sec: float = LONGEST_BACKOFF_SEC,
    ) -> None:
        self.name = name
        self.problem: str | None = None
        self._round = do_round
        self._stopping = threading.Event()
        self._sleep = sleep or self._stopping.wait
        self._on_stop = on_stop
        self._longest_backoff_sec = longest_backoff_sec
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    @property
    def running(self) -> bool:
        """Whether the thread lives."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread. Once."""
        self._thread.start()

    def stop(self) -> None:
        """Let no further round begin; `join` waits for the one under way."""
        self._stopping.set()
        if self._on_stop is not None:
            self._on_stop()

    def join(self, timeout: float) -> bool:
        """Wait until the thread has ended, at most `timeout` seconds; False when it has not."""
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                pause = self._round()
            except Exception as error:  # noqa: BLE001 - one failing round never ends a loop
                self._note_failure(error)
                # Never `sleep`: what wakes it may be the very thing that fails, over and over.
                self._stopping.wait(self._backoff())
            else:
                if self._failures:
                    log.info("loop works again", loop=self.name, failed_rounds=self._failures)
                self._failures, self.problem = 0, None
                if pause > 0 and not self._stopping.is_set():
                    self._sleep(pause)

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        self.problem = f"{self.name}: {type(error).__name__}: {error}"
        # The first failure tells where; the same again and again would only bury it.
        log.error(
            "loop round failed",
            loop=self.name,
            failed_rounds=self._failures,
            error=str(error),
            exc_info=self._failures == 1,
        )

    def _backoff(self) -> float:
        return min(self._longest_backoff_sec, FIRST_BACKOFF_SEC * 2.0 ** min(self._failures - 1, 10))
