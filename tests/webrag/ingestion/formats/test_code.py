from webrag.ingestion.formats.code import line_anchors


def line_of(source: str, text: str, words: str) -> int:
    offset = text.index(words)
    anchor = [each for each in line_anchors(source, text) if each.char_start <= offset][-1]
    return int(anchor.fragment[1:]) + text.count("\n", anchor.char_start, offset)


def test_few_words_that_stand_again_far_below_mislead_nothing_after_them() -> None:
    filler = "".join(f"Line {number} is about something else.\n" for number in range(200))
    source = (
        f"Head\n\nA line that reads otherwise.\n\nMiddle words.\n\n{filler}Commit object, again.\n"
    )
    text = f"Head\n\nCommit object\n\nMiddle words.\n\n{filler}Commit object, again."

    assert line_of(source, text, "Middle words") == 5
    assert line_of(source, text, "Line 150") == 157


def test_roles_of_words_do_not_hide_the_lines_they_stand_in() -> None:
    source = "Head\n====\n\nThe :py:meth:`run` of it\nand linkgit:prune[1]\nin the third line.\n"
    text = "# Head\n\nThe `run` of it and prune(1) in the third line."

    assert [line_of(source, text, each) for each in ("The", "prune", "third")] == [4, 5, 6]
