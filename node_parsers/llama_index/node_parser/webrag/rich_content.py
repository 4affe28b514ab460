"""What is special about a stretch of a page: kinds of content, images, the HTML it came from.

Combines the markdown's own structure with aligned HTML; cuts nothing.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urljoin

from .html_alignment import AlignedHtml
from .intervals import Intervals
from .metadata import FLAG_KEYS, LOSSY_FLAGS
from .outline import Image, Outline

__all__ = ["RichContent", "Stretch"]

# HTML may hold an image in a stretch that has no text of its own; file names are no description.
_FILE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif")
# Longer words about an image describe no picture, and every one of them is embedded.
_MAX_WORDS_CHARS = 2_000
_MAX_IMAGE_TEXT_CHARS = 8_000
_MAX_IMAGES_CHARS = 200_000
# Snippets repeat the tags around them: more than this is markup that nobody reads twice.
_MOST_HTML = 2
_LEAST_HTML_CHARS = 1_000_000


class Stretch:
    """Rich content of one range of the markdown.

    Attributes:
        flags: Every flag with its value.
        images: Images in page order, as plain dictionaries; those of a page of images, not all.
        image_text: Alternative texts and captions that the markdown itself does not show.
    """

    def __init__(self, flags: dict[str, bool], images: list[Image], text: str) -> None:
        self.flags = flags
        self.images: list[dict[str, Any]] = list(_described(images))
        words = dict.fromkeys(
            word for each in self.images for word in (each["alt"], each["caption"])
        )
        unseen = (word for word in words if _is_telling(word) and word not in text)
        self.image_text = ". ".join(_within(unseen, _MAX_IMAGE_TEXT_CHARS))

    @property
    def is_lossy(self) -> bool:
        """Whether markdown loses structure that HTML keeps."""
        return any(value and flag in LOSSY_FLAGS for flag, value in self.flags.items())


class RichContent:
    """Rich content of one page.

    Args:
        text: The markdown.
        outline: Its structure.
        html: The page's main content as HTML; None or empty when there is none.
        base_url: What relative image addresses of the HTML are resolved against.
    """

    def __init__(self, text: str, outline: Outline, html: str | None, base_url: str = "") -> None:
        self._text = text
        self._marks = {
            flag: Intervals((mark.start, mark.end) for mark in outline.marks if mark.flag == flag)
            for flag in FLAG_KEYS
        }
        self._aligned = AlignedHtml(html, outline.runs) if html else None
        self._images = self._all_images(outline, base_url)
        self._image_places = [image.position for image in self._images]
        self._html_left = _MOST_HTML * len(html or "") + _LEAST_HTML_CHARS

    def stretch(self, start: int, end: int, *, after: int) -> Stretch:
        """Rich content between two offsets.

        Args:
            start: First character.
            end: End of the text.
            after: Where the next stretch starts; images between `end` and it are this one's.
        """
        flags = {flag for flag, places in self._marks.items() if places.touches(start, end)}
        if self._aligned is not None:
            place = self._aligned.locate(start, end)
            flags |= self._aligned.flags(*place) if place else set()
        first = bisect_left(self._image_places, start)
        last = bisect_left(self._image_places, after)
        return Stretch(
            {flag: flag in flags for flag in FLAG_KEYS},
            self._images[first:last],
            self._text[start:end],
        )

    def html(self, start: int, end: int) -> str | None:
        """The HTML a stretch came from; None when that is unsure."""
        if self._aligned is None or self._html_left <= 0:
            return None
        place = self._aligned.locate(start, end)
        snippet = self._aligned.snippet(*place) if place else None
        self._html_left -= len(snippet or "")
        return snippet

    def _all_images(self, outline: Outline, base_url: str) -> list[Image]:
        images = list(outline.images)
        known = {urljoin(base_url, image.url) for image in images}
        if self._aligned is not None:
            for image, position in self._aligned.images():
                url = urljoin(base_url, image.url)
                if url not in known:
                    images.append(Image(url, image.alt, image.caption, position))
        return sorted(images, key=lambda image: image.position)


def _described(images: Iterable[Image]) -> Iterator[dict[str, Any]]:
    left = _MAX_IMAGES_CHARS
    for image in images:
        alt, caption = image.alt[:_MAX_WORDS_CHARS], image.caption[:_MAX_WORDS_CHARS]
        left -= len(alt) + len(caption) + len(image.url)
        if left < 0:
            return
        yield {"url": image.url, "alt": alt, "caption": caption, "position": image.position}


def _within(words: Iterable[str], most: int) -> Iterator[str]:
    for word in words:
        most -= len(word)
        if most < 0:
            return
        yield word


def _is_telling(words: str) -> bool:
    return len(words) > 2 and not words.lower().endswith(_FILE_ENDINGS)
