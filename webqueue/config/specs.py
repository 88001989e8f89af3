"""Sites, targets and rate groups in the words of the import file (DESIGN section 8)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from webqueue.config.values import (
    BaseUrl,
    Code,
    FilledLine,
    HeaderName,
    HeaderValue,
    HostSuffix,
    Hours,
    Key,
    Line,
    Note,
    Proxy,
    Seconds,
    Tags,
    Time,
    Timezone,
)
from webqueue.sentences import say

_Adapter = Literal["list", "feed", "sitemap", "json", "gkmlpt", "spider"]
_Overlap = Literal["skip", "queue_one", "allow"]
_CatchUp = Literal["none", "one", "all"]

# What this version does; the other values of the specification are refused as not built, never taken and ignored.
BUILT_ADAPTERS: Final = get_args(_Adapter)
BUILT_OVERLAPS: Final = get_args(_Overlap)
BUILT_CATCH_UPS: Final = get_args(_CatchUp)


def _built(value: str, built: tuple[str, ...]) -> str:
    if value not in built:
        raise ValueError(
            say("%(value)s is not built yet; write %(known)s", value=repr(value), known=" or ".join(built))
        )
    return value


Adapter = Annotated[_Adapter, AfterValidator(lambda value: _built(value, BUILT_ADAPTERS))]
Overlap = Annotated[_Overlap, AfterValidator(lambda value: _built(value, BUILT_OVERLAPS))]
CatchUp = Annotated[_CatchUp, AfterValidator(lambda value: _built(value, BUILT_CATCH_UPS))]


class Spec(BaseModel):
    """Strict: unknown fields are refused, and no value is taken for another type than it has."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_default=False)


class HttpSpec(Spec):
    """How a site is fetched."""

    user_agent: HeaderValue | None = None
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    proxy: Proxy | None = None
    verify_tls: bool = True
    legacy_tls: bool = False
    timeout_sec: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30


class SiteSpec(Spec):
    """A site of the file."""

    code: Code
    name: FilledLine
    base_url: BaseUrl
    adapter: Adapter = "list"
    timezone: Timezone = "UTC"
    rate_key: Key | None = None
    min_gap_sec: Seconds = 0
    cooldown_sec: Annotated[int, Field(ge=0, le=86_400)] | None = None
    allowed_hours: Hours | None = None
    obey_robots: bool = True
    http: HttpSpec = HttpSpec()


class KeyNoteSpec(Spec):
    """What people write about a rate key."""

    owner: Line = ""
    note: Note = ""


class RetrySpec(Spec):
    """How often a failed job is tried again, and the first wait (seconds); it doubles each time."""

    times: Annotated[int, Field(ge=0, le=100)] = 2
    wait_sec: Annotated[int, Field(ge=0, le=604_800)] = 300


class TargetFields(Spec):
    """What a target has and `defaults` may give it."""

    schedule: Annotated[str, Field(max_length=200)] | None = None
    timezone: Timezone | None = None
    interval_sec: Seconds = 10
    overlap: Overlap = "queue_one"
    catch_up: CatchUp = "one"
    catch_up_limit: Annotated[int, Field(ge=1, le=1000)] = 24
    jitter_sec: Annotated[int, Field(ge=0, le=86_400)] = 0
    start_at: Time | None = None
    end_at: Time | None = None
    track_checkpoint: bool = True
    max_runtime_sec: Annotated[int, Field(ge=1, le=2_592_000)] = 14_400
    retry: RetrySpec = RetrySpec()
    enabled: bool = True
    tags: Tags = Field(default_factory=list)
    note: Note = ""
    owner: Line = ""
    params: dict[str, Any] = Field(default_factory=dict)


class Defaults(TargetFields):
    """What holds for every target of the file that does not say otherwise."""

    handler: Line | None = None


class TargetSpec(TargetFields):
    """A target of the file.

    `learned_interval_sec` is what `export` knows of it. A target that the file creates begins with it, so that a move to
    another installation forgets no lesson; one that exists keeps what it has learned since.
    """

    code: Code
    site: Code
    handler: FilledLine
    learned_interval_sec: Seconds | None = None


class RateGroupSpec(Spec):
    """Hosts behind one firewall: sites with this adapter, at or below `host_suffix`, share `key`."""

    key: Key
    adapter: _Adapter
    host_suffix: HostSuffix
    grow_interval: bool = True
    cooldown_factor: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = 2


class File(Spec):
    """A whole file: its objects as they shall be, with the defaults worked in."""

    rate_groups: list[RateGroupSpec] = Field(default_factory=list)
    sites: list[SiteSpec] = Field(default_factory=list)
    targets: list[TargetSpec] = Field(default_factory=list)
