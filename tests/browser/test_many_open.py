"""More pages open than the server has threads: none of them holds one, so that nobody waits for the others to close theirs."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path
from typing import Final

import httpx2
import pytest
from sqlalchemy import select

from tests.browser.conftest import copied
from tests.helpers.installation import Installation
from tests.helpers.large import bring_to_now
from webqueue import access, clock
from webqueue.models import Job

pytestmark = pytest.mark.slow

OVERVIEWS: Final = 20
TAILS: Final = 6
READS: Final = 5
_POLL: Final = re.compile(r'id="poll"[^>]* hx-get="([^"]+)"')


def test_20_overviews_and_6_log_tails_leave_room_for_others(large_file: Path, tmp_path: Path) -> None:
    instance = copied(large_file, tmp_path / "large").instance_path
    with Installation(instance, {"WEBQUEUE_WEB_THREADS": "4"}) as installed:
        with installed.database.transaction() as session:
            bring_to_now(session)
            now = clock.now(session)
            user = access.create_user(
                session, access.new_user("ann", "a long password", "viewer"), by="test", now=now
            )
            link = access.new_login_link(session, user, now)
            running = session.scalars(select(Job.id).where(Job.status == "running")).one()
        url = installed.serve(role="web").url
        with httpx2.Client(base_url=url, follow_redirects=True, timeout=60.0) as client:
            client.get(f"/login/{link}").raise_for_status()
            stopping, answers = threading.Event(), Counter[int]()
            paths = ["/"] * OVERVIEWS + [f"/jobs/{running}"] * TAILS

            def keep_open(path: str) -> None:
                """Poll without a pause, as pages do that follow something."""
                found = _POLL.search(client.get(path).text)
                assert found is not None
                poll = found[1].replace("&amp;", "&")
                while not stopping.is_set():
                    answers[client.get(poll).status_code] += 1

            threads = [threading.Thread(target=keep_open, args=(path,)) for path in paths]
            for thread in threads:
                thread.start()
            try:
                for _ in range(READS):
                    assert client.get("/targets").status_code == 200
            finally:
                stopping.set()
                for thread in threads:
                    thread.join()
        assert set(answers) == {204}, answers
        assert answers[204] >= len(paths)
