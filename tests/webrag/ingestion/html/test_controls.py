# ruff: noqa: E501 - the pages' lines are long
"""Text that readers see though its element is a control, a picture, a template or a form."""

from collections.abc import Callable

import pytest

from webrag.errors import UnusablePageError
from webrag.ingestion.models import NormalizedDocument

Convert = Callable[..., NormalizedDocument]

PROSE = "<p>The station keeps a record of every delivery, and the record is read out at noon.</p>"


@pytest.fixture
def shown(convert: Convert) -> Callable[[str], str]:
    def show(html: str) -> str:
        page = f"<title>T</title><script src=a.js></script><main><h1>T</h1>{PROSE}{html}</main>"
        return convert(page).markdown.partition("at noon.")[2].strip()

    return show


QUESTIONS = {
    "bootstrap": "<h2><button data-bs-toggle=collapse data-bs-target=#c>Who pays?</button></h2>"
    "<div id=c class='collapse'>The buyer.</div>",
    "aria": "<h3><button aria-expanded=true aria-controls=c>Who pays?</button></h3><section id=c><p>The buyer.</p></section>",
    "govuk": "<h2><button aria-controls=c><span>Who pays?</span></button></h2><div id=c hidden=until-found><p>The buyer.</p></div>",
    "definition list": "<dl><dt><button aria-controls=c>Who pays?</button></dt><dd id=c>The buyer.</dd></dl>",
    "own element": "<div><button aria-controls=c>Who pays?</button><fold-text id=c><p>The buyer.</p></fold-text></div>",
    "followed by its text": "<button aria-expanded=false>Who pays?</button><div><p>The buyer.</p></div>",
    "known by its class": "<div><button class=faq-question>Who pays?</button></div><div class=faq-answer>The buyer.</div>",
    "summary": "<details open><summary><button>Who pays?</button></summary>The buyer.</details>",
    "button around a heading": "<button aria-controls=c><h3>Who pays?</h3></button><div id=c>The buyer.</div>",
}


@pytest.mark.parametrize("html", QUESTIONS.values(), ids=QUESTIONS)
def test_heading_that_is_a_button_stands_above_its_text(
    shown: Callable[[str], str], html: str
) -> None:
    text = shown(html)

    assert -1 < text.find("Who pays?") < text.find("The buyer.")
    assert not any(line.strip() == "#" * len(line.strip()) for line in text.splitlines() if line)


CONTROLS = {
    "menu": "<button aria-controls=c>Menu</button><div id=c>Kept words.</div>",
    "links": "<button aria-controls=c>Products</button><ul id=c><li><a href=/a>Kept words.</a></ul>",
    "order": "<button>Order now</button><p>Kept words.</p>",
    "copy": "<p>Kept words. <button>Copy</button></p>",
    "beside a heading": "<h2>A heading <button>Link</button></h2><p>Kept words.</p>",
}


@pytest.mark.parametrize("html", CONTROLS.values(), ids=CONTROLS)
def test_button_that_only_does_something_is_no_text(shown: Callable[[str], str], html: str) -> None:
    text = shown(html)

    assert "Kept words." in text
    assert not any(label in text for label in ("Menu", "Products", "Order", "Copy", "Link"))


TABS = {
    "roles": "<div role=tablist><button role=tab aria-controls=p1>Linux</button><button role=tab aria-controls=p2>Windows</button></div>"
    "<div role=tabpanel id=p1>{}</div><div role=tabpanel id=p2 hidden>{}</div>",
    "panels name their tabs": "<div role=tablist><button role=tab id=a>Linux</button><button role=tab id=b>Windows</button></div>"
    "<div role=tabpanel aria-labelledby=a>{}</div><div role=tabpanel aria-labelledby=b hidden>{}</div>",
    "links": "<ul><li><a href=#q1 data-toggle=tab>Linux</a></li><li><a href=#q2 data-toggle=tab>Windows</a></li></ul>"
    "<div id=q1>{}</div><div id=q2>{}</div>",
    "foundation": "<ul data-tab><li><a href=#f1>Linux</a></li><li><a href=#f2>Windows</a></li></ul>"
    "<div><div id=f1>{}</div><div id=f2>{}</div></div>",
    "order alone": "<div><ul role=tablist><li role=tab>Linux</li><li role=tab>Windows</li></ul>"
    "<div><div role=tabpanel>{}</div><div role=tabpanel hidden>{}</div></div></div>",
    "mkdocs": "<div class=tabbed-set><input type=radio><input type=radio><div class=tabbed-labels><label>Linux</label><label>Windows</label></div>"
    "<div class=tabbed-content><div class=tabbed-block>{}</div><div class=tabbed-block>{}</div></div></div>",
}


@pytest.mark.parametrize("html", TABS.values(), ids=TABS)
def test_label_of_a_tab_stands_above_its_panel(shown: Callable[[str], str], html: str) -> None:
    text = shown(html.format("<pre>apt install x</pre>", "<pre>choco install x</pre>"))

    assert text == (
        "**Linux**\n\n```\napt install x\n```\n\n**Windows**\n\n```\nchoco install x\n```"
    )


CELLS = {
    "picture": ("<img src=y alt=Included>", "Included"),
    "emoji": ("<img class=emoji src=y alt='✅'>", "✅"),
    "named drawing": ("<svg role=img aria-label=Included><path/></svg>", "Included"),
    "title of a drawing": ("<svg><title>Included</title><path/></svg>", "Included"),
    "title of an icon": ("<i class=icon title=Included></i>", "Included"),
    "role": ("<span role=img aria-label=Included></span>", "Included"),
    "words read out": ("<i class=icon aria-hidden=true></i><span class=sr-only>Included</span>", "Included"),
    "icon of a font": ("<i class='fa fa-check'></i>", "✓"),
    "its opposite": ("<span class='bi bi-x x-mark'></span>", "✗"),
    "decoration": ("<img src=y alt=''>", ""),
    "picture beside text": ("<img src=y alt=Photo> plain", "plain"),
    "words read out beside text": ("<i class=icon></i>plain <span class=sr-only>secret</span>", "plain"),
}  # fmt: skip


@pytest.mark.parametrize(("cell", "text"), CELLS.values(), ids=CELLS)
def test_cell_says_what_its_picture_says(shown: Callable[[str], str], cell: str, text: str) -> None:
    table = f"<table><tr><th>A<th>B<th>C</tr><tr><td>a<td>{cell}<td>c</table>"
    row = shown(table).splitlines()[-1]
    assert [each.strip() for each in row.strip("|").split("|")] == ["a", text, "c"]


SENTENCES = {
    "picture": "<p>Press <img src=g alt=Save> to keep it.</p>",
    "drawing": "<p>Press <svg aria-label=Save></svg> to keep it.</p>",
    "button": "<p>Press <button>Save</button> to keep it.</p>",
}


@pytest.mark.parametrize("html", SENTENCES.values(), ids=SENTENCES)
def test_sentence_keeps_the_word_that_is_an_icon(shown: Callable[[str], str], html: str) -> None:
    assert shown(html) == "Press Save to keep it."


def test_illustration_stays_out_of_the_text(shown: Callable[[str], str]) -> None:
    assert shown("<p><img src=g alt='A view of the sea'> Waves broke.</p>") == "Waves broke."


RUBY = {
    "readings in brackets": "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>",
    "bases": "<ruby><rb>漢</rb><rb>字</rb><rtc><rt>かん</rt><rt>じ</rt></rtc></ruby>",
}


@pytest.mark.parametrize("html", RUBY.values(), ids=RUBY)
def test_readings_above_characters_do_not_part_them(shown: Callable[[str], str], html: str) -> None:
    assert shown(f"<p>{html}を読む。</p>") == "漢字を読む。"


def test_declared_shadow_root_is_shown_with_the_text_it_has_a_place_for(convert: Convert) -> None:
    html = (
        f"<main>{PROSE}<my-card><template shadowrootmode=open><h2>Card</h2><p>See <a href=/x>this</a>.</p>"
        "<slot></slot></template><p>Light.</p></my-card></main>"
    )
    document = convert(html)

    assert document.markdown.endswith("## Card\n\nSee this.\n\nLight.")
    assert [link.anchor_text for link in document.links] == ["this"]


TEXT = "<p>The mill was built of oak in 1871 and grinds rye and barley for eleven villages.</p>" * 3
ELSEWHERE = {
    "noscript": f"<div id=app></div><noscript>{TEXT}</noscript>",
    "template of scripts": f"<p>Articles</p><script type='text/template'>{TEXT}</script>",
    "html in a script": f"<p>Articles</p><script type='text/html'><article>{TEXT}</article></script>",
}


@pytest.mark.parametrize("html", ELSEWHERE.values(), ids=ELSEWHERE)
def test_page_whose_text_is_elsewhere_than_in_its_body_is_read(convert: Convert, html: str) -> None:
    assert convert(f"<title>Mill</title><body>{html}</body>").markdown.count("1871") == 3


@pytest.mark.parametrize(
    "html",
    [
        f"<noscript><p>Please enable JavaScript to see this page. {'It is needed. ' * 20}</p></noscript>",
        f"<script type='text/template'><p>{'{{ item.name }} costs {{ item.price }} today. ' * 9}</p></script>",
    ],
)
def test_order_to_run_scripts_and_their_patterns_are_no_text(convert: Convert, html: str) -> None:
    assert convert(f"<body>{PROSE}{html}</body>").markdown == convert(PROSE).markdown


def test_text_of_a_product_in_its_form_stays(shown: Callable[[str], str]) -> None:
    form = "<form><h2>Pump</h2><p>It lifts water from forty metres and is built of steel.</p><select><option>1</select><button>Buy</button></form>"
    assert shown(form) == "## Pump\n\nIt lifts water from forty metres and is built of steel."


def test_form_that_asks_for_an_address_is_no_text(shown: Callable[[str], str]) -> None:
    form = "<form><p>Never miss a story: our letter comes every day.</p><input type=email><button>Go</button></form>"
    assert shown(form) == ""


def test_page_of_frames_leads_to_them(convert: Convert) -> None:
    frames = (
        "<frameset cols=*,*><frame src=toc.html name=toc><frame src=/a title='Part A'></frameset>"
    )
    document = convert(f"<html><head><title>Book</title></head>{frames}</html>")

    assert (document.title, document.markdown) == ("Book", "- toc\n- Part A")
    assert [link.url for link in document.links] == [
        "https://site.test/docs/toc.html",
        "https://site.test/a",
    ]


PLACES = ("The northern tower", "The gate", "The well")


@pytest.mark.parametrize(
    "link",
    [
        "<map name=m><area href=/{0} alt='{0}'></map>",
        "<map name=m><area href=/{0} title='{0}'></map>",
        "<p><a href=/{0}><img src=a.png alt='{0}'></a></p>",
    ],
    ids=["map", "title", "pictures"],
)
def test_page_of_pictures_that_lead_on_is_what_they_are_called(convert: Convert, link: str) -> None:
    page = convert(f"<title>T</title><img src=m.png usemap=#m>{''.join(map(link.format, PLACES))}")

    assert page.markdown == "\n\n".join(PLACES)
    told = [page.markdown[each.char_start : each.char_end] for each in page.links]
    assert told == [each.anchor_text for each in page.links] == [*PLACES]


def test_logo_of_a_page_that_scripts_draw_is_no_text(convert: Convert) -> None:
    logo = "<a href=/home><img src=logo.png alt='The Kiln Company of Old Harbour'></a>"

    with pytest.raises(UnusablePageError, match="no readable text"):
        convert(f"<title>T</title>{logo}<script src=a.js></script>")


def test_area_of_a_picture_is_called_by_its_words(convert: Convert) -> None:
    page = convert(f"<main>{PROSE}<map name=m><area href=/gate alt='The gate'></map></main>")

    assert [each.anchor_text for each in page.links] == ["The gate"]


@pytest.mark.parametrize(
    "html",
    [
        "<div class=reply><a class=comment-reply-link href='#c1'>Reply</a></div>",
        "<ul class=links><li class='comment-reply'><a href='/reply/1'>Antworten</a></li></ul>",
    ],
    ids=["WordPress", "Drupal"],
)
def test_link_to_answer_a_comment_is_no_text(shown: Callable[[str], str], html: str) -> None:
    comment = "<p>I baked it twice, and it was gone before noon.</p>"

    assert shown(comment + html) == "I baked it twice, and it was gone before noon."


@pytest.mark.parametrize(
    ("box", "text"),
    [
        pytest.param("<input type=checkbox>", "- 6 spoons of flour", id="to tick"),
        pytest.param("<input type=checkbox disabled>", "- [ ] 6 spoons of flour", id="to do"),
        pytest.param("<input type=checkbox checked>", "- [x] 6 spoons of flour", id="done"),
    ],
)
def test_box_of_an_item_is_text_where_it_tells_what_is_done(
    shown: Callable[[str], str], box: str, text: str
) -> None:
    assert shown(f"<ul><li>{box} 6 spoons of flour</li><li>1 cup of milk</li></ul>").startswith(
        text
    )


def test_boxes_of_a_list_of_tasks_are_text(shown: Callable[[str], str]) -> None:
    tasks = "<ul class=task-list><li><label><input type=checkbox>bake</label></li></ul>"

    assert shown(tasks) == "- [ ] bake"
