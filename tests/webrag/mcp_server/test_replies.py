from pydantic import BaseModel

from webrag.mcp_server.replies import Reply, within_budget


class Given(BaseModel):
    a: int


def test_errors_carry_no_structured_content() -> None:
    assert (
        Reply("no", is_error=True, data=Given(a=1)).result(structured=True).structured_content
        is None
    )


def test_text_comes_first_and_alone_unless_more_is_asked_for() -> None:
    result = Reply("text", data=Given(a=1)).result(structured=False)

    assert [block.type for block in result.content] == ["text"]
    assert result.structured_content is None


def test_report_within_its_budget_is_left_as_it_is() -> None:
    assert within_budget("one\ntwo", 100, len, hint="ask for less") == "one\ntwo"


def test_report_beyond_its_budget_loses_whole_lines_from_its_end_and_says_so() -> None:
    lines = [f"line {number}" for number in range(100)]

    kept = within_budget("\n".join(lines), 300, len, hint="ask for less").split("\n")

    assert len("\n".join(kept)) <= 300
    assert kept[:-1] == lines[: len(kept) - 1]
    assert kept[-1] == "... (cut to fit the response budget; ask for less)"
