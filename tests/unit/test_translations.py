"""The catalogs: every text of the pages is translated, and the compiled file is the one that is read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "messages"
CATALOGS = ROOT / "webqueue" / "translations"
PO = Path("zh") / "LC_MESSAGES" / "messages.po"


def messages(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The catalogs, to be spoilt."""
    return Path(shutil.copytree(CATALOGS, tmp_path / "translations"))


def test_every_text_is_translated_and_compiled() -> None:
    checked = messages("--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('msgstr "语言"', 'msgstr ""', "has no translation: 'Language'"),
        ('msgid "Language"\n', '#, fuzzy\nmsgid "Language"\n', "is fuzzy: 'Language'"),
        ('msgid "Language"', 'msgid "Tongue"', "is in no source any more: 'Tongue'"),
        ('msgid "Language"', 'msgid "Tongue"', "is not in the catalog: 'Language'"),
        ("没有时区 %(zone)s", "没有时区 %(place)s", "There is no zone %(zone)s"),
        ('msgstr "语言"', 'msgstr "语文"', "is not what messages.po gives"),
    ],
)
def test_what_is_wrong_with_a_catalog_is_told(copy: Path, before: str, after: str, said: str) -> None:
    text = (copy / PO).read_text(encoding="utf-8")
    assert before in text
    (copy / PO).write_text(text.replace(before, after), encoding="utf-8")
    checked = messages("--check", copy)
    assert checked.returncode != 0
    assert said in checked.stdout
    assert "make messages" in checked.stderr


def test_the_catalogs_are_written_as_they_stand(copy: Path) -> None:
    assert messages(copy).returncode == 0
    for file in sorted(path for path in CATALOGS.rglob("*") if path.is_file()):
        assert (copy / file.relative_to(CATALOGS)).read_bytes() == file.read_bytes(), file.name


def test_no_catalog_tells_who_wrote_it_where_or_when() -> None:
    text = (CATALOGS / PO).read_text(encoding="utf-8")
    header = text.partition('msgid "')[2].partition("\n\n")[0]
    assert {line.partition(":")[0].strip('"') for line in header.splitlines()[2:]} == {
        "Language",
        "Plural-Forms",
        "MIME-Version",
        "Content-Type",
        "Content-Transfer-Encoding",
    }
    assert str(ROOT) not in text
