"""What tests read in the text of a brief."""

import re
from typing import Final

from webrag.presentation.brief.sections import QUOTED

_NUMBERS: Final = {
    sign: number
    for number, sign in enumerate("\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078", 1)
}


def quotations(brief: str) -> list[str]:
    """The quotations of a brief, in the order of their numbers."""
    found: dict[int, str] = {}
    for entry in re.split(r"(?=^\[\d\] chars)", brief, flags=re.M)[1:]:
        marked = re.findall("{}(.+?){}([{}]?)".format(*QUOTED, "".join(_NUMBERS)), entry, re.S)
        found |= {_NUMBERS.get(number, int(entry[1])): quote for quote, number in marked}
    return [quote for _, quote in sorted(found.items())]


def unmarked(brief: str) -> str:
    """The brief without the marks of its quotations and their numbers."""
    opened, closed = QUOTED
    return re.sub(f"{opened}|{closed}[{''.join(_NUMBERS)}]?", "", brief)
