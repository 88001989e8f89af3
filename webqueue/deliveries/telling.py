"""Who looks for news, and who sends it: every worker, and a process that schedules without working.

When the last worker has died somebody must be left to tell it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from webqueue import clock, logs
from webqueue.database import Database
from webqueue.deliveries import alerts, channels
from webqueue.deliveries.loop import DeliveryLoop
from webqueue.deliveries.messages import MessageSender
from webqueue.loops import Loop

log = logs.get(__name__)

LOOK_SEC: Final = 15.0
_JOIN_SEC: Final = 2.0


class AlertWatch:
    """Looks every few seconds for what is news to those who get notifications."""

    def __init__(self, database: Database, *, every_sec: float) -> None:
        self._database = database
        self._every_sec = every_sec
        self.loop = Loop("alert watch", self.watch, longest_backoff_sec=60.0)

    def watch(self) -> float:
        """Look once; nothing is written where nobody wants to hear of anything."""
        with self._database.reading() as session:
            is_wanted = bool(channels.read(session).channels)
        if is_wanted and (found := self._database.run(lambda s: alerts.watch(s, clock.now(s)))):
            log.info("notifications queued", news=found)
        return self._every_sec


class Teller:
    """Looks for news and sends messages, from `start` to `stop`, beside any number of workers that do the same.

    They take turns at looking, and a message is leased to one of them, so nothing is told twice. What else is delivered is
    left to workers: an export needs their settings. Where apprise is not installed only the looking is done.
    """

    def __init__(self, database: Database, *, look_sec: float = LOOK_SEC) -> None:
        self.loops = [AlertWatch(database, every_sec=look_sec).loop]
        if find_spec("apprise") is not None:
            sender = MessageSender()
            # Two, so that one receiver that hangs does not keep the others waiting.
            self.loops += [
                DeliveryLoop(
                    database, {sender.kind: sender}, name=f"messages {number}", leave_others=True
                ).loop
                for number in (1, 2)
            ]

    def start(self) -> None:
        """Begin to look."""
        for loop in self.loops:
            loop.start()

    def stop(self) -> None:
        """Begin no other round, and wait a moment for those under way: a message that is not sent is due again."""
        for loop in self.loops:
            loop.stop()
        for loop in self.loops:
            loop.join(_JOIN_SEC / len(self.loops))
