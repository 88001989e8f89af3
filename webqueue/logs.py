"""Structured logs: one line an event, with job, key and worker bound where they are known."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(*, json: bool = False, level: str = "INFO") -> None:
    """Send every log line, webqueue's and its libraries', to standard error.

    Args:
        json: one JSON object a line instead of text for people.
        level: the least severe level that is written.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    finishing: list[structlog.typing.Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if json:
        finishing.append(structlog.processors.format_exc_info)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[*finishing, renderer])
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # APScheduler tells of every round at INFO; httpx2 of every request, which the evidence files have already.
    for noisy in ("apscheduler", "httpx2", "httpcore2", "waitress.queue", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # It warns of each page without text; such pages are counted, and become the job's attention.
    logging.getLogger("trafilatura").setLevel(logging.ERROR)


def get(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module; bind job, rate_key and worker to it where they are known."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger
