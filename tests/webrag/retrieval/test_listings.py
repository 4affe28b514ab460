"""The part of a source listing that can be cited, without the numbers of its lines."""

import pytest

from webrag.retrieval.markup import longest_piece

CODE = [
    line
    for number in range(12)
    for line in (
        f"/* Closes gate {number} of the harbour when the tide is high. */",
        f"static int close_gate_{number}(struct gate *gate)",
        "{",
        "    gate->closed = 1;",
        "    return GATE_OK;",
        "}",
        "",
    )
][:-1]
PROSE = "\n\n".join(
    f"Gate {number} is closed by hand when the tide is high, and opened again two hours later, "
    "unless the harbour master says otherwise; a note in the log of the day tells who did it."
    for number in range(8)
)


def numbered(lines: list[str]) -> str:
    return " \n".join(lines)


def fenced(code: str, language: str = "") -> str:
    return f"```{language}\n{code}\n```"


HEAD = "# gates.c Source File\n\n"
PLAIN = "\n".join(CODE)
LISTINGS = {
    "numbered": HEAD + fenced(numbered(CODE)),
    "numbered, with a language": HEAD + fenced(numbered(CODE), "c"),
    "numbered, cut at its end": HEAD + "```\n" + numbered(CODE),
    "numbered, cut at its start": numbered(CODE) + " \n```",
    "numbered, its middle": numbered(CODE),
    "cut at its end": HEAD + "```c\n" + PLAIN,
    "cut at its start": PLAIN + "\n```",
    "its middle": PLAIN,
    "its middle, in Python": "\n".join(
        f"def gate_{number}(tide):\n    # Closes it.\n    return tide > {number}\n"
        for number in range(12)
    ),
    "Windows line ends": HEAD + "```c\r\n" + "\r\n".join(CODE),
}
DOCUMENTATION = {
    "prose": PROSE,
    "prose with a listing": f"{PROSE}\n\n{fenced(numbered(CODE[:14]))}",
    "prose with an example": f"{PROSE}\n\n{fenced(PLAIN, 'c')}",
    "examples with a sentence each": "\n\n".join(
        f"The tide {place} decides whether the gate is closed, and the master may say otherwise at "
        f"any time of the day:\n\n{fenced(chr(10).join(CODE[:6]), 'c')}"
        for place in range(6)
    ),
    "long example": f"# Closing all gates\n\n{fenced(PLAIN, 'c')}",
    "short numbered example": f"# Closing a gate\n\n{fenced(numbered(CODE[:7]))}",
    "example that is cut": f"{PROSE}\n\n```c\n" + "\n".join(CODE[:20]),
    "indented example": PROSE + "\n\n" + "\n".join(f"    {line}" for line in CODE[:20]),
    "list of options": "\n".join(f"- `--gate-{n}` closes gate {n} at once." for n in range(30)),
}


@pytest.mark.parametrize("text", LISTINGS.values(), ids=LISTINGS)
def test_piece_of_a_listing_holds_no_line_number(text: str) -> None:
    start, end = longest_piece(text)
    if " \n" in text:
        assert " \n" not in text[start:end]
        assert len(text[start:end].split()) > 5
    else:
        assert (start, end) == (0, len(text))


def test_piece_of_documentation_is_all_of_it() -> None:
    for text in DOCUMENTATION.values():
        if " \n" not in text:
            assert longest_piece(text) == (0, len(text))


def test_blanks_at_the_ends_of_a_few_lines_are_no_line_numbers() -> None:
    text = fenced(
        "\n".join(["one = 1 ", "two = 2", "three = 3 ", "four = 4", "five = 5", "six = 6"])
    )
    assert longest_piece(text) == (0, len(text))


def test_prose_beside_a_numbered_listing_is_the_piece() -> None:
    text = f"{PROSE}\n\n{fenced(numbered(CODE[:6]))}"
    start, end = longest_piece(text)
    assert text[start:end].startswith("Gate 0 is closed")
    assert " \n" not in text[start:end]
