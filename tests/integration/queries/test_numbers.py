"""Numbers of rows from outside: those that are larger than any row's find nothing, and fail nowhere."""

from __future__ import annotations

import pytest

from tests.helpers.asking import read, submit
from webqueue import queries
from webqueue.database import Database
from webqueue.errors import NotFoundError
from webqueue.queries import JobFilter


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, 10**18 - 1])
def test_a_number_that_no_row_has(example: Database, number: int) -> None:
    submit(example)
    with example.reading() as session:
        (job,) = queries.list_jobs(session, cursor=str(number)).items
        assert queries.list_jobs(session, cursor=f"+{number}").items == ()
        assert queries.list_audit(session, cursor=f"+{number}").items == ()
        for name in (str(number), f"#{number}"):
            with pytest.raises(NotFoundError):
                queries.get_job(session, name)
        with pytest.raises(NotFoundError):
            queries.job_id_of(session, number)
        assert queries.job_log(session, job.seq, after=number).lines == ()
        assert queries.job_log_around(session, job.seq, number).lines == ()
        chosen = queries.matching_jobs(session, JobFilter(), queries.CANCELLABLE, up_to=number)
    assert [one.id for one in chosen] == [job.id]
    assert read(example, lambda s: queries.get_job(s, str(job.seq))).id == job.id
