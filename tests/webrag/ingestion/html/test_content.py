"""What stands around a page's content is told from it, and never at the content's cost."""

from collections.abc import Callable

import pytest
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html import content
from webrag.ingestion.models import NormalizedDocument

Convert = Callable[..., NormalizedDocument]

SENTENCES = [
    "The council voted on the plan for the old harbour on Monday, and asked the mayor to report.",
    "Three of its members, among them the head of the port, were against the wider bridge.",
    "The bridge opens on 3 May, two years after the first was closed for repairs, they said.",
    "Engineers had found cracks in four of its pillars, which nobody could explain at first.",
]
ARTICLE = "".join(f"<p>{sentence} {sentence.replace('The', 'A')}</p>" for sentence in SENTENCES * 3)
TEASERS = "".join(
    f'<li class="related-item"><a href="/{n}">Ten things to know about town number {n}</a></li>'
    for n in range(8)
)
NEWS = (
    "<title>Bridge opens</title><body><div class='page'><h1>Bridge opens</h1>"
    f"<div class='article-body'>{ARTICLE}</div>"
    f"<div class='related-posts'><h3>Related articles</h3><ul>{TEASERS}</ul></div></div>"
)


def test_article_is_stored_without_what_leads_elsewhere(convert: Convert) -> None:
    text = convert(NEWS).markdown
    assert all(sentence in text for sentence in SENTENCES)
    assert "Ten things to know" not in text
    assert "Related articles" not in text


@pytest.mark.parametrize("name", ["post", "comment", "message"])
def test_posts_of_a_forum_are_content(convert: Convert, name: str) -> None:
    posts = "".join(
        f"<div class='{name}'><p class=author>user{n}, 3 May 2021</p><p>{sentence}</p></div>"
        for n, sentence in enumerate(SENTENCES * 3)
    )
    text = convert(f"<title>Bridge</title><body><h1>Bridge</h1><div class=thread>{posts}").markdown
    assert all(text.count(sentence) == 3 for sentence in SENTENCES)


def test_page_of_links_stays_whole(convert: Convert) -> None:
    links = "".join(f"<li><a href='/{n}.html'>Chapter {n}</a></li>" for n in range(40))
    text = convert(f"<title>Contents</title><body><h1>Contents</h1><ul>{links}</ul>").markdown
    assert all(f"Chapter {n}" in text for n in range(40))


def test_marks_that_stood_beside_links_and_items_of_pictures_are_no_text(convert: Convert) -> None:
    pictures = "<ul><li><a href=a.png><img src=a.png></a></ul><h2><img src=b.png></h2>"
    around = f"{pictures}<div>&raquo; <ul><li></ul></div>"
    page = (
        f"<h1>Bridge</h1>{around}<p>{SENTENCES[0]}<table><tr><th>A<th>B<tr><td>&rarr;<td>2</table>"
    )

    assert convert(page).markdown == (
        f"# Bridge\n\n{SENTENCES[0]}\n\n| A | B |\n| --- | --- |\n| → | 2 |"
    )


def test_marks_set_on_lines_of_their_own_are_no_text_either(convert: Convert) -> None:
    marks = "<span>«</span>\n  <span>|</span>\n  <span>»</span>"

    assert "»" not in convert(f"<h1>Bridge</h1><p>{SENTENCES[0]}</p><p>{marks}</p>").markdown


@pytest.mark.parametrize(
    "dialog",
    [
        "<div class=modal data-reveal>{}</div>",
        "<div class='modal fade'><div class=modal-dialog>{}</div></div>",
    ],
)
def test_dialog_to_be_opened_is_no_content(convert: Convert, dialog: str) -> None:
    form = "<h2>Write a review</h2><form><input name=review></form>"

    assert convert(f"<h1>Bridge</h1><p>{SENTENCES[0]}</p>{dialog.format(form)}").markdown == (
        f"# Bridge\n\n{SENTENCES[0]}"
    )


def test_form_to_reply_is_no_content(convert: Convert) -> None:
    head = "<h3 id=reply-title>Lascia un commento {}</h3><p>Devi essere connesso.</p>"
    newer = f"<div class=comment-respond>{head.format('')}</div>"
    older = f"<div id=respond>{head.format('<a id=cancel-comment-reply-link href=/>Annulla</a>')}"

    assert convert(f"<h1>Bridge</h1><p>{SENTENCES[0]}</p>{newer}{older}").markdown == (
        f"# Bridge\n\n{SENTENCES[0]}"
    )


def test_section_on_how_to_respond_stays(convert: Convert) -> None:
    section = f"<section id=respond><h2>respond</h2><p>{SENTENCES[1]}</section>"
    assert SENTENCES[1] in convert(f"<h1>Bridge</h1><p>{SENTENCES[0]}{section}").markdown


def test_own_address_on_a_page_is_no_text_but_in_a_cell(convert: Convert) -> None:
    printed = "<div>https://site.test/docs/page</div>"
    cell = "<table><tr><th>Name<th>Address<tr><td>Page<td>https://site.test/docs/page</table>"

    assert convert(f"{printed}<h1>Bridge</h1><p>{SENTENCES[0]}</p>{cell}").markdown == (
        f"# Bridge\n\n{SENTENCES[0]}\n\n| Name | Address |\n| --- | --- |"
        "\n| Page | https://site.test/docs/page |"
    )


def test_title_stands_above_the_few_words_before_it(convert: Convert) -> None:
    page = f"<div><p>Town</p><p>3 May 2021</p></div><div><h1>Bridge</h1></div><p>{SENTENCES[0]}</p>"
    assert convert(page).markdown == f"# Bridge\n\nTown\n\n3 May 2021\n\n{SENTENCES[0]}"


@pytest.mark.parametrize("around", ["blockquote", "li", "td"])
def test_title_within_other_than_a_box_stays_there(convert: Convert, around: str) -> None:
    page = f"<p>Town</p><{around}><h1>Bridge</h1>Old.</{around}><p>{SENTENCES[0]}</p>"
    page = f"<p>Town</p><table><tr>{page[11:]}</table>" if around == "td" else page

    assert convert(page).markdown.startswith("Town")


@pytest.mark.parametrize(
    "above", [f"<p>{SENTENCES[1]} {SENTENCES[2]}</p>", "<h2>Town</h2><p>All of it.</p>"]
)
def test_title_stays_below_more_and_below_other_headings(convert: Convert, above: str) -> None:
    assert not convert(f"{above}<h1>Bridge</h1><p>{SENTENCES[0]}</p>").markdown.startswith("# ")


@pytest.mark.parametrize("leads_to", ["/", "../index.html"])
def test_main_heading_that_leads_to_the_first_page_is_no_heading_of_this_one(
    convert: Convert, leads_to: str
) -> None:
    head = "<title>Bridge opens | Mill News</title>"
    page = f"{head}<h1><a href={leads_to}>Mill News</a></h1><h2>Bridge opens</h2><p>{SENTENCES[0]}"

    assert convert(page).markdown == f"## Bridge opens\n\n{SENTENCES[0]}"


def test_code_and_definitions_of_a_reference_page_stay(convert: Convert) -> None:
    entries = "".join(
        f"<dl><dt><code>--option-{n}</code></dt><dd>Off.</dd></dl><pre>run --option-{n}</pre>"
        for n in range(20)
    )
    text = convert(f"<title>Options</title><body><h1>Options</h1>{entries}{ARTICLE}").markdown
    assert all(text.count(f"--option-{n}") == 2 for n in (0, 9, 19))


def test_name_of_a_place_is_no_link() -> None:
    body = LexborHTMLParser("<body><h2><a name=plan>Planning</a> <a href=/more>more</a></h2>").body
    assert body is not None

    [heading] = content.read_blocks(content.boxes_of(body))

    assert heading.box.links == len("more")


def test_both_of_two_articles_are_stored(convert: Convert) -> None:
    second = "<article><h2>Second</h2><p>The ferry runs until then.</p><p>Every hour.</p></article>"
    text = convert(
        f"<title>News</title><body><article><h2>First</h2>{ARTICLE[:400]}</article>{second}"
    ).markdown
    assert "First" in text
    assert "The ferry runs until then." in text


def test_markdown_is_stored_whole(convert: Convert) -> None:
    links = "\n".join(f"- [Town number {n}](https://towns.test/{n})" for n in range(40))
    text = convert(
        f"# Towns\n\n{'A word. ' * 40}\n\n## Related\n\n{links}", kind="markdown"
    ).markdown
    assert all(f"Town number {n}\n" in f"{text}\n" for n in range(40))


def test_list_between_the_sentences_of_an_element_stays(convert: Convert) -> None:
    tests = "<ul><li><a href='http://test.example'>test.example</a>, hosted in Germany</li></ul>"
    text = " ".join(SENTENCES)
    page = (
        f"<h1>Bridge</h1>{ARTICLE}<div class=page>{text} It is on one server: {tests} {text}</div>"
    )

    assert "hosted in Germany" in convert(page).markdown


def test_header_of_a_section_carries_its_heading(convert: Convert) -> None:
    page = "".join(
        f"<section><header><h2>Bridge {n}</h2></header><p>{sentence}</p></section>"
        for n, sentence in enumerate(SENTENCES)
    )

    assert all(f"## Bridge {n}\n" in convert(page).markdown for n in range(4))


def test_only_paragraph_below_a_heading_that_stays_stays_too(
    convert: Convert, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = {"bias": 1.0, "word pending": -3.0}
    monkeypatch.setattr(content, "_weights", lambda: weights)
    tolls = "<h2>Tolls</h2><div class=note>Pending.</div>"
    page = f"<h1>Bridge</h1>{ARTICLE}{tolls}<h2>Cracks</h2>{ARTICLE}"

    assert "## Tolls\n\nPending." in convert(page).markdown


def test_headings_that_only_link_are_teasers(convert: Convert) -> None:
    cards = "".join(
        f"<div class=teaser><h3><a href='/{n}'>Ten things to know about town {n}</a></h3></div>"
        for n in range(6)
    )
    article = f"<h1>Bridge opens</h1><div class=text><h2>Why</h2>{ARTICLE}</div>"
    body = f"{article}<div class=more-stories>{cards}</div>"
    text = convert(f"<title>Bridge opens</title><body>{body}<p>{SENTENCES[0]}</p>").markdown
    assert "Ten things" not in text
    assert "## Why" in text


@pytest.mark.parametrize("box", ["news-teaser", "related"])
@pytest.mark.parametrize("level", ["h2", "h4"])
def test_headline_in_a_list_of_news_stays_with_the_text_below_it(
    convert: Convert, box: str, level: str
) -> None:
    items = "".join(
        f"<div class={box}><{level}><a href='/{n}'>Headline number {n}</a></{level}>"
        f"<p>{' '.join(SENTENCES[:3])} {n}</p></div>"
        for n in range(8)
    )
    body = f"<h1>News of the town</h1><p>{ARTICLE[:300]}</p>{items}<p>{SENTENCES[1]}</p>"
    text = convert(f"<title>News</title><body>{body}").markdown
    kept = [(f"Headline number {n}" in text, f"{SENTENCES[2]} {n}" in text) for n in range(8)]
    assert all(headline == below for headline, below in kept)
    assert any(below for _, below in kept)


def test_parts_of_one_kind_stay_together_with_their_headings(convert: Convert) -> None:
    parts = "".join(
        f"<div class='clear item'><h3>Line {n}</h3><div class=padding>"
        f"<p><b>Are dogs allowed?</b> {'No.' if n % 2 else 'Yes, if they are small.'}</p>"
        f"<p><b>What of luggage?</b> {SENTENCES[n % 4]}</p>"
        f"<p><b>Is there a toilet?</b> On journeys of more than {n} hours</p></div></div>"
        for n in range(20)
    )
    body = f"<h1>Travel advice</h1><div class='item clear'><div class=rail>{parts}</div></div>"
    text = convert(f"<title>Travel</title><body>{body}").markdown
    assert all(f"### Line {n}\n" in text for n in range(20))
    assert text.count("Are dogs allowed?") == text.count("Is there a toilet?") == 20


@pytest.mark.parametrize("name", ["header", "nav-panel"])
def test_links_to_the_nodes_beside_one_are_no_text_of_a_texinfo_manual(
    convert: Convert, name: str
) -> None:
    way = (
        f"<div class={name}><p>Previous: <a href=a.html accesskey=p rel=prev>Kettles</a></p></div>"
    )
    text = convert(f"<body>{way}<hr><h3>2 Lids</h3><p>{SENTENCES[0]}</p><hr>{way}").markdown
    assert "Previous" not in text
    assert "2 Lids" in text


def test_heading_above_a_list_that_goes_or_above_nothing_goes_too(convert: Convert) -> None:
    more = f"<div class='related-posts'><h3>Related articles</h3><ul>{TEASERS}</ul></div>"
    form = "<div class='comment-respond'><h3>Leave a reply</h3><form><input></form></div>"
    text = convert(NEWS.replace("</div></div>", f"</div>{more}</div>{form}")).markdown
    assert SENTENCES[3] in text
    assert "Related articles" not in text
    assert "Leave a reply" not in text


def test_short_page_keeps_its_text_without_what_is_plainly_around_it(convert: Convert) -> None:
    around = (
        "<div class='widget newsletter'><h3>Subscribe to our newsletter</h3><p>Your email</p></div>"
        "<div class='widget related'><h3>Related articles</h3></div>"
    )
    text = convert(
        f"<title>Bridge opens</title><body><h1>Bridge opens</h1><p>{SENTENCES[0]}</p>"
        f"<h2>Why</h2><p>{SENTENCES[3]}</p>{around}"
    ).markdown
    assert all(each in text for each in ("# Bridge opens", SENTENCES[0], "## Why", SENTENCES[3]))
    assert not any(each in text for each in ("Subscribe", "Your email", "Related articles"))


@pytest.mark.parametrize("name", ["menu", "related", "sidebar", "announcement", "noprint"])
def test_paragraphs_in_a_box_of_a_common_name_stay(convert: Convert, name: str) -> None:
    notes = f"<div class={name}><h2>Lentils</h2><p>{SENTENCES[3]}</p></div>"
    head = "<title>Bridge opens</title><body><main><h1>Bridge opens</h1>"
    assert SENTENCES[3] in convert(f"{head}<p>{SENTENCES[0]}</p>{notes}</main>").markdown
    assert SENTENCES[3] in convert(f"{head}{ARTICLE.replace(SENTENCES[3], '')}{notes}").markdown


def entries(*addresses: str) -> str:
    return "".join(f"<li><a href='{each}'>Chapter at {each}</a></li>" for each in addresses)


RETURNED = (
    "<h3 id=m{0}><strong>method_{0}</strong></h3><div class=docstring><p>Must be called {0} times."
    "</div><div class=tags><p class=tag_title>Returns:</p><ul class=return><li><span class=type>"
    "(<tt>Expectation</tt>)</span> &mdash; <div class=inline><p>the same expectation, thereby"
    " allowing invocations of other <a href=#m1>Mocha::Expectation</a> methods to be chained.</p>"
    "</div></li></ul></div>"
)


def test_sentence_between_texts_that_stay_stays_too(convert: Convert) -> None:
    methods = "".join(RETURNED.format(n) for n in range(12))
    text = convert(f"<title>Mocha</title><body><h1>Mocha</h1>{methods}<pre>def once").markdown
    assert text.count("methods to be chained.") == 12


@pytest.mark.parametrize(("unlike", "stored"), [(2, 2), (3, 0)])
def test_short_text_stays_where_most_in_elements_like_it_does(
    convert: Convert, monkeypatch: pytest.MonkeyPatch, unlike: int, stored: int
) -> None:
    monkeypatch.setattr(content, "_weights", lambda: {"word unlike": -1.0})
    notes = "".join(
        f"<div class=note><p>{'Unlike' if n < unlike else 'As'} number {n}</div>" for n in range(8)
    )
    page = f"<title>Bridge opens</title><body><h1>Bridge opens</h1>{ARTICLE * 2}{notes}"
    assert convert(page).markdown.count("Unlike") == stored


@pytest.mark.parametrize(("weight", "is_stored"), [(0.3, True), (-0.3, False)])
def test_text_that_is_less_likely_content_than_not_goes(
    convert: Convert, monkeypatch: pytest.MonkeyPatch, weight: float, *, is_stored: bool
) -> None:
    monkeypatch.setattr(content, "_weights", lambda: {"name remark": weight})
    remark = "<div class=remark>Call the harbour with any question.</div>"
    page = f"<title>Bridge opens</title><body><h1>Bridge opens</h1>{ARTICLE * 2}{remark}"
    assert ("Call the harbour" in convert(page).markdown) is is_stored


def test_title_and_declarations_of_doxygen_stay_whatever_they_look_like(
    convert: Convert, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_weights", lambda: {"tag td": -9.0, "tag div": -9.0})
    text = convert(
        "<title>usb</title><body><div class=headertitle><div class=title>Start</div></div>"
        "<div class=memproto><table class=memname><tr><td class=memname>void exit</td><td>(</td>"
        "<td class=paramtype>context *</td><td class=paramname>ctx</td><td>)</td></tr></table>"
        f"</div><div class=memdoc>{ARTICLE}</div>"
    ).markdown
    assert text.startswith("# Start\n\n`void exit ( context * ctx )`")


CHAPTERS = [f"chapter-{n}.html" for n in range(20)]


def manual(around: str, text: str = ARTICLE) -> str:
    return f"<title>Bridges</title><body><h1>Bridges</h1>{text}<div class=frame>{around}</div>"


def test_list_of_a_sites_pages_that_names_the_page_itself_is_its_menu(convert: Convert) -> None:
    menu = f"<p><a href=/>All manuals</a></p><ul>{entries(*CHAPTERS, '/docs/page')}</ul>"
    text = convert(manual(menu)).markdown
    assert "Chapter at" not in text
    assert "All manuals" not in text
    assert all(sentence in text for sentence in SENTENCES)


def test_numbers_beside_the_entries_of_a_menu_make_no_text_of_it(convert: Convert) -> None:
    numbered = "".join(
        f"<tr><td>{n}.{n + 1}</td><td><a href='{each}'>Chapter</a></td></tr>"
        for n, each in enumerate([*CHAPTERS, "page"])
    )
    assert "Chapter" not in convert(manual(f"<table>{numbered}</table>")).markdown


def test_empty_address_in_a_menu_names_the_page_itself(convert: Convert) -> None:
    assert "Chapter at" not in convert(manual(f"<ul>{entries(*CHAPTERS, '')}</ul>")).markdown


@pytest.mark.parametrize(
    "items",
    [
        entries(*CHAPTERS, "#/docs/page"),
        entries(*CHAPTERS, "/other/page"),
        entries(*CHAPTERS[:3], "page"),
        "".join(
            f"{item}</a>: how it is built" for item in entries(*CHAPTERS, "page").split("</a>")
        ),
        f"<li><code>{entries(*CHAPTERS, 'page')}</code></li>",
        f"<pre>{entries(*CHAPTERS, 'page')}</pre>",
    ],
    ids=["part of the page", "page elsewhere", "few entries", "text", "names of code", "terminal"],
)
def test_other_lists_of_links_in_the_text_of_a_manual_stay(convert: Convert, items: str) -> None:
    text = convert(
        manual(f"<ul>{items}</ul>", f"<p>{SENTENCES[0]} {SENTENCES[1]}</p>" * 2)
    ).markdown
    assert "Chapter at chapter-1.html" in text


def test_map_of_a_site_that_names_itself_stays(convert: Convert) -> None:
    text = convert(
        manual(f"<ul>{entries(*CHAPTERS, 'page')}</ul>", "<p>Its chapters:</p>")
    ).markdown
    assert all(f"Chapter at {each}" in text for each in CHAPTERS)


def test_list_of_the_pages_below_a_page_that_names_itself_stays(convert: Convert) -> None:
    below = [f"page/{each}" for each in CHAPTERS]
    text = convert(manual(f"<ul>{entries(*below, 'page')}</ul>", ARTICLE)).markdown
    assert all(f"Chapter at {each}" in text for each in below)


def test_links_of_a_definition_stay(convert: Convert) -> None:
    links = f"<dt>Parts</dt><dd><ul>{entries(*CHAPTERS, 'page')}</ul></dd>"
    page = f"<body><h1>Bridges</h1><dl>{links}<dt>Age</dt><dd>{ARTICLE}</dd></dl>"
    assert "Chapter at chapter-1.html" in convert(page).markdown


def test_title_in_an_element_of_links_stays(convert: Convert) -> None:
    links = f"<ul>{entries(*CHAPTERS, 'page')}</ul>"
    text = convert(f"<body><header><h1>Bridges</h1>{links}</header>{ARTICLE}").markdown
    assert text.startswith("# Bridges")


SECTIONS = ["1. Planning", "2. Pillars and cracks", "3. Opening day", "4. Tolls"]
SECTIONS_BELOW = "".join(
    f"<h2 id=c{n}>{chapter}</h2>{ARTICLE}" for n, chapter in enumerate(SECTIONS)
)


def listed(entries: list[str]) -> str:
    items = (f"<li><a href='#c{n}'>{entry}</a></li>" for n, entry in enumerate(entries))
    return f"<div id=toc><div>Table of Contents</div><ul>{''.join(items)}</ul></div>"


def test_headings_are_stored_without_the_list_that_names_them_above(convert: Convert) -> None:
    page = f"<h1>Bridge</h1><p>All about it.</p>{listed(SECTIONS)}{SECTIONS_BELOW}"

    text = convert(page).markdown

    assert "Table of Contents" not in text
    assert [text.count(chapter) for chapter in SECTIONS] == [1, 1, 1, 1]


@pytest.mark.parametrize("question", ["<p id=c{}><b>{}</b></p>", "<p><a name=c{}>Q: {}</a></p>"])
def test_questions_are_stored_without_the_list_that_names_them_above(
    convert: Convert, question: str
) -> None:
    asked = "".join(question.format(n, e) + ARTICLE for n, e in enumerate(SECTIONS))

    text = convert(f"<h1>Bridge</h1><p>All about it.</p>{listed(SECTIONS)}{asked}").markdown

    assert [text.count(section[3:]) for section in SECTIONS] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "pager",
    [
        "<a href=3.html>Next</a>\n<a href=1.html>Previous</a>\n<a href=i.html#t3>Contents</a>",
        "<a href=1.html>&lt;-previous</a><a href=i.html>Table of Contents</a>",
        "<p>[<a href=i.html>Top of Book</a>] [<a href=1.html>Previous Chapter</a>]</p>",
        "<div><span><a href=i.html>top</a></span> <a href=3.html>next &rarr;</a></div>",
        "<div><a href=3.html><img src=r.png alt=next></a> <b>Next:</b> <a href=3.html>Glazes</a> "
        "<b>Up:</b> <a href=i.html>Kilns</a></div>",
        "<table><tr><td><a href='#'>Top</a> | <a href='#a'>Description</a><td>"
        "<a href=3.html><img src=r.png alt=Next></a></table>",
        "<table class=NAVHEADER><tr><th>Kilns<tr><td><a href=3.html>Next</a></table>",
        "<p><a href=3.html>Weiter</a> | <a href=i.html>Inhalt</a></p>",
    ],
)
def test_links_to_the_pages_before_and_behind_are_not_stored(convert: Convert, pager: str) -> None:
    text = convert(f"<body>{pager}<h1>Bridge</h1><p>{SENTENCES[0]}</p>{pager}").markdown

    assert text == f"# Bridge\n\n{SENTENCES[0]}"


@pytest.mark.parametrize(
    "kept",
    [
        "<ul><li><a href='#next'>next</a></li><li><a href='#previous'>previous</a></li></ul>",
        "<p>The <a href=3.html>next</a> page tells more.</p>",
        "<p>Next: fire the <a href=3.html>kiln</a>.</p>",
    ],
)
def test_words_for_the_next_page_within_a_text_are_content(convert: Convert, kept: str) -> None:
    text = convert(f"<body><h1>Bridge</h1><p>{SENTENCES[0]}</p>{kept}").markdown

    assert "ext" in text.removeprefix(f"# Bridge\n\n{SENTENCES[0]}")


@pytest.mark.parametrize(
    "named",
    [
        "<table><tr><td><a href=n.html>forward</a></td><td>gives a row</td></tr></table>",
        "<table><tr><td>int<td><code><a href=I.html#f()>forward</a>()</code><br>Row.</table>",
        "<ul><li><a href=m.html>map</a></li><li><a href=n.html>forward</a></li></ul>",
        "<ul><li><a href=n.html>forward</a><br>Gives a row.</li></ul>",
        "<dl><dt><a href=n.html>forward</a></dt><dd>Gives a row.</dd></dl>",
        "<h3><a href=n.html>forward</a></h3><p>Gives a row.</p>",
        "<pre><a href=n.html>forward</a>(3)</pre>",
    ],
)
def test_word_for_the_next_page_that_names_something_is_content(
    convert: Convert, named: str
) -> None:
    text = convert(f"<body><h1>Bridge</h1><p>{SENTENCES[0]}</p>{named}").markdown

    assert "forward" in text


def test_contents_of_chapters_without_titles_are_content(convert: Convert) -> None:
    chapters = "".join(f"<li><a href={n}.html>Chapter {n}</a></li>" for n in range(1, 8))
    pager = "<p><a href=0.html>Back</a> <a href=1.html>Next</a></p>"

    text = convert(f"<body><div><h1>Contents</h1><ul>{chapters}</ul>{pager}</div>").markdown

    assert all(f"Chapter {n}" in text for n in range(1, 8))
    assert "Back" not in text


def test_ways_back_to_the_top_are_not_stored(convert: Convert) -> None:
    back = "<p><a href=#top>(nach oben)</a></p>"
    sections = "".join(f"<h2>{section}</h2>{ARTICLE}{back}" for section in SECTIONS)
    once = "<p><a href=#c3>Opening day</a></p>"

    text = convert(f"<body id=top><h1>Bridge</h1>{once}{sections}").markdown

    assert "nach oben" not in text
    assert text.count("Opening day") == 2


def test_list_of_links_to_bold_text_with_the_same_words_is_a_table_of_contents(
    convert: Convert,
) -> None:
    asked = ["Who built it?", "What did it cost?", "Is it still open?"]
    links = "".join(f"<li><a href=#q{n}>{each}</a>" for n, each in enumerate(asked))
    answers = "".join(
        f"<p><a id=q{n}><b>{each}</b></a><br>{ARTICLE}" for n, each in enumerate(asked)
    )

    text = convert(f"<h1>Bridge</h1><ul>{links}</ul>{answers}").markdown

    assert [text.count(each) for each in asked] == [1, 1, 1]


def test_list_of_links_that_says_more_than_the_headings_stays(convert: Convert) -> None:
    entries = [f"{chapter}: what became of them by 1984" for chapter in SECTIONS]

    text = convert(f"<h1>Bridge</h1>{listed(entries)}{SECTIONS_BELOW}").markdown

    assert all(entry in text for entry in entries)


LIST = "".join(f"<li><a href='#c{n}'>{entry}</a></li>" for n, entry in enumerate(SECTIONS))
NUMBERED = "".join(
    f"<dt>{entry[:3]}<a href='#c{n}'>{entry[3:]}</a></dt>" for n, entry in enumerate(SECTIONS)
)
LABELS = {
    "in the list's box": f"<div><p>Inhaltsverzeichnis</p><ul>{LIST}</ul></div>",
    "right before the list": f"<p>Sommaire:</p><ul>{LIST}</ul>",
    "before the list's box": f"<p><b>目次</b></p><div><ul>{LIST}</ul></div>",
    "of a numbered list": f"<h2>Contents</h2><ol>{LIST}</ol>",
    "of a box that folds": f"<details><summary>On this page</summary><ol>{LIST}</ol></details>",
    "of a list numbered by hand": f"<h2>Contents</h2><dl>{NUMBERED}</dl>",
    "of a list of lists": f"<b>Contents</b><ul><li><a href=#c0>1. Planning</a><ol>{LIST}</ol></ul>",
}


@pytest.mark.parametrize("contents", LABELS.values(), ids=LABELS)
def test_label_of_a_table_of_contents_goes_with_it(convert: Convert, contents: str) -> None:
    text = convert(f"<h1>Bridge</h1><p>All of it.</p>{contents}{SECTIONS_BELOW}").markdown

    assert text.startswith("# Bridge\n\nAll of it.\n\n## 1. Planning")


def test_numbered_questions_under_a_title_that_stands_again_above_the_answers_go(
    convert: Convert,
) -> None:
    questions = f"<h2>Building</h2><ol>{LIST}</ol>"

    text = convert(f"<h1>Bridge</h1>{questions}<h2>Building</h2>{SECTIONS_BELOW}").markdown

    assert [text.count(each) for each in ("## Building", *SECTIONS)] == [1, 1, 1, 1, 1]


@pytest.mark.parametrize(("reworded", "left"), [(1, 0), (2, 2)])
def test_list_of_links_most_of_which_repeat_titles_is_a_table_of_contents(
    convert: Convert, reworded: int, left: int
) -> None:
    entries = [f"Older {chapter.lower()}" for chapter in SECTIONS[:reworded]]

    text = convert(
        f"<h1>Bridge</h1>{listed([*entries, *SECTIONS[reworded:]])}{SECTIONS_BELOW}"
    ).markdown

    assert sum(entry in text for entry in entries) == left


BESIDE_CONTENTS = {
    "paragraph": ("<div>{}<p>Status: archived, use pad.</p></div>", "archived, use pad."),
    "bold words": ("<div>{}<b>Removed in 3.0</b></div>", "Removed in 3.0"),
    "command": ("<div>{}<p>pip install foo-bar</p></div>", "pip install foo-bar"),
    "code": ("<div><pre>npm i left-pad@1.3.0</pre>{}</div>", "npm i left-pad@1.3.0"),
    "section": (
        "<div>{}<h2>Quick start</h2><pre>npx left-pad init</pre></div>",
        "npx left-pad init",
    ),
    "definitions": ("<dl><dt>Port<dd>8443<dt>Parts<dd>{}</dl>", "8443"),
    "row of a table": ("<table><tr><td>Since<td>1987<tr><td>Parts<td>{}</table>", "1987"),
    "item": ("<ul><li>Since 1987<li>{}</ul>", "Since 1987"),
    "formula": ("<div>{}<math><mo>∑</mo></math></div>", "∑"),
}


@pytest.mark.parametrize(("around", "kept"), BESIDE_CONTENTS.values(), ids=BESIDE_CONTENTS)
def test_content_beside_a_table_of_contents_stays(convert: Convert, around: str, kept: str) -> None:
    contents = around.format(f"<ul>{LIST}</ul>")

    assert kept in convert(f"<h1>Bridge</h1>{contents}{SECTIONS_BELOW}").markdown


OTHER_LISTS = {
    "ranking": f"<h2>The ranking in short</h2><ol>{LIST}</ol>",
    "lists of steps": f"<ol><li>Read:<ul>{LIST}</ul></ol>",
    "terms explained": f"<dl>{LIST.replace('li>', 'dt>')}<dd>{SENTENCES[0]}</dl>",
    "headings that link": f"<ul>{LIST.replace('<li>', '<li><h3>')}</ul>",
}


@pytest.mark.parametrize("entries", OTHER_LISTS.values(), ids=OTHER_LISTS)
def test_list_that_is_no_table_of_contents_stays(convert: Convert, entries: str) -> None:
    text = convert(f"<h1>Bridge</h1>{entries}{SECTIONS_BELOW}").markdown

    assert [text.count(section) for section in SECTIONS] == [2, 2, 2, 2]


def test_list_of_the_headings_above_it_stays(convert: Convert) -> None:
    text = convert(f"<h1>Bridge</h1>{SECTIONS_BELOW}<p>Contents:</p><ul>{LIST}</ul>").markdown

    assert [text.count(section) for section in SECTIONS] == [2, 2, 2, 2]


def test_lists_in_a_table_of_contents_go_with_it(convert: Convert) -> None:
    inner = f"<ul><li><a href=#c0>{SECTIONS[0]}</a><ul>{LIST}</ul><li><ul>{LIST}</ul></ul>"

    text = convert(f"<h1>Bridge</h1><div>{inner}</div>{SECTIONS_BELOW}").markdown

    assert [text.count(section) for section in SECTIONS] == [1, 1, 1, 1]


def test_no_list_is_removed_while_others_are_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[list[str | None]] = []
    monkeypatch.setattr(content, "drop", lambda nodes: removed.append([node.tag for node in nodes]))
    inner = f"<ul>{LIST}<li><ul>{LIST}</ul></ul>"
    body = LexborHTMLParser(f"<body><h1>Bridge</h1>{inner}{SECTIONS_BELOW}").body
    assert body is not None

    content.remove_contents(body)

    assert removed == [["ul", "ul"]]


def test_labels_that_show_over_code_are_not_stored_in_it(convert: Convert) -> None:
    label = "<div class=ttc><div class=ttdeci>int bridge_open(void)</div>Definition: b.h:3</div>"
    code = f"<div class=fragment><div class=line>bridge_open();</div>{label}</div>"

    text = convert(f"<h1>Bridge</h1>{ARTICLE}{code}").markdown

    assert "bridge_open();" in text
    assert "Definition: b.h" not in text


def test_types_that_lead_to_what_they_are_below_stay(convert: Convert) -> None:
    fields = "".join(
        f"<h3>field {name}</h3><div class=type><a href=#string>String</a></div><p>{ARTICLE}</p>"
        for name in "abc"
    )

    text = convert(f"<h1>Api</h1>{fields}<h2 id=string>String</h2><p>{ARTICLE}</p>").markdown

    assert text.count("String") == 4


def test_marks_in_cells_that_only_roles_tell_are_values(convert: Convert) -> None:
    row = "<div role=row><div role=cell>{}</div><div role=cell>{}</div></div>"
    table = "<div role=table>" + row.format("Plan", "Free") + row.format("Backup", "✕") + "</div>"

    assert (
        "| Backup | ✕ |" in convert(f"<main><h1>Plans</h1><p>{ARTICLE}</p>{table}</main>").markdown
    )


def test_name_of_a_thread_that_leads_to_its_first_page_stays_the_title(convert: Convert) -> None:
    body = f"<main><h1><a href=/threads/jams.12/>Printer jams</a></h1><p>{ARTICLE}</p></main>"

    page = convert(
        f"<title>Printer jams - page 2</title>{body}", url="https://f.test/threads/jams.12/page-2"
    )

    assert "Printer jams" in (page.title or "")
    assert page.markdown.startswith("# Printer jams")
