"""Rows of an answer that are printed as one table."""

from uuid import UUID

import pytest

from webrag.answering.manager import part_text, whole_tables
from webrag.answering.models import AnswerCitation, AnswerPart

PAGE, OTHER = UUID(int=1), UUID(int=2)


def cited(number: int, page: UUID) -> AnswerCitation:
    return AnswerCitation.model_construct(number=number, document_id=page)


def rows(*texts: str) -> list[AnswerPart]:
    return [
        AnswerPart(text=text, kind="table", citations=(number,))
        for number, text in enumerate(texts, start=1)
    ]


def test_rows_of_a_page_stand_below_their_header() -> None:
    found = whole_tables(rows("Name | Port", "web | 80"), [cited(1, PAGE), cited(2, PAGE)])

    assert [(part.text, part.citations) for part in found] == [("Name | Port\nweb | 80", (1, 2))]


@pytest.mark.parametrize(
    ("row", "page"), [("Mars | 2", OTHER), ("Mars | 2 | red", PAGE)], ids=["page", "columns"]
)
def test_rows_of_another_table_stand_apart(row: str, page: UUID) -> None:
    found = whole_tables(rows("Name | Port", row), [cited(1, PAGE), cited(2, page)])

    assert [part.text for part in found] == ["Name | Port", row]


def test_row_of_a_table_in_a_quotation_is_printed_without_its_mark() -> None:
    part = AnswerPart(text="Name | Port\n> | web | 80 |", kind="table", citations=(1,))

    assert part_text(part) == "| Name | Port |\n| web | 80 |\n[1]"
