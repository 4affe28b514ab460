"""What a page is made of: units, headings, rich content, images, text. Finds none of it."""

from dataclasses import dataclass, field

from .lines import Unit
from .metadata import Flag

__all__ = ["Heading", "Image", "Mark", "Outline", "TextRun"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: where its line starts, its level and its plain text."""

    start: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of the page that has one kind of rich content."""

    start: int
    end: int
    flag: Flag


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the page; `position` is a character offset in its markdown."""

    url: str
    alt: str
    caption: str
    position: int


@dataclass(frozen=True, slots=True)
class TextRun:
    """Visible text between two block boundaries, with its place in the markdown."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class Outline:
    """What a page is made of, in page order."""

    units: list[Unit] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    runs: list[TextRun] = field(default_factory=list)
