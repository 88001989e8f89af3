"""What pydantic finds wrong with the parameters of a target, as sentences that pages can say in another language."""

from __future__ import annotations

from typing import Any, Final

from webqueue.sentences import Sentence, say

# By pydantic's own types of errors, in its own English. What is not here is told as pydantic tells it.
_SENTENCES: Final = {
    "greater_than_equal": say("Input should be greater than or equal to %(ge)s", ge=0).message,
    "greater_than": say("Input should be greater than %(gt)s", gt=0).message,
    "less_than_equal": say("Input should be less than or equal to %(le)s", le=0).message,
    "less_than": say("Input should be less than %(lt)s", lt=0).message,
    "literal_error": say("Input should be %(expected)s", expected="").message,
    "int_type": say("Input should be a valid integer"),
    "int_parsing": say("Input should be a valid integer, unable to parse string as an integer"),
    "int_from_float": say("Input should be a valid integer, got a number with a fractional part"),
    "float_type": say("Input should be a valid number"),
    "float_parsing": say("Input should be a valid number, unable to parse string as a number"),
    "string_type": say("Input should be a valid string"),
    "bool_type": say("Input should be a valid boolean"),
    "bool_parsing": say("Input should be a valid boolean, unable to interpret input"),
    "dict_type": say("Input should be a valid dictionary"),
    "tuple_type": say("Input should be a valid tuple"),
    "list_type": say("Input should be a valid list"),
}


def pydantic_sentence(detail: Any) -> Sentence:
    """The message of one error of pydantic; its English stays as pydantic has it."""
    text = str(detail["msg"])
    known = _SENTENCES.get(detail["type"])
    if known is None:
        return Sentence(text)
    values = {name: value for name, value in (detail.get("ctx") or {}).items() if name != "error"}
    return Sentence(text, str(known), values=values)
