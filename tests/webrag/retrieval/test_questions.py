"""Which questions find which words: identifiers, scripts, and words that hardly say anything."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.webrag.retrieval.conftest import stored_once
from webrag.retrieval.models import RetrievedChunk
from webrag.retrieval.search import Searcher

MakeSearcher = Callable[..., Searcher]
shared = pytest.mark.asyncio(loop_scope="module")

# What is asked for, and a neighbour made of the same letters or parts.
IDENTIFIERS = {
    "max_connections": "The max number of connections is limited by connections that are max.",
    "--no-ff": "There is no ff file here, and no other ff file either.",
    "Vec::new": "A new vec of new things stands beside an old vec, a new vec.",
    "E0502": "Error E0503 and error E0501 are other errors with a number.",
    "std::vector<int>": "A vector of int is a std vector of std, as int is: std, vector, int.",
    "$HOME": "At home the home page is the home of every home.",
    "@decorator": "The decorator decorates the house as a decorator does.",
    "foo.bar()": "A bar with foo and a foo with bar stand here.",
    "C++": "C is a letter and vitamin C is a vitamin, as C is.",
    ".gitignore": "To ignore git is to ignore what git does not ignore.",
    "x86_64": "The numbers 86 and 64 and the letter x are here, 64 and 86.",
}
SCRIPTS = {
    "数据库连接数": ("数据库的最大连接数由配置文件决定。", "天气预报说明天会下雨。"),
    "データベース": ("データベースはここで設定します。", "今日の天気はとても良いです。"),
    "데이터베이스": ("데이터베이스를 여기에서 설정합니다.", "오늘 날씨가 매우 좋습니다."),
    "книга": ("В библиотеке много старых книг о море.", "Погода сегодня очень хорошая."),
    "الكتاب": ("يوجد في المكتبة كتاب قديم عن البحر.", "الطقس اليوم جميل جدا."),
    "Datenbankverbindungen": (
        "Die Anzahl der Datenbankverbindungen wird hier eingestellt.",
        "Das Wetter ist heute sehr schön.",
    ),
    "Häuser": ("Alle Häuser am Hafen haben rote Dächer.", "Der Wind weht heute aus Norden."),
}


def sections(paragraphs: list[str]) -> str:
    filler = "Other matters are told here in words of no interest to anybody at all. " * 3
    return "# Notes\n\n" + "\n\n".join(
        f"## Part {number}\n\n{text}\n\n{filler}" for number, text in enumerate(paragraphs)
    )


async def best(searcher: Searcher, question: str) -> RetrievedChunk:
    result = await searcher.retrieve(question)
    return max(result.chunks, key=lambda chunk: chunk.score)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def identifiers(postgres_dir: Path) -> AsyncIterator[MakeSearcher]:
    """Searches a page with each identifier in a section, beside sections that look like it."""
    told = [f"Use `{name}` where the reader of this part needs it." for name in IDENTIFIERS]
    async with stored_once(postgres_dir) as (add_page, searching):
        await add_page("https://a.test/notes", "Notes", sections([*IDENTIFIERS.values(), *told]))
        yield searching


@shared
@pytest.mark.parametrize("question", ["{}", "What does {} mean?", "how do I use `{}`?"])
async def test_identifiers_are_found_exactly(identifiers: MakeSearcher, question: str) -> None:
    searcher = identifiers()

    found = {name: (await best(searcher, question.format(name))).text for name in IDENTIFIERS}

    assert [name for name, text in found.items() if f"`{name}`" not in text] == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scripts(postgres_dir: Path) -> AsyncIterator[MakeSearcher]:
    """Searches one page: every language in two sections."""
    texts = [text for pair in SCRIPTS.values() for text in pair]
    async with stored_once(postgres_dir) as (add_page, searching):
        await add_page("https://a.test/notes", "Notes", sections(texts))
        yield searching


@shared
async def test_words_of_other_languages_are_found(scripts: MakeSearcher) -> None:
    searcher = scripts()

    found = {word: (await best(searcher, word)).text for word in SCRIPTS}

    assert [word for word, text in found.items() if SCRIPTS[word][0] not in text] == []


@shared
@pytest.mark.parametrize(
    "question",
    ["how do I", "the", "a", "?", "🙂", "🙂 🙂", "端", "\u200b?", "=", "%s %(urls)s", "';--", "\\"],
)
async def test_questions_that_hardly_say_anything_are_answered(
    identifiers: MakeSearcher, question: str
) -> None:
    result = await identifiers().retrieve(question)

    assert result.corpus_stats.total_documents == 1


@shared
async def test_a_very_long_question_is_searched_by_its_beginning(
    identifiers: MakeSearcher,
) -> None:
    question = "What does max_connections mean? " + "and so on " * 5_000

    assert "`max_connections`" in (await best(identifiers(), question)).text


@shared
async def test_only_stop_words_are_searched_as_they_are(identifiers: MakeSearcher) -> None:
    result: Any = await identifiers(similarity_floor=1.0).retrieve("here")

    assert result.chunks
    assert all(match.lexical > 0 for chunk in result.chunks for match in chunk.matches)
