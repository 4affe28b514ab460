import pytest

from webrag.ingestion.extract import page_language


@pytest.mark.parametrize(
    ("declared", "text", "language"),
    [
        (["en-GB"], "Text.", "en"),
        (["", "de_DE"], "Text.", "de"),
        (["und", "x", "fr"], "Texte.", "fr"),
        (["javascript"], "Text.", None),
        ([], "Text.", None),
        (["en"], "これは日本語の文章です。検索できるようにします。" * 4, "ja"),
        (["en"], "这是一个测试页面，用来检查语言的判断是否正确。" * 4, "zh"),
        ([], "이것은 시험 페이지입니다. 검색할 수 있어야 합니다. " * 4, "ko"),
        (["en"], "Съешь ещё этих мягких французских булок. " * 4, None),
        (["uk"], "Съешь ещё этих мягких французских булок. " * 4, "uk"),
        (["ja"], "import os\nprint(os.name)\n" * 20, "ja"),
        (["en"], "Le mot grec λόγος y est. " * 10, "en"),
    ],
)
def test_language_is_what_is_declared_unless_the_script_contradicts(
    declared: list[str], text: str, language: str | None
) -> None:
    assert page_language(declared, text) == language
