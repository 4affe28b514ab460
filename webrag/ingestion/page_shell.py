"""Puts content that comes without its page into a page of its own; it converts nothing."""

import html
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["PageFacts", "page_html"]


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What is known of a page beside its content; "" where nothing is.

    Attributes:
        language: BCP 47 tag.
        published_at: A date in any form a page may use.
        modified_at: The same.
        links: Targets that the content may not show, such as a menu's.
    """

    title: str = ""
    description: str = ""
    language: str = ""
    published_at: str = ""
    modified_at: str = ""
    links: tuple[str, ...] = ()


def page_html(content: str, facts: PageFacts) -> str:
    """A whole page, so that extraction treats the content like any other page's.

    Args:
        content: HTML of a page's body.
        facts: Go to the head; links to a menu after the content.
    """
    lang = f' lang="{html.escape(facts.language)}"' if facts.language else ""
    head = "".join(_head(facts))
    menu = "".join(f'<a href="{html.escape(url)}"></a>' for url in facts.links)
    return (
        f"<!doctype html><html{lang}><head>{head}</head><body><main>{content}</main>"
        f"<nav>{menu}</nav></body></html>"
    )


def _head(facts: PageFacts) -> Iterable[str]:
    if facts.title:
        yield f"<title>{html.escape(facts.title)}</title>"
    for attribute, name, value in (
        ("name", "description", facts.description),
        ("property", "article:published_time", facts.published_at),
        ("property", "article:modified_time", facts.modified_at),
    ):
        if value:
            yield f'<meta {attribute}="{name}" content="{html.escape(value)}">'
