"""A page's other versions: in Markdown, in other languages; it fetches none of them."""

from collections.abc import Sequence

from webrag.ingestion.links import site_of
from webrag.ingestion.models import Alternate, OutgoingLink

__all__ = ["markdown_version", "with_relations"]

_MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown"})


def markdown_version(alternates: Sequence[Alternate], url: str) -> str | None:
    """Return the address of a page's Markdown version, None when it names none on its own site."""
    for other in alternates:
        is_markdown = other.media_type.partition(";")[0].strip() in _MARKDOWN_TYPES
        if is_markdown and site_of(other.url) == site_of(url) and other.url != url:
            return other.url
    return None


def with_relations(
    links: tuple[OutgoingLink, ...],
    robots: tuple[str, ...],
    alternates: tuple[Alternate, ...],
    url: str,
) -> tuple[OutgoingLink, ...]:
    """Return links with what the page says of them elsewhere among their `rel`.

    `nofollow` when the page's robots directives ask for it, `alternate` for its own versions in
    other languages.

    Args:
        links: As the page's link elements describe them.
        robots: The page's directives.
        alternates: The page's other versions.
        url: The page itself.
    """
    is_nofollow = not {"nofollow", "none"}.isdisjoint(robots)
    versions = {other.url for other in alternates if other.language and other.url != url}
    if not is_nofollow and not versions:
        return links
    return tuple(_related(link, is_nofollow=is_nofollow, versions=versions) for link in links)


def _related(link: OutgoingLink, *, is_nofollow: bool, versions: set[str]) -> OutgoingLink:
    added = ["nofollow"] if is_nofollow else []
    added += ["alternate"] if link.url in versions else []
    rel = tuple(dict.fromkeys((*link.rel, *added)))
    return link if rel == link.rel else link.model_copy(update={"rel": rel})
