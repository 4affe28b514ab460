"""Questions that pages can answer, and those that go on from earlier ones."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

from webrag.errors import WebRAGError
from webrag.ingestion.formats.kinds import kind_of_name
from webrag.lexical.analysis import query_terms
from webrag.presentation.results import description_lines
from webrag.presentation.untrusted import clean_block, one_line

if TYPE_CHECKING:
    from webrag.answering.models import AnswerCitation, ManagerResult
    from webrag.app import WebRAG


_HEADING = re.compile(r"^#{2,4} (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_MARKUP = re.compile(r"[`*_\\¶#]|\]\([^)]*\)|[\[\]]")
_NUMBER = re.compile(r"\A\d{1,3}(?:\.\d{1,3}){0,5}\.?\s")
_ASKS = re.compile(
    r"(?:how to|(?:how|what|why|when|where|which|who)\s+"
    r"(?:are|can|could|did|do|does|has|have|is|may|must|should|was|were|will|would))\b",
    re.IGNORECASE,
)
# What every page has, and nobody asks about.
_EVERYWHERE = re.compile(
    r"(see also|contents|on this page|table of contents|references?|next steps?|introduction|"
    r"overview|summary|examples?|notes?|further reading|changelog|license|navigation|footnotes|"
    r"chapter|appendix|syntax|description|parameters|returns?|options|index|comments|related)\b",
    re.IGNORECASE,
)
_LISTING = re.compile(r"\b(?:index|contents|glossary)\Z", re.IGNORECASE)
_SITE_NAME = re.compile(r"(?<!\s)\s++(?:[|\u2013\u2014\u2022\u00b7]|-|::)\s.*")
_WORDS = range(2, 9)
_PAGES = 6
_SUGGESTED = 3


def questions_from(title: str, markdown: str) -> Iterable[str]:
    """Questions about the sections of a page, in its order."""
    subject = _NUMBER.sub("", _SITE_NAME.sub("", title).strip())
    if _LISTING.search(subject):
        return
    for found in _HEADING.finditer(_FENCE.sub("", markdown)):
        heading = _NUMBER.sub("", _MARKUP.sub("", found[1]).strip(" .:"))
        if _EVERYWHERE.match(heading) or re.match(r"[\d\W]", heading):
            continue
        if len(heading.split()) not in _WORDS or heading.casefold() == subject.casefold():
            continue
        if heading.endswith("?") or _ASKS.match(heading):
            yield f"{heading.rstrip('?')}?"
        elif subject:
            yield f"What does “{subject}” say about {_in_a_sentence(heading)}?"


async def suggested_questions(rag: "WebRAG", sites: Sequence[str]) -> Sequence[str]:
    """Suggest questions, each about another of the pages fetched last; none without headings."""
    try:
        listings = [await rag.list_pages(site=site, limit=_PAGES) for site in sites[:_SUGGESTED]]
        found: dict[str, None] = {}
        # In turn: else a large folder that was read last has all of them.
        for page in filter(None, chain.from_iterable(zip_longest(*(e.pages for e in listings)))):
            if len(found) < _SUGGESTED and kind_of_name(page.url.rpartition("/")[2]) != "code":
                text = await rag.markdown(page.url) or ""
                found |= dict.fromkeys(islice(questions_from(page.title or "", text), 1))
    except WebRAGError:
        return ()
    return list(found)


def _in_a_sentence(heading: str) -> str:
    """The heading as the end of a sentence: a capital stays where a name may begin with it."""
    first, *others = heading.split()
    is_word = first == "A" or (first[:1].isupper() and first[1:].islower())
    is_plain = is_word and all(e.islower() for e in others)
    return heading[0].lower() + heading[1:] if is_plain else heading


_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|this|these|those|that(?=\W*\Z))\b", re.IGNORECASE
)
_GOES_ON = re.compile(r"(?:and|but|or|also|then|so|what about|how about)\b[\s,]*", re.IGNORECASE)
_JOINED = re.compile(r"(?:and|but|or|also|then|so)\b[\s,]*", re.IGNORECASE)
_WORD = re.compile(r"[\w`][\w.+#:/-]*")
_MOST_TERMS = 6
_FEW = 2


@dataclass(frozen=True)
class Turn:
    """A question of a thread as it was typed, and its result; None when it failed."""

    question: str
    result: "ManagerResult | None"


def goes_on(question: str) -> bool:
    """Tell a question that cannot be understood without the one before."""
    if _GOES_ON.match(question) or len(query_terms(question)) < _FEW:
        return True
    points = _POINTS_BACK.search(question)
    # What has been named before the pronoun is what it stands for.
    return points is not None and len(query_terms(question[: points.start()])) < _FEW


def in_thread(question: str, earlier: Sequence[Turn]) -> str:
    """Complete a question by the terms of the turns before it, oldest first."""
    about = next((turn for turn in reversed(earlier) if not goes_on(turn.question)), None)
    if about is None or not goes_on(question):
        return question
    words = _subject(about)
    rest = _JOINED.sub("", question, count=1) if _JOINED.match(question) else question
    rest = rest[:1].upper() + rest[1:]
    if _POINTS_BACK.search(rest):
        has_article = (
            re.search(rf"\b(?:the|an?)\s+{re.escape(words[0])}", about.question) if words else None
        )
        subject = " ".join(["the", *words] if has_article else words)
        return _POINTS_BACK.sub(lambda _: subject, rest, count=1)
    said = rest.rstrip(" ?.!")
    return f"{said} {' '.join(words)}{rest[len(said) :].strip()}"


def _subject(turn: Turn) -> list[str]:
    """The subject of a question: its words that name the pages cited, else all that count."""
    wanted = set(query_terms(turn.question))
    words = [word for word in _WORD.findall(turn.question) if wanted & set(query_terms(word))]
    cited = turn.result.citations if turn.result else ()
    for named in ({each.title for each in cited}, {each.section_heading for each in cited}):
        terms = {term for text in named if text for term in query_terms(text)}
        if found := [word for word in words if terms & set(query_terms(word))]:
            return found[:_MOST_TERMS]
    # No page is named so: what the question does is not what it is about.
    things = [
        word for word in words if re.search(rf"\b(?:the|an?)\s+{re.escape(word)}", turn.question)
    ]
    return (words[words.index(things[0]) :] if things else words)[:_MOST_TERMS]


def thread_markdown(turns: Sequence[Turn]) -> str:
    """Give a thread as Markdown: each question, its answer, and the quotations with their links."""
    return "\n\n".join(map(_turn_markdown, turns)) + "\n"


def _turn_markdown(turn: Turn) -> str:
    title = f"## {one_line(turn.question, max_chars=300)}"
    if turn.result is None:
        return f"{title}\n\nNo answer."
    answer = clean_block(turn.result.answer)
    described = description_lines(turn.result)
    sources = "\n".join(map(_source, turn.result.citations))
    return "\n\n".join([title, *described, answer, sources]).rstrip()


def _source(cited: "AnswerCitation") -> str:
    quoted = one_line(cited.verbatim_text, max_chars=400)
    name = one_line(cited.title or cited.source_url, max_chars=120)
    name = name.replace("[", "\\[").replace("]", "\\]")
    return f"- [{cited.number}] \u201c{quoted}\u201d \u2014 [{name}](<{cited.link}>)"
