from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.retrieval.units import cut_units

PAGE = """\
# Kiln

Kiln bakes recipes. It keeps going after an error. Use it as follows:

```
kiln --keep-going
kiln all
```

| Name | Default |
|---|---|
| port | 5432 |
| jobs | 4 |

The options are:

- `--fast`: skips checks. They take long.
- `--slow`

`--jobs`  \nRun so many recipes at once. The default is 4.

How is it stopped?

Send the signal TERM.
"""


def units(text: str, **options: int) -> list[tuple[str, str | None]]:
    """Each unit with what leads to it."""
    cut = cut_units(text, **options)
    leads = [None if each.lead is None else cut.pieces[each.lead] for each in cut.units]
    return [
        (text[each.start : each.end], lead and text[lead.start : lead.end])
        for each, lead in zip(cut.units, leads, strict=True)
    ]


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param(("Kiln bakes recipes.", None), id="sentence"),
        pytest.param(
            ("Kiln bakes recipes. It keeps going after an error.", None), id="sentences in a row"
        ),
        pytest.param(("kiln --keep-going\nkiln all", "Use it as follows:"), id="code"),
        pytest.param(("port | 5432", "Name | Default"), id="row below its header"),
        pytest.param(("`--fast`: skips checks. They take long.", "The options are:"), id="item"),
        pytest.param(
            ("`--fast`: skips checks. They take long.\n- `--slow`", "The options are:"), id="list"
        ),
        pytest.param(("Run so many recipes at once.", "`--jobs`"), id="definition"),
        pytest.param(("Send the signal TERM.", "How is it stopped?"), id="answer to a question"),
    ],
)
def test_unit_comes_with_what_names_its_subject(unit: tuple[str, str | None]) -> None:
    assert unit in units(PAGE)


@pytest.mark.parametrize("text", ["# Kiln", "Use it as follows:", "Name | Default", "`--jobs`"])
def test_what_only_introduces_is_no_unit(text: str) -> None:
    assert text.lstrip("# ") not in [unit for unit, _ in units(PAGE)]


def test_last_sentence_of_a_paragraph_is_joined_with_the_first_of_the_next() -> None:
    told = "The queue is full.\n\nThis happens at night. Restart it."

    assert ("The queue is full.\n\nThis happens at night.", None) in units(told)


@pytest.mark.parametrize("following", ["These ways lead out of it now:", "Is the disk full?"])
def test_a_sentence_is_not_joined_with_what_introduces_something_else(following: str) -> None:
    told = f"The queue is full.\n\n{following}\n\nRestart the server."

    assert not any("queue" in unit and following in unit for unit, _ in units(told))


def test_sentence_that_announces_the_next_paragraph_is_only_quoted_with_it() -> None:
    told = "To see a list of the packages that are installed on this machine, run:"
    cut = [unit for unit, _ in units(f"Packages are kept apart. {told}\n\nkiln pkg show")]

    assert f"{told}\n\nkiln pkg show" in cut
    assert not [unit for unit in cut if unit.endswith(":")]


def test_sentence_above_a_question_is_quoted_though_it_ends_like_an_announcement() -> None:
    told = "Tell the oven to ignore the clock of that kitchen: clock=11:22,id:*"

    assert (told, None) in units(f"It has a clock. {told}\n\nWhich networks are there for it?")


def test_definition_of_several_terms_stands_below_all_of_them() -> None:
    assert ("Runs it. It ends.", "-a  \n--all") in units("-a  \n--all  \nRuns it. It ends.")


@pytest.mark.parametrize(
    "term", ["`fire [path ...]`", f"`{'--kiln NAME | ' * 6}--all`"], ids=["argument", "long"]
)
def test_code_alone_above_its_definition_names_it(term: str) -> None:
    assert units(f"{term}  \nFires what is named.") == [("Fires what is named.", term)]


def test_paragraphs_of_a_definition_stand_below_its_term_together() -> None:
    text = "`--all`  \nFires all kilns.\n\nNone is left out then."

    assert ("Fires all kilns.\n\nNone is left out then.", "`--all`") in units(text)


def test_code_that_a_sentence_announces_names_nothing_below_it() -> None:
    told = "You can leave the file out by this option:"
    found = units(f"{told}\n\n> `--nofile`\n\nThe file is called kiln.cfg. It is small.")

    assert ("`--nofile`", told) in found
    assert ("The file is called kiln.cfg. It is small.", None) in found


def test_name_with_a_colon_leads_to_the_lines_below_it() -> None:
    assert units("**Returns:**  \nthe loaf") == [("the loaf", "**Returns:**")]


def test_marked_name_leads_to_all_short_lines_below_it() -> None:
    text = "**heat**=*number*  \nHeat of the oven  \nDefault: *200*"

    assert [lead for _, lead in units(text)] == ["**heat**=*number*"] * 2


@pytest.mark.parametrize("mark", ["[required]", "**[required]**"])
def test_marked_name_leads_to_its_definition_whatever_bracket_it_ends_with(mark: str) -> None:
    name = f"**heat**=*number* {mark}"

    assert units(f"{name}  \nHeat of the oven.") == [("Heat of the oven.", name)]


@pytest.mark.parametrize("line", ["It bakes loaves[3]", "Kiln of clay [edit]"])
def test_line_that_ends_with_a_note_or_a_control_names_nothing(line: str) -> None:
    assert ("Heat of the oven.", line) not in units(f"{line}  \nHeat of the oven.")


def test_definition_is_not_quoted_with_the_next_term() -> None:
    text = "**heat**  \nDefault: 200.\n\n**time**  \nMinutes that it bakes."

    assert [unit for unit, _ in units(text)] == ["Default: 200.", "Minutes that it bakes."]


def test_columns_set_with_tabs_are_quoted_by_their_lines() -> None:
    lines = ["loaf\tthe bread that is baked here", "oven\twhat the loaf is baked in"]

    cut = units("```\n" + "\n".join(lines) + "\n```")

    assert [unit for unit, _ in cut] == [lines[0], "\n".join(lines), lines[1]]


def test_code_that_opens_brackets_ends_where_they_are_closed() -> None:
    code = "bake(\n    loaf,\n    minutes=40,\n)\nprint(loaf)"
    cut = [unit for unit, _ in units(f"```\n{code}\n```")]

    assert "bake(\n    loaf,\n    minutes=40,\n)" in cut
    assert "bake(" not in cut


def test_code_that_closes_its_brackets_too_far_below_is_cut() -> None:
    assert "bake(" in [unit for unit, _ in units("```\nbake(\n  loaf\n)\n```", max_chars=8)]


def test_each_of_many_short_lines_is_a_unit() -> None:
    lines = ["Deposit: 1500", "Power: by use", "Phone: free"]

    assert units("  \n".join(lines)) == [(line, None) for line in lines]


def test_sentence_that_says_much_is_a_unit_although_it_introduces_a_listing() -> None:
    told = "To keep the old way of signing in, call use_auth() for each host:"

    assert (told, None) in units(f"{told}\n\n```\nuse_auth(host);\n```\n")


@pytest.mark.parametrize("told", ["This command heats the oven to the end.", "窯を温めます。"])
def test_sentence_right_above_a_listing_leads_to_it_without_a_colon(told: str) -> None:
    found = units(f"The oven is cold. {told}\n\n```\nkiln --heat\n```\n")

    assert {("kiln --heat", told), (told, None)} <= {*found}


def test_sentence_above_what_stands_between_it_and_a_listing_does_not_lead_to_that() -> None:
    found = units("It heats the oven.\n\n- Gloves are in the box.\n\n```\nkiln --heat\n```\n")

    assert ("kiln --heat", None) in found


def test_what_leads_to_a_list_does_not_lead_to_what_follows_it() -> None:
    text = "The drawbacks of the oven are:\n\n- It is slow.\n- It is hot.\n\nIt bakes bread well."

    assert ("It bakes bread well.", None) in units(text)
    assert ("It is hot.", "The drawbacks of the oven are:") in units(text)


def test_line_that_states_a_fact_is_a_unit_and_leads_to_nothing() -> None:
    found = units("Ships in a drum.\n\nFlash point: 118 °C\n\n50 lb bag\n")

    assert ("Flash point: 118 °C", None) in found
    assert ("50 lb bag", None) in found


def test_row_with_lines_in_its_cells_is_one_unit() -> None:
    found = units("| Mode | Step |\n|---|---|\n| grams<br>from 900 g | 5 g<br>10 g |\n")

    assert found == [("grams<br>from 900 g | 5 g<br>10 g", "Mode | Step")]


def test_sentence_that_goes_on_in_a_list_leads_to_it_and_is_no_unit() -> None:
    begun = "Whoever wants to fire pots in the kiln of the town on a day of rest must"
    found = units(f"It is hot.\n\n{begun}\n\n- ask the warden\n- bring wood")

    assert ("ask the warden\n- bring wood", begun) in found
    assert not any(text.endswith(begun) for text, _ in found)


def test_question_above_its_answer_is_no_unit() -> None:
    asked = "How can I make the server listen on another port than this one?"

    assert asked not in [unit for unit, _ in units(f"{asked}\n\nSet listen_port.")]


def test_prose_with_fixed_line_ends_is_cut_into_sentences() -> None:
    law = (
        "The Secretary shall decide for each poll whether all\n    may change. Q is half of\n"
        "    the square root of the number of all the members. It\n    is never rounded up or down."
    )

    assert ("Q is half of\n    the square root of the number of all the members.", None) in units(
        f"```\n    {law}\n```"
    )


def test_lines_of_columns_are_units() -> None:
    table = "sizeof\tright to left\n== !=\tleft to right"

    assert ("sizeof\tright to left", None) in units(table)


def test_emphasis_merges_no_sentences() -> None:
    assert ("*The limit is 8.", None) in units("*The limit is 8. Nothing else counts.*")


def test_short_emphasis_within_a_paragraph_is_quoted_with_all_its_marks() -> None:
    question = "**Is the bus accessible? If not, what is done?**"

    found = [unit for unit, _ in units(f"{question} A taxi is called.")]

    assert f"{question} A taxi is called." in found
    assert not any(unit.count("**") % 2 for unit in found)


def test_unit_is_no_longer_than_allowed_and_cut_between_words() -> None:
    found = [unit for unit, _ in units("word " * 300, max_chars=40)]

    assert all(len(unit) <= 40 and set(unit.split()) == {"word"} for unit in found)
    assert found


@pytest.mark.parametrize("text", ["", "\n\n", "---", "<div>only markup</div>", "| | |\n|--|--|"])
def test_text_without_words_has_no_unit(text: str) -> None:
    assert units(text) == []


def test_term_and_definition_are_not_one_piece() -> None:
    text = "fit(X, y)  \nIncremental fit on a batch of samples."

    assert units(text) == [("Incremental fit on a batch of samples.", "fit(X, y)")]


@pytest.mark.parametrize(
    "sentence",
    [
        "Give a <pathspec> to limit the paths that are shown.",
        "A Map<String, List<T>> keeps the paths that are shown.",
        "Show the <object> and the paths that are shown.",
        "Set **listen_port** in the file, e.g. in `etc/server. conf`, to\nchange it.",
    ],
)
def test_signs_within_a_sentence_do_not_cut_it(sentence: str) -> None:
    assert (sentence, None) in units(f"{sentence}\n\nOther.")


def test_sentences_end_without_a_blank_in_scripts_without_blanks() -> None:
    assert ("端口可以修改。", None) in units("服务器启动。端口可以修改。其他。")


def test_row_without_a_first_cell_stands_below_the_row_that_it_goes_on_from() -> None:
    rows = "| int | usb_init (context *ctx) |\n|  | Starts it. |\n| void | usb_exit () |"

    assert ("Starts it.", "int | usb_init (context *ctx)") in units(f"|  |  |\n|--|--|\n{rows}")


def test_each_of_several_short_paragraphs_stands_below_none_of_the_others() -> None:
    codes = ["TIMEOUT if the transfer timed out", "PIPE if the endpoint halted", "BUSY otherwise"]

    cut = units("\n\n".join([*codes, "It does not block."]))
    assert {lead for _, lead in cut} == {None}
    assert {*codes, "It does not block."} <= {unit for unit, _ in cut}


def test_short_paragraph_is_also_quoted_with_the_one_above_it() -> None:
    cut = units("Width\n\n45 cm\n\nHeight\n\n90 cm")

    assert {("Width\n\n45 cm", None), ("Height\n\n90 cm", None), ("90 cm", None)} <= set(cut)


def test_name_in_emphasis_leads_to_a_short_paragraph_without_any() -> None:
    cut = dict(units("**Width**\n\n45 cm\n\n**Height**\n\n90 cm"))

    assert (cut["45 cm"], cut["90 cm"]) == ("**Width**", "**Height**")


def test_paragraph_that_ends_with_a_comma_names_nothing() -> None:
    rules = "Music may be played until 9 p.m.:\n\na) on Saturdays,\n\nb) on holidays."

    cut = dict(units(rules))
    assert cut["a) on Saturdays,"] == "Music may be played until 9 p.m.:"
    assert cut["b) on holidays."] is None


def test_call_over_several_lines_is_not_cut_within_its_brackets() -> None:
    told = "int\nusb_open (\n  device *dev,\n  handle **out\n)\nused = 1;"

    cut = [unit for unit, _ in units(f"```\n{told}\n```")]
    assert "usb_open (\n  device *dev,\n  handle **out\n)" in cut
    assert not [unit for unit in cut if unit.count("(") > unit.count(")")]


def test_rows_that_have_lost_their_header_are_units() -> None:
    rows = "| listen_port | 5432 |\n| listen_backlog | 128 |\n"

    assert units(rows) == [("listen_port | 5432", None), ("listen_backlog | 128", None)]


def test_row_of_several_lines_is_a_unit() -> None:
    row = "max_width | Signs in a line.<br>By default 1024."

    assert units(f"| {row} |\n| b | c |\n") == [(row, None), ("b | c", None)]


def test_name_in_a_long_row_leads_to_the_lines_beside_it() -> None:
    row = "| max_width | Signs in a line.<br>By default 1024. |\n| b | c |\n"
    cut = cut_units(row, max_chars=20)
    name = row.index("max_width")

    assert [row[each.start : each.end] for each in cut.units][:2] == [
        "Signs in a line.",
        "By default 1024.",
    ]
    assert [cut.pieces[each.lead or 0].start for each in cut.units[:2]] == [name, name]


def test_header_row_is_a_unit_where_the_body_of_its_table_is_missing() -> None:
    assert units("| Type | Frames |\n|---|:-:|\n") == [("Type | Frames", None)]


@pytest.mark.parametrize(
    "text",
    [
        "> *a one.\n> b two* and\n> more",
        "> x **a\n> b** c. D e",
        "> [a b\n> c d](u) e",
        "> ~~a\n> b~~ *c\n> d*",
        "> **a *b\n> c* d**\n> e",
        "> - *a\n>   b*",
        "- x\n\n  > *a\n  > b* `c\n  > d` e",
        "> > *a\n> > b*\n> c",
    ],
)
def test_pieces_of_markup_that_goes_on_in_the_next_line_do_not_overlap(text: str) -> None:
    pieces = cut_units(text).pieces

    assert all(left.end <= right.start for left, right in pairwise(pieces))
    assert all(text[each.start : each.end].strip() for each in pieces)


@given(text=st.text(alphabet="ab.*_`~[]()>|- \n#<\\", max_size=60))
def test_pieces_never_overlap(text: str) -> None:
    pieces = cut_units(text).pieces

    assert all(left.end <= right.start for left, right in pairwise(pieces))


LINES = st.sampled_from(
    ["A sentence. Another one.", "- item", "1. step:", "| a | b |", "|---|---|", "```", "# head",
     "    code", "term  ", "> quoted", "", "Why?", "<b>x</b>", "日本語です。次の文。"]
)  # fmt: skip


@given(st.lists(LINES, max_size=25).map("\n".join), st.integers(1, 60))
def test_units_are_parts_of_the_text_made_of_their_pieces(text: str, most: int) -> None:
    cut = cut_units(text, max_chars=most)

    for unit in cut.units:
        assert 0 <= unit.start < unit.end <= len(text)
        assert unit.end - unit.start <= most
        assert cut.pieces[unit.first].start <= unit.start
        assert unit.end <= cut.pieces[unit.last - 1].end
        assert any(char.isalnum() for char in text[unit.start : unit.end])
        assert all(each.kind != "heading" for each in cut.pieces[unit.first : unit.last])


NAMED_ITEMS = """\
The options are:

- **kiln.jobs**

  - description: number of recipes at once
  - default value: `4`

- **kiln.heat**

  - description: degrees at the start
  - default value: `900`

- `fire [path ...]`

  Use this to fire what is named. It takes hours.
"""


@pytest.mark.parametrize(
    "unit",
    [
        (
            "description: degrees at the start\n  - default value: `900`",
            "**kiln.heat**",
        ),
        ("default value: `4`", "**kiln.jobs**"),
        ("Use this to fire what is named.", "`fire [path ...]`"),
    ],
)
def test_name_of_an_item_leads_to_the_list_or_paragraph_within_it(unit: tuple[str, str]) -> None:
    assert unit in units(NAMED_ITEMS)


def test_no_list_goes_on_over_a_rule() -> None:
    text = "Related words:\n\n- the kiln\n- the oven\n\n---\n\n1. Cold fire\n2. Warm fire"

    assert ("the kiln\n- the oven", "Related words:") in units(text)
    assert ("Cold fire\n2. Warm fire", None) in units(text)
    assert not [unit for unit, _ in units(text) if "---" in unit]


def test_no_unit_goes_on_from_the_parts_of_one_item_to_the_next() -> None:
    assert not [text for text, _ in units(NAMED_ITEMS) if "`4`" in text and "heat" in text]


@pytest.mark.parametrize("line", ["the text", "None", "`url` - the address  \n`wait` - seconds"])
def test_short_line_with_a_colon_leads_to_all_lines_below_it(line: str) -> None:
    expected = [(each, "Returns:") for each in line.split("  \n")]

    assert units(f"Returns:  \n{line}") == expected


@pytest.mark.parametrize("title", ["Example 4.20. Using", "2. Prices", "IV. Prices", "a. Prices"])
def test_line_in_emphasis_is_quoted_with_all_its_marks(title: str) -> None:
    page = f"**{title}**\n\nIt removes points within a foot."

    assert all(text.count("**") % 2 == 0 for text, _ in units(page))


AFTER_AN_ITEM = """\
- **kiln.jobs**

  How many recipes may be fired at once.

The following commands are allowed in a kiln:

- open the door slowly
- fire the whole kiln again
"""
AFTER_A_STEP = """\
1. **Install**

   Get the package from the shop.

## Next

Pick one of these modes:

- fire the whole kiln at once
- fire one shelf of it alone
"""


@pytest.mark.parametrize(
    ("text", "item", "lead"),
    [
        (
            AFTER_AN_ITEM,
            "open the door slowly",
            "The following commands are allowed in a kiln:",
        ),
        (AFTER_A_STEP, "fire the whole kiln at once", "Pick one of these modes:"),
    ],
)
def test_list_after_an_item_with_parts_has_its_own_lead(text: str, item: str, lead: str) -> None:
    found = units(text)

    assert (item, lead) in found
    assert lead not in [unit for unit, _ in found]


@pytest.mark.parametrize("figure", ["9600.", "2003."])
def test_figure_at_the_beginning_of_a_line_ends_its_sentence(figure: str) -> None:
    told = (
        "The variable's numeric value is used for it.  If no value  is  found,  kiln  uses\n"
        f"       {figure}  This allows testers to construct repeatable cases."
    )
    sentence = f"If no value  is  found,  kiln  uses\n       {figure}"

    assert (sentence, None) in units(f"```\n       {told}\n```")


@pytest.mark.parametrize("prompt", ["gap>", "user@kiln:~$", "In [3]:", "bash-5.2#"])
def test_prompt_alone_is_no_unit(prompt: str) -> None:
    found = [unit for unit, _ in units(f"```\n{prompt}\n\n{prompt} quit;\n```\n")]

    assert f"{prompt} quit;" in found
    assert prompt not in found


@pytest.mark.parametrize(
    ("text", "instruction"),
    [
        (
            "- Delete the lock file and restart\n  - on Debian only\n",
            "Delete the lock file and restart",
        ),
        ("1. Open the settings menu\n\n   It is at the top.\n", "Open the settings menu"),
    ],
)
def test_item_in_plain_words_is_quoted_with_or_without_what_stands_below_it(
    text: str, instruction: str
) -> None:
    assert instruction in [text[unit.start : unit.end] for unit in cut_units(text).units]


CAPTION = "**Example 2.2. Use of the oven.**"


@pytest.mark.parametrize("above", ["`kiln all`", "It bakes."])
def test_caption_in_bold_belongs_to_what_follows_it(above: str) -> None:
    found = units(f"{above}\n\n{CAPTION}\n\n`kiln bread`")

    assert ("`kiln bread`", CAPTION) in found
    assert not any(CAPTION in unit for unit, _ in found)


def test_announcement_above_a_caption_leads_to_what_has_the_caption() -> None:
    found = units(f"It is used so:\n\n{CAPTION}\n\n`kiln bread`")

    assert found == [("`kiln bread`", "It is used so:")]


def test_sentences_on_lines_of_their_own_are_quoted_together() -> None:
    lines = "Run **kiln -w** in a window.  \nIt shows what it bakes.  \nPress Ctrl-C to stop it."

    assert (lines, None) in units(lines)


def test_question_of_several_sentences_in_bold_leads_to_its_answer() -> None:
    question = "**The oven stops with an error! How is it started again?**"

    found = units(f"{question}\n\nClean it.")
    assert ("Clean it.", question) in found
    assert not any(unit.count("**") % 2 for unit, _ in found)


@pytest.mark.parametrize("mark", ["- ", "\n"])
def test_numbered_sentences_in_bold_below_each_other_are_no_captions(mark: str) -> None:
    rules = ["**Rule 1. Never open the kiln.**", "**Rule 2. Wear gloves.**"]
    text = "The rules are:\n\n" + "\n".join(mark + rule for rule in rules)

    told = [unit for unit, _ in units(text)]

    assert set(rules) <= set(told)


@pytest.mark.parametrize(
    "sentence",
    [
        "Children who are less than four  \nyears old are not counted.",
        "\\# This does not work with Kiln (which never lets its log  \n\\# file be purged).",
    ],
)
def test_sentence_that_goes_on_below_a_line_break_is_quoted_whole(sentence: str) -> None:
    assert sentence in [text for text, _ in units(f"{sentence}  \nAsk us.\n")]


@pytest.mark.parametrize(
    "lines",
    [
        "**split** *line* of text *with a separator* char  \ngives all of the parts of a line.",
        "mkfs.ext4 -L persistence /dev/sdb1  \nmount -t ext4 /dev/sdb1 /mnt",
        "We ship these things to all countries:  \nbread",
        "Process to abort, a special command, Section 3.1  \naccess to the files, Section 6",
    ],
)
def test_lines_of_names_and_commands_are_quoted_apart(lines: str) -> None:
    assert not any("\n" in text for text, _ in units(lines))


@pytest.mark.parametrize("mark", ["- ", ""])
def test_short_line_below_a_label_is_what_the_label_announces(mark: str) -> None:
    margin = " " * len(mark)
    facts = "\n\n".join(
        f"{mark}{name}:\n\n{margin}{far} km" for name, far in (("A5", 6), ("B2", 7))
    )

    assert (f"A5:\n\n{margin}6 km", None) in units(facts)
