"""A verdict in words."""

from __future__ import annotations

from collections.abc import Iterator

from tests.acceptance.chaos.run import Verdict

MOST_FINDINGS = 20


def words(verdict: Verdict) -> str:
    """Everything that a person wants to know, and how to do the same again."""
    return "\n".join(_lines(verdict))


def _lines(verdict: Verdict) -> Iterator[str]:
    plan, submitted = verdict.plan, verdict.figures["submissions"]
    yield (
        f"{verdict.engine}: {submitted} jobs over {plan.keys} keys by {plan.processes} processes of {plan.threads} "
        f"threads in {verdict.seconds:.0f} s ({submitted / verdict.seconds:.1f} jobs/s); CHAOS_SEED={plan.seed}"
    )
    yield "  faults: " + ", ".join(f"{count} {name}" for name, count in sorted(verdict.faults.items()))
    for name, count in sorted(verdict.figures.items()):
        yield f"  {name}: {count}"
    yield "  logged:"
    for name, count in verdict.events.most_common(40):
        yield f"    {count:6} {name}"
    yield f"  findings: {len(verdict.findings)}"
    for finding in verdict.findings[:MOST_FINDINGS]:
        yield f"    {finding.kind}: {finding.text}"
    if len(verdict.findings) > MOST_FINDINGS:
        yield f"    … and {len(verdict.findings) - MOST_FINDINGS} more"
