"""Sentences: English texts that know what they were made of."""

from __future__ import annotations

import json
import pickle

import pytest

from webqueue.errors import ConflictError, InvalidInputError, NotFoundError
from webqueue.sentences import Sentence, said, say, say_some
from webqueue.web.languages import told


def test_a_sentence_is_its_english_text() -> None:
    sentence = say("Rate key %(key)s is paused.", key="www.example.org")
    assert sentence == "Rate key www.example.org is paused."
    assert (sentence.message, dict(sentence.values)) == (
        "Rate key %(key)s is paused.",
        {"key": "www.example.org"},
    )
    assert json.dumps([sentence]) == '["Rate key www.example.org is paused."]'
    assert told(sentence) == sentence, "outside of a page it stays English"


def test_without_values_a_percent_sign_is_one() -> None:
    assert say("Write it as %40.") == told(say("Write it as %40.")) == "Write it as %40."


@pytest.mark.parametrize(("number", "text"), [(1, "1 job"), (0, "0 jobs"), (1204, "1,204 jobs")])
def test_the_number_chooses_the_form(number: int, text: str) -> None:
    assert say_some("%(count)s job", "%(count)s jobs", number) == text
    assert told(say_some("%(count)s job", "%(count)s jobs", number)) == text


def test_it_survives_the_way_between_processes() -> None:
    sentence = say("%(problem)s Try again.", problem=say("The disk is full."))
    again = pickle.loads(pickle.dumps(sentence))
    assert (again, again.message, again.values) == (sentence, sentence.message, sentence.values)


def test_errors_keep_the_sentence_that_they_were_raised_with() -> None:
    assert isinstance(said(ConflictError(say("It runs."))), Sentence)
    missing = said(NotFoundError("target", "news"))
    assert missing == "There is no target 'news'."
    assert isinstance(missing, Sentence)
    assert type(said(ConflictError("It runs."))) is str
    assert said(InvalidInputError.of("name", say("is empty"))) == "name: is empty"
