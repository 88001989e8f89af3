"""The bytes as they came, kept by their content in a folder or a bucket (`WEBQUEUE_STORE_URL`, by fsspec)."""

from __future__ import annotations

import gzip
import hashlib
import re
import secrets
import zlib
from typing import Any, Final

from webqueue.errors import NotFoundError, WebqueueError

_KEY: Final = re.compile(r"[0-9a-f]{64}")


class OriginalStore:
    """A content-addressed store: equal bytes are kept once, and a key is the SHA-256 of what it stands for.

    Safe for any number of writers, processes and machines: a file appears under its name only when it is complete.

    Args:
        url: a path, or any URL that fsspec knows; buckets need the package of their scheme.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs  # slow to import, and many commands never open the store

        filesystem, root = url_to_fs(url)
        self._filesystem: Any = filesystem
        self._root = str(root).rstrip("/")

    def put(self, body: bytes) -> str:
        """Keep `body` (compressed by gzip) and return its key; what is kept already is not written again."""
        key = hashlib.sha256(body).hexdigest()
        path = self._path(key)
        if self._filesystem.exists(path):
            return key
        folder = path.rpartition("/")[0]
        unfinished = f"{folder}/.{key}.{secrets.token_hex(8)}.tmp"
        self._filesystem.makedirs(folder, exist_ok=True)
        # No time in the header: equal bytes make equal files, whoever writes them.
        self._filesystem.pipe_file(unfinished, gzip.compress(body, mtime=0))
        self._filesystem.mv(unfinished, path)
        return key

    def get(self, key: str) -> bytes:
        """The bytes of a key.

        Raises:
            NotFoundError: nothing is kept under it.
            WebqueueError: the file is damaged.
        """
        try:
            compressed: bytes = self._filesystem.cat_file(self._path(key))
        except FileNotFoundError:
            raise NotFoundError("kept page", key) from None
        try:
            body = gzip.decompress(compressed)
        except (OSError, EOFError, zlib.error) as error:
            raise WebqueueError(
                f"The kept page {key} is damaged: {error}. Restore it from a backup."
            ) from None
        if hashlib.sha256(body).hexdigest() != key:
            raise WebqueueError(
                f"The kept page {key} is damaged: its content is another. Restore it from a backup."
            )
        return body

    def _path(self, key: str) -> str:
        # Only a hash becomes a path, so that nothing from outside can name a file of its own.
        if not _KEY.fullmatch(key):
            raise NotFoundError("kept page", key)
        return f"{self._root}/{key[:2]}/{key}.gz"
