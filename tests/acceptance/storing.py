"""A function that stores documents, for the deliveries behind its job."""

from __future__ import annotations

from webqueue.handlers.protocol import Context, DocumentDraft


def store(ctx: Context, *, count: int, words: int) -> None:
    """Store so many documents of so many words."""
    for number in range(count):
        text = " ".join(f"word{word}" for word in range(words))
        ctx.store(DocumentDraft(url=f"{ctx.site.base_url}{number}", title=f"Report {number}", text=text))
