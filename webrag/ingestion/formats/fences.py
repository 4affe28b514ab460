"""Puts text into Markdown as it is; it knows no languages."""

import re


def fenced(text: str, language: str = "") -> str:
    """A block of code that holds the text, in a fence longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
