"""The store of originals, on a real folder and on fsspec's memory file system."""

from __future__ import annotations

import gzip
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webqueue.documents import OriginalStore
from webqueue.errors import NotFoundError, WebqueueError


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture(params=["folder", "file-url", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> OriginalStore:
    urls = {
        "folder": str(tmp_path / "originals"),
        "file-url": (tmp_path / "a folder").as_uri(),
        "memory": f"memory://{tmp_path.name}",
    }
    return OriginalStore(urls[request.param])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=5_000))
def test_what_is_put_is_got(store: OriginalStore, body: bytes) -> None:
    key = store.put(body)
    assert key == hashlib.sha256(body).hexdigest()
    assert store.get(key) == body
    assert store.put(body) == key


def test_equal_bytes_are_kept_once_and_compressed(tmp_path: Path) -> None:
    store = OriginalStore(str(tmp_path))
    body = b"<p>the same line</p>\n" * 10_000
    key = store.put(body)
    (path,) = files(tmp_path)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    store.put(body)
    assert files(tmp_path) == [path]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert len(before[0]) < len(body) / 20
    assert gzip.decompress(before[0]) == body
    assert key in path.name


def test_two_folders_have_equal_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        OriginalStore(str(tmp_path / name)).put(b"body")
    one, two = files(tmp_path / "one"), files(tmp_path / "two")
    assert one[0].read_bytes() == two[0].read_bytes()
    assert one[0].relative_to(tmp_path / "one") == two[0].relative_to(tmp_path / "two")


def test_sixteen_writers_at_once_leave_whole_files(tmp_path: Path) -> None:
    bodies = [bytes([number]) * 300_000 for number in range(4)]
    barrier = threading.Barrier(16)

    def write(number: int) -> str:
        barrier.wait(timeout=30)
        return OriginalStore(str(tmp_path)).put(bodies[number % 4])

    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(write, range(16)))
    store = OriginalStore(str(tmp_path))
    assert sorted(store.get(key) for key in keys) == sorted(bodies)
    assert len(files(tmp_path)) == 4, "an unfinished file was left behind"


@pytest.mark.parametrize("key", ["../../etc/passwd", "", "A" * 64, "0" * 63, "/" + "0" * 63, "0" * 64 + "\n"])
def test_only_a_hash_is_a_key(tmp_path: Path, key: str) -> None:
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(NotFoundError):
        OriginalStore(str(tmp_path / "store")).get(key)


def test_what_was_never_kept_is_not_found(store: OriginalStore) -> None:
    with pytest.raises(NotFoundError, match="kept page"):
        store.get("0" * 64)


@pytest.mark.parametrize(
    "damage",
    [b"", b"no gzip", gzip.compress(b"another page"), gzip.compress(b"body")[:-6]],
    ids=["empty", "no-gzip", "another-page", "cut-off"],
)
def test_damage_is_told(tmp_path: Path, damage: bytes) -> None:
    store = OriginalStore(str(tmp_path))
    key = store.put(b"body")
    files(tmp_path)[0].write_bytes(damage)
    with pytest.raises(WebqueueError, match=f"{key} is damaged"):
        store.get(key)
