"""The targets that a form is about: those that were ticked, or all that match; and exactly those of the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flask import request

from webqueue import queries
from webqueue.db import reading
from webqueue.queries import TargetFilter
from webqueue.web import target_list
from webqueue.web.job_bulk import examples
from webqueue.web.languages import between_sentences, ngettext

# The field of the form that confirms; once for each target that the question was about.
NAMED: Final = "named"


@dataclass(frozen=True)
class Choice:
    """Targets that something shall be done with.

    Attributes:
        codes: those that there are, sorted.
        left: how many more match than are taken at once.
        gone: how many the question was about that were deleted since.
        newer: how many match now that the question was not about.
    """

    codes: tuple[str, ...]
    left: int = 0
    gone: int = 0
    newer: int = 0

    @property
    def fields(self) -> list[tuple[str, str]]:
        """What the form that confirms sends along."""
        return [(NAMED, code) for code in self.codes]

    def question(self) -> str:
        """Which they are: the first of them, and what is left out."""
        sentences = [examples(self.codes)]
        if self.left:
            sentences.append(
                ngettext(
                    "More than %(most)s are not taken at once: %(count)s that matches is left out.",
                    "More than %(most)s are not taken at once: %(count)s that match are left out.",
                    self.left,
                    most=f"{queries.MAX_TARGETS:,}",
                )
            )
        return between_sentences().join(sentences)

    def since(self) -> list[str]:
        """What is otherwise than when the question was asked."""
        told = []
        if self.gone:
            told.append(ngettext("%(count)s target is gone", "%(count)s targets are gone", self.gone))
        if self.newer:
            told.append(
                ngettext(
                    "%(count)s more matches now and was left out",
                    "%(count)s more match now and were left out",
                    self.newer,
                )
            )
        return told


def ticked() -> list[str]:
    """The codes of the boxes that were ticked."""
    return request.form.getlist("target")[: queries.MAX_TARGETS]


def chosen() -> Choice:
    """What the form is about; once it was confirmed, what the question was about."""
    session, most = reading(), queries.MAX_TARGETS
    every = TargetFilter(**target_list.chosen_in(request.form)) if "all" in request.form else None
    named = set(request.form.getlist(NAMED)[:most])
    if named:
        codes = queries.known_targets(session, named, limit=most)
        # Where not all were taken, those that were not would count as new.
        whole = every is not None and len(named) < most
        matching = queries.matching_targets(session, every, limit=most) if every is not None and whole else ()
        newer = set(matching) - named
        return Choice(codes, gone=len(named) - len(codes), newer=len(newer))
    if every is None:
        return Choice(queries.known_targets(session, set(ticked()), limit=most))
    codes = queries.matching_targets(session, every, limit=most)
    return Choice(codes, left=queries.count_targets(session, every) - len(codes))
