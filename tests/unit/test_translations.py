"""The catalogs: every text of the pages is translated, and the compiled file is the one that is read."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from jinja2 import Environment, nodes

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "webqueue"
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
        assert (copy / file.relative_to(CATALOGS)).read_bytes() == file.read_bytes(), "run `make messages`"


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


# What a template says between its tags without going through `_()`: names, and units.
AS_IT_IS = {"webqueue", "API", "ms"}
JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
TAG = re.compile(r"<kbd>.*?</kbd>|<[A-Za-z/!][^<>]*>")
SPOKEN_ATTRIBUTE = re.compile(r'\b(?:aria-label|data-l|title)="([^"]*)"')


@pytest.mark.parametrize(
    "template", sorted((PACKAGE / "templates").glob("*.html")), ids=lambda path: path.name
)
def test_what_a_template_says_can_be_translated(template: Path) -> None:
    source = JINJA.sub("", template.read_text(encoding="utf-8"))
    # The fields of `_parts.html` are put together from pieces of a tag.
    source = re.sub(r'^id="" name="".*$', "", source, flags=re.MULTILINE)
    said = [*TAG.sub(" ", source).split(), *" ".join(SPOKEN_ATTRIBUTE.findall(source)).split()]
    words = [word for word in said if re.search("[A-Za-z]", word) and word.strip(",.") not in AS_IT_IS]
    assert words == [], f'write {{{{ _("…") }}}} around {" ".join(words)}'


HAN = "[\u4e00-\u9fff]"
# Latin punctuation behind a Chinese sign (not the colons, brackets and dots of what is typed as it stands); no space
# between Chinese and Latin letters or digits; a space behind punctuation that has its own.
BADLY_SET = re.compile(
    rf"{HAN}[,;!?]|{HAN}\.(\s|$)|{HAN}[A-Za-z0-9]|[A-Za-z0-9]{HAN}|[，。；：！？] | [，。；：！？]"
)


def test_chinese_is_set_as_chinese() -> None:
    with (CATALOGS / PO).open("rb") as opened:
        catalog = read_po(opened, locale="zh")
    texts = [
        re.sub(r"%\(\w+\)s", "…", re.sub("<[^>]+>", "", text))
        for message in catalog
        for text in ([message.string] if isinstance(message.string, str) else message.string or ())
        if message.id
    ]
    assert len(texts) > 1000
    assert [text for text in texts if BADLY_SET.search(text)] == []


TRANSLATING = {"_": (0,), "ngettext": (0, 1), "pgettext": (0, 1)}


@pytest.mark.parametrize(
    "template", sorted((PACKAGE / "templates").glob("*.html")), ids=lambda path: path.name
)
def test_what_a_template_works_out_can_be_translated(template: Path) -> None:
    tree = Environment().parse(template.read_text(encoding="utf-8"))
    marked = {
        id(call.args[place])
        for call in tree.find_all(nodes.Call)
        if isinstance(call.node, nodes.Name)
        for place in TRANSLATING.get(call.node.name, ())
    }
    words = [
        constant.value
        for constant in tree.find_all(nodes.Const)
        if isinstance(constant.value, str)
        and id(constant) not in marked
        and re.search("[A-Za-z]{2,} [A-Za-z]{2,}", constant.value)
    ]
    assert words == [], f"write _({words[0]!r})"


# What these raise is shown by pages; the file's own checks, the API's and the commands' are read in English.
SHOWN = ("access", "deliveries", "documents", "handlers", "job_verbs", "politeness", "queries", "web")
RAISED = {"ConflictError": 0, "Problem": 1, "InvalidInputError.of": 1, "Found": 1, "wrong": 1}
OF_COMMANDS = {PACKAGE / "politeness" / "report.py"}


@pytest.mark.parametrize("package", SHOWN)
def test_what_lower_layers_refuse_with_can_be_translated(package: str) -> None:
    found = []
    for file in sorted(set((PACKAGE / package).rglob("*.py")) - OF_COMMANDS):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            place = RAISED.get(ast.unparse(node.func)) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and place is not None and len(node.args) > place:
                text = node.args[place]
                if isinstance(text, ast.JoinedStr) or (isinstance(text, ast.Constant) and text.value):
                    found.append(f"{file.relative_to(ROOT)}:{text.lineno}: {ast.unparse(text)}")
    assert found == [], "write say(...) of webqueue.sentences, with placeholders"
