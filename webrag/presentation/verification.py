"""Checked quotations as text; it repeats what was found and judges nothing."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType

from webrag.presentation.frames import frame_notice, framed
from webrag.presentation.untrusted import one_line
from webrag.retrieval.citation_checks import CitationCheck, Finding

__all__ = ["format_verification"]

_STORED = {
    "exact": "exact, word for word",
    "moved": "exact, but at other offsets than given",
    "reformatted": "the same words, with other white space, markup or quotation marks",
    "changed": "NOT verbatim; the page has a similar passage",
    "absent": "NOT there; the page holds nothing like it",
    "not_stored": "unknown, as the page is not stored (`ingest` or `answer` store it)",
}
_LIVE = {
    "exact": "still on the page, at the same place",
    "moved": "still on the page, at another place",
    "reformatted": "still on the page, formatted differently",
    "changed": "changed; the page has a similar passage now",
    "absent": "not there; the page holds nothing like it",
    "gone": "gone; the site says that the page does not exist",
    "unreachable": "unknown, as the page could not be read",
    "unchecked": "not checked",
}
_VERBATIM = ("exact", "moved")
_SHOWN_CHARS = 1500


def format_verification(
    checks: Sequence[CitationCheck],
    *,
    nonce: str | None = None,
    refused: Mapping[int, str] = MappingProxyType({}),
) -> str:
    """One entry per quotation: what was given, and what each version of the page holds.

    Args:
        checks: In the order to print.
        nonce: Unpredictable token that frames page text; no frames when None.
        refused: Why citations were not checked, by their place in the call, from 1; `checks` holds
            the others.
    """
    total = len(checks)
    stored = sum(check.stored.state in _VERBATIM for check in checks)
    lines = ["[VERIFICATION]", f"{stored} of {total} are verbatim in the stored version."]
    asked = [check for check in checks if check.live.state not in ("unchecked", "unreachable")]
    if asked:
        live = sum(check.live.state in _VERBATIM for check in asked)
        lines.append(f"{live} of {len(asked)} are verbatim on the live page.")
    parts = ["\n".join(lines), frame_notice(nonce)]
    places = (number for number in count(1) if number not in refused)
    entries = {
        number: _entry(number, check, nonce) for number, check in zip(places, checks, strict=False)
    }
    entries |= {
        number: f"[{number}] Not checked: {one_line(refused[number])}" for number in refused
    }
    parts += [entry for _, entry in sorted(entries.items())]
    return "\n\n".join(part for part in parts if part)


def _entry(number: int, check: CitationCheck, nonce: str | None) -> str:
    citation = check.citation
    lines = [f"[{number}] {_url(check.url)}", f"    Given: {_quoted(citation.quote)}"]
    lines += _found("Stored", _STORED, check.stored, citation.quote, nonce=nonce)
    known = (citation.quote, check.stored.text)
    lines += _found("Live", _LIVE, check.live, *known, nonce=nonce)
    return "\n".join(lines)


def _found(
    name: str, words: dict[str, str], finding: Finding, *known: str | None, nonce: str | None
) -> Iterator[str]:
    when = "" if finding.seen_at is None else f" ({finding.seen_at:%Y-%m-%d %H:%M} UTC)"
    place = "" if finding.text is None else f" (chars {finding.char_start}-{finding.char_end})"
    reason = "" if finding.reason is None else f" ({one_line(finding.reason, max_chars=300)})"
    yield f"    {name}{when}: {words[finding.state]}{place}{reason}"
    if finding.text is None:
        return
    if finding.text in known:
        which = "as given" if finding.text == known[0] else "as in the stored version"
        yield f"    {name} text: {which}"
    else:
        yield f"    {name} text:\n{framed(_cut(finding.text), nonce)}"


def _quoted(text: str) -> str:
    return f'"{one_line(text, max_chars=_SHOWN_CHARS)}"'


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def _url(url: str) -> str:
    return "".join(one_line(url, max_chars=2000).split())
