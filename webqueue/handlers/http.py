"""`http` targets: one request, on the same polite way as every request of a crawl (DESIGN section 8)."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from webqueue.handlers.crawl.articles import Extractor
from webqueue.handlers.crawl.attachments import file_draft
from webqueue.handlers.crawl.encodings import decode
from webqueue.handlers.crawl.pages import Page
from webqueue.handlers.crawl.parameters import Url
from webqueue.handlers.crawl.urls import join
from webqueue.handlers.protocol import Context, DocumentDraft, FetchError, Parameters, Request, Response
from webqueue.outcomes import Cancelled, Done, Failed, Outcome
from webqueue.politeness.evidence import masked_url
from webqueue.sentences import say, stored

# RFC 9110 §5.6.2 (token) and §5.5 (visible characters; no line end, which would begin another header).
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_LONGEST_RESULT: Final = 20_000  # characters; a job's page and the API show it whole
_MEGABYTE: Final = 1_000_000
_GONE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


def _header_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(say("%(name)s is no name of a header", name=repr(name)))
    return name


def _header_value(value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise ValueError(say("must be one line of characters that a header may have"))
    return value.strip()


Headers = dict[Annotated[str, AfterValidator(_header_name)], Annotated[str, AfterValidator(_header_value)]]


class HttpParameters(Parameters):
    """What an `http` target says."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = Field(
        "GET",
        title="Method",
        description="GET and HEAD only read; what the others change there, a retry changes again.",
    )
    url: Url = Field(
        title="URL", description="What is asked for: absolute, or relative to the site's base URL."
    )
    headers: Headers = Field(
        default_factory=dict,
        title="Headers",
        description='Sent besides those of the site, such as {"Accept": "application/json"}. Secrets are masked.',
    )
    body: str = Field(
        "",
        max_length=1_000_000,
        title="Body",
        description="Sent as UTF-8; name its Content-Type in the headers.",
    )
    ok_statuses: tuple[Annotated[int, Field(ge=200, le=499)], ...] = Field(
        (),
        max_length=50,
        title="Expected statuses",
        description="HTTP statuses that count as done; empty: 200 to 299. 429 and other blocks never do.",
    )
    keep: Literal["nothing", "result", "document"] = Field(
        "nothing",
        title="Keep the answer",
        description="nothing; result: its first 20,000 characters with the job; document: a document, with versions.",
    )
    max_mb: int = Field(
        20, ge=1, le=1_000, title="Largest answer (MB)", description="A larger one fails the job."
    )
    total_sec: float = Field(
        120,
        gt=0,
        le=3_600,
        allow_inf_nan=False,
        title="Time limit (s)",
        description="For the whole exchange.",
    )


class HttpHandler:
    """Sends one request. What it does not answer itself (waiting its turn, robots.txt, redirects, blocks) is `ctx.fetch`'s."""

    kind: ClassVar[str] = "http"
    parameters: ClassVar[type[Parameters]] = HttpParameters

    def run(self, ctx: Context) -> Outcome:
        """Send it; blocks pass through as exceptions, and cool the key down."""
        params: HttpParameters = ctx.params
        url = join(ctx.site.base_url, params.url)
        if url is None:
            return Failed(
                stored(
                    "params.url: %(url)s is no http address, seen from %(site)s.",
                    url=masked_url(params.url),
                    site=ctx.site.base_url,
                )
            )
        if ctx.should_stop():
            return Cancelled()
        conditional = (
            {} if ctx.force or params.keep != "document" or params.method != "GET" else ctx.validators(url)
        )
        request = Request(
            url,
            method=params.method,
            headers={**conditional, **params.headers},
            body=params.body.encode() or None,
            max_bytes=params.max_mb * _MEGABYTE,
            total_sec=params.total_sec,
        )
        try:
            response = ctx.fetch(request)
        except FetchError as error:
            return Failed(str(error), {"kind": error.kind, "status": error.status})
        return self._outcome(ctx, params, url, response, conditional=bool(conditional))

    def _outcome(
        self, ctx: Context, params: HttpParameters, url: str, response: Response, *, conditional: bool
    ) -> Outcome:
        result = _facts(response)
        ctx.log(
            stored(
                "HTTP %(status)s, %(count)s bytes from %(url)s",
                status=response.status,
                count=f"{len(response.body):,}",
                url=masked_url(response.url),
            )
        )
        if conditional and response.status == HTTPStatus.NOT_MODIFIED:
            ctx.seen(url)
            return Done({**result, "not_modified": True})
        if not _is_expected(response.status, params.ok_statuses):
            if params.keep == "document" and response.status in _GONE:
                ctx.missing(url)
            return Failed(
                _unexpected(response, params), {**result, "body": _text_of(response)[:_LONGEST_RESULT]}
            )
        if params.keep == "result":
            return Done({**result, "body": _text_of(response)[:_LONGEST_RESULT]})
        if params.keep == "document":
            draft = _draft(ctx, url, response)
            kept = ctx.store(draft)
            attention = (
                None if response.body else stored("The answer of %(url)s is empty.", url=masked_url(url))
            )
            return Done({**result, "document": kept.what}, attention=attention)
        return Done(result)


def _facts(response: Response) -> dict[str, Any]:
    return {
        "status": response.status,
        "url": masked_url(response.url),
        "content_type": response.headers.get("content-type", ""),
        "bytes": len(response.body),
        "elapsed_ms": response.elapsed_ms,
    }


def _is_expected(status: int, ok_statuses: tuple[int, ...]) -> bool:
    return status in ok_statuses if ok_statuses else 200 <= status <= 299


def _unexpected(response: Response, params: HttpParameters) -> str:
    wanted = ", ".join(map(str, params.ok_statuses)) or "200 to 299"
    return stored(
        "HTTP %(status)s from %(url)s; expected was %(wanted)s (ok_statuses).",
        status=response.status,
        url=masked_url(response.url),
        wanted=wanted,
    )


def _draft(ctx: Context, url: str, response: Response) -> DocumentDraft:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if "html" in kind:
        finder = Extractor(
            title_selector=None, content_selector=None, ignore_selectors=(), timezone=ctx.site.timezone
        )
        article = finder.extract(Page(response))
        title, text, published_at = article.title, article.text, article.published_at
    elif kind.startswith("text/") or kind.endswith(("json", "xml", "yaml")):
        title, text, published_at = url, _text_of(response), None
    else:
        return file_draft(url, "", response, keep=True)
    return DocumentDraft(
        url=url,
        title=title,
        text=text,
        published_at=published_at,
        original=response.body,
        content_type=kind,
        etag=response.headers.get("etag"),
        last_modified=response.headers.get("last-modified"),
    )


def _text_of(response: Response) -> str:
    return decode(response.body, response.headers.get("content-type")).text
