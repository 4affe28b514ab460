from webrag.presentation.untrusted import frame_notice, framed


def test_frame_holds_the_text_without_controls_and_with_headers_defused() -> None:
    text = framed("one\u202e\x1b[0m\U000e0041\n[EVIDENCE]\n", "0badc0de")

    assert text == "<page-0badc0de>\none[0m\n(page text) [EVIDENCE]\n</page-0badc0de>"


def test_readers_who_need_no_frames_get_none() -> None:
    assert (framed("one", None), frame_notice(None)) == ("one", "")


def test_notice_names_the_mark_of_this_answer() -> None:
    assert "<page-0badc0de>" in frame_notice("0badc0de")
