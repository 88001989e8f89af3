"""Messages: queued for each receiver, and sent by apprise."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import ClassVar, Final

from sqlalchemy.orm import Session

from webqueue import logs
from webqueue.deliveries import channels
from webqueue.deliveries.channels import Channel
from webqueue.deliveries.queue import enqueue
from webqueue.deliveries.work import Again, Answer, Delivered, Work
from webqueue.errors import NotFoundError
from webqueue.sentences import stored

log = logs.get(__name__)

KIND: Final = "message"
# About a day at the longest waits: news that old is no news.
_MOST_ATTEMPTS: Final = 30

# What is sent in this context.
_message: ContextVar[object] = ContextVar("message", default=None)


def send(
    session: Session, channel: Channel, title: str, body: str, *, good: bool = False, now: datetime
) -> None:
    """Queue a message for one receiver; it goes out when the caller's transaction has committed."""
    payload = {"channel": channel.id, "target": channel.name, "title": title, "body": body, "good": good}
    enqueue(session, KIND, f"{KIND}:{channel.id}:{secrets.token_hex(8)}", payload, now=now)


class MessageSender:
    """Delivers messages, each to one receiver: one that refuses does not let the others get theirs twice."""

    kind: ClassVar[str] = KIND

    def deliver(self, work: Work) -> Answer:
        """Send it; a receiver that was removed meanwhile gets nothing."""
        with work.database.reading() as session:
            wanted = channels.read(session)
        try:
            channel = channels.find(wanted, str(work.payload["channel"]))
        except NotFoundError:
            log.info("message dropped: its receiver was removed", delivery=work.id)
            return Delivered()
        error = _notify(channel, work)
        if not error:
            return Delivered()
        if work.attempts + 1 >= _MOST_ATTEMPTS:
            log.error("message given up", delivery=work.id, receiver=channel.name, error=error)
            return Delivered()
        return Again(error)


def _notify(channel: Channel, work: Work) -> str:
    """What went wrong, without secrets; "" when it was accepted."""
    import apprise  # slow to import

    channels.keep_to_itself()
    one = apprise.Apprise()
    if not one.add(channel.url):
        return stored("%(name)s: apprise does not know its address any more", name=channel.name)
    kind = apprise.NotifyType.SUCCESS if work.payload.get("good") else apprise.NotifyType.WARNING
    with _heard() as said:
        accepted = one.notify(
            title=str(work.payload["title"]), body=str(work.payload["body"]), notify_type=kind,
            body_format=apprise.NotifyFormat.TEXT,
        )  # fmt: skip
    if accepted:
        return ""
    told = " ".join(" ".join(said).split())
    error = (
        stored("%(name)s did not take it: %(why)s", name=channel.name, why=told)
        if told
        else stored("%(name)s did not take it: no reason given", name=channel.name)
    )
    return channel.without_secrets(error)[:500]


class _Ear(logging.Handler):
    """Keeps what is logged on behalf of one message."""

    def __init__(self, message: object) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []
        self._message = message

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is about our message: others go to other receivers, whose secrets are not ours."""
        return super().filter(record) is not False and _message.get() is self._message

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.said.append(record.getMessage())


@contextmanager
def _heard() -> Iterator[list[str]]:
    """What apprise says of the message that is sent meanwhile.

    It tells what went wrong in its log alone, with parts of the address, which the caller masks. Its logger is one for
    the process, where several loops send at the same time, and a receiver may still be talked to in a thread of apprise
    after it was given up; so the context, which goes along into such threads, tells whose words they are. A lock would not
    do, and would let a receiver that hangs keep the others waiting.
    """
    logger = channels.keep_to_itself()
    message = object()
    ear = _Ear(message)
    before = _message.set(message)
    logger.addHandler(ear)
    try:
        yield ear.said
    finally:
        logger.removeHandler(ear)
        _message.reset(before)
