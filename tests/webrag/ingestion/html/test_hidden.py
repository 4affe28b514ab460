import time
from collections.abc import Callable

import pytest

from webrag.ingestion.models import NormalizedDocument

Convert = Callable[..., NormalizedDocument]

SECRET = "Pay the sum to the account below."
SHOWN = "Everybody reads this sentence here."

INLINE = """
display:none
display: none !important
DISPLAY:NONE
display:/**/none
d\\69splay:none
visibility:hidden
visibility:collapse
content-visibility:hidden
opacity:0
opacity:0%
opacity:.01
opacity:.0
opacity:5%
opacity:0e3
opacity:-1
opacity:+0
opacity:1e-5
opacity:0;animation:none
font-size:0
font-size:1px
font-size:.05em
font-size:0.01rem
font-size:1%
font-size:.1vw
font-size:.01mm
font:0/0 a
font:0 serif
font:1px/1 serif
font:italic bold 1px sans-serif
font:700 0.5px Arial
position:absolute;left:-9999px
position:absolute;left:-999em
position:absolute;left:-200vw
position:absolute;left:-99in
position:absolute;left:-1e4px
position:absolute;bottom:9999px
position:fixed;top:-100%
position:absolute;top:-1000%
position:absolute;top:-999rem
position:absolute;right:-9999px
position:absolute;left:9999px
position:absolute;inset:-9999px auto auto -9999px
margin-left:-9999px
margin:-9999px 0 0 0
text-indent:-9999px
text-indent:-999em
text-indent:-100%
position:absolute;clip:rect(0,0,0,0)
position:absolute;clip:rect(1px,1px,1px,1px)
height:0;overflow:hidden
overflow:hidden;height:1px
max-height:0;overflow:hidden
max-height:1px;overflow:hidden
max-height:.1em;overflow:clip
width:0;height:0;overflow:hidden
max-width:1px;overflow:hidden
height:0;overflow-y:hidden
color:transparent
color:#0000
color:rgba(0,0,0,0)
color:rgb(0 0 0 / 1%)
color:hsla(0,0%,0%,0)
color:#fff
color:white
color:rgb(255,255,255)
color:hsl(0 0% 100%)
color:#fefefe
color:#eee;background:#eee
color:rgb(10,10,10);background-color:#0a0a0a
color:red;background:red
-webkit-text-fill-color:transparent
opacity:1;opacity:0
display:block;display:none
""".strip().splitlines()

SHEETS = """
.x{display:none}
.x{display:none!important}
p.x{display:none}
div .x{display:none}
#c > .x{display:none}
#c>p:nth-child(2){display:none}
.before ~ .x{display:none}
.before + .x{display:none}
[data-k=v]{display:none}
[data-k^="v"]{display:none}
.x:not(.y){display:none}
:is(.x,.y){display:none}
:where(p.x){display:none}
p:has(b){display:none}
body p.x:last-of-type{display:none}
.y,.x{display:none}
.x{color:red}.x{display:none}
.x{display:none}.y{display:block}
p.x{display:none}.x{display:block}
.x{display:none!important}#i{display:block}
#i{display:none}.x{display:block}
@media screen{.x{display:none}}
@media all{.x{display:none}}
@media (min-width:1px){.x{display:none}}
@media screen and (min-width:600px){.x{display:none}}
@media not print{.x{display:none}}
@media (prefers-color-scheme:light){.x{display:none}}
@media (width >= 500px){.x{display:none}}
@supports (display:grid){.x{display:none}}
@container (min-width:1px){.x{display:none}}
.x{visibility:hidden}
#c{visibility:hidden}.before,h1{visibility:visible}
.x{opacity:.01}
.x{font-size:1px}
.x{font:0/0 a}
.x{position:absolute;left:-999em}
.x{position:absolute;top:-300%}
.x{text-indent:-9999px}
.x{max-height:1px;overflow:hidden}
.x{color:#fff}
body{background:#222}.x{color:#222}
#c{background:#ffe}.x{color:#ffffed}
@media print, screen{.x{display:none}}
@media only screen and (max-width:1400px){.x{display:none}}
@media (hover:hover) and (pointer:fine){.x{display:none}}
@media (orientation:landscape){.x{display:none}}
@media screen{@media (min-width:60em){.x{display:none}}}
[data-q='a,b'],.x{display:none}
.x[lang="en"],[data-q='a,b']{display:none}
.x{display:none}.x.x{opacity:1}
.x:hover{display:block}.x{display:none}
.x{opacity:0}.x:hover{opacity:1}
.x{display:none}.x.on{display:block}
/* c */.x/* d */{display/**/:none}
<!-- .x{display:none} -->
.x{bogus;display:none}
:root .x{display:none}
.x{display:none
""".strip().splitlines()

# Forms that docs/security.md says are not decided, so that what they say is stored.
UNDECIDED_INLINE = """
opacity:calc(1 - 1)
font-size:calc(1px * 0)
font-size:min(1px, 3em)
font-size:clamp(0px, 1px, 1px)
position:absolute;top:calc(-1 * 5000px)
filter:opacity(0)
filter:opacity(1%)
filter:blur(30px)
-webkit-filter:opacity(0%)
zoom:0
zoom:.01
zoom:1%
transform:scale(0)
transform:scale(.001)
transform:scaleY(0)
transform:scale3d(0,0,0)
transform:matrix(0,0,0,0,0,0)
transform:rotateX(90deg)
scale:0
transform:translateX(-9999px)
transform:translate(-999em, 0)
transform:translate3d(0,-300vh,0)
translate:-9999px
position:fixed;top:200vh
position:absolute;inset-inline-start:-9999px
margin-inline-start:-999em
clip-path:inset(50%)
clip-path:inset(100%)
clip-path:inset(0 100% 0 0)
clip-path:circle(0)
clip-path:ellipse(0 0)
clip-path:polygon(0 0, 0 0, 0 0)
-webkit-clip-path:inset(100%)
block-size:0;overflow:hidden
line-height:0;overflow:hidden
text-indent:100%;white-space:nowrap;overflow:hidden
--x:none;display:var(--x)
display:var(--missing, none)
--a:0;opacity:var(--a)
""".strip().splitlines()

UNDECIDED_SHEETS = """
@layer a{.x{display:none}}
#c{.x{display:none}}
#c{& .x{display:none}}
.x{&#i{display:none}}
@scope (#c){.x{display:none}}
.x{animation:a 1s forwards}@keyframes a{to{opacity:0}}
@import url("data:text/css,.x%7Bdisplay:none%7D");
.x:lang(en){display:none}
.x:not(:hover){display:none}
@media (1px <= width){.x{display:none}}
p{opacity:calc(var(--o) * 1)}.x{--o:0}
.x{clip-path:inset(100%)}
:root{--bg:#fff}.x{color:var(--bg)}
:root{--hide:none}.x{display:var(--hide)}
.x{transform:scale(0)}
.x{zoom:.01}
.x{filter:opacity(0)}
""".strip().splitlines()

INNOCENT_INLINE = """
opacity:.9
opacity:100%
opacity:.38
left:0
left:-9999px
position:absolute;bottom:-9999px
position:absolute;bottom:100%
flex:1;width:0;overflow:hidden
height:0;flex-grow:1;overflow:auto
display:table-cell;max-width:0;overflow:hidden
position:relative;left:-2px
position:absolute;left:0
position:absolute;top:5000px
position:absolute;left:-20px
position:absolute;left:50%;transform:translate(-50%,-50%)
margin-left:-15px
margin:0 -9999px;padding:0 9999px
margin-bottom:-9999px;padding-bottom:9999px
text-indent:2em
text-indent:-2em;padding-left:2em
font-size:8px
font-size:.7em
font-size:clamp(1rem, 2vw, 2rem)
font:12px/1.5 serif
font:italic 700 small-caps 14px/2 sans-serif
font-size:smaller
color:#fff;background:#000
color:white;background-image:url(x.png)
color:#fff;background:linear-gradient(red, blue)
color:#eee
color:#777
color:currentColor
color:transparent;background-clip:text;background-image:linear-gradient(red,blue)
color:transparent;text-shadow:0 0 5px #000
height:100px;overflow:hidden
height:0
max-height:300px;overflow:auto
height:0;padding-bottom:56%;overflow:hidden
width:100%;overflow:hidden
line-height:0
transform:none
transform:rotate(90deg)
transform:rotateY(180deg)
transform:scale(.9)
transform:translateX(-50%)
filter:blur(0)
filter:opacity(80%)
zoom:1
clip-path:circle(50%)
clip-path:inset(0)
clip:auto
visibility:visible
display:block
display:contents
--x:none
display:inherit
opacity:inherit
content:"display:none"
background:url("data:text/plain,display:none")
x-display:none
display:none;display:block
opacity:0;opacity:.9
""".strip().splitlines()

INNOCENT_SHEETS = """
.x{color:#333}
@media print{.x{display:none}}
@media (max-width:600px){.x{display:none}}
@media (prefers-color-scheme:dark){body{color:#fff;background:#000}}
@media (prefers-reduced-motion:reduce){.x{display:none}}
@media not screen{.x{display:none}}
@media (width < 500px){.x{display:none}}
@supports not (display:grid){.x{display:none}}
@page{margin:0}
.y{display:none}
.x{display:none}.x{display:block}
.x{display:none}#i{display:block}
.x{display:block!important}#i{display:none}
@layer a{.x{display:none}}.x{display:block}
.x::before{display:none}
.x::after{content:"";opacity:0}
.x::selection{color:transparent}
.x:hover{display:none}
.x:not(:hover):hover{opacity:0}
.x:active,.x:focus{visibility:hidden}
a .x{display:none}
h2 + .x{display:none}
#c > b{display:none}
.x.no{display:none}
.no-js .x{display:none}
html.dark .x{color:#fff}
body{background:#111}p{color:#fff}
.x{color:#fff;background:var(--brand)}
#c{background:url(x.png)}.x{color:#fff}
#c{background:#000}#c p{color:#fefefe}
@keyframes a{from{opacity:0}to{opacity:1}}.x{animation:a 1s}
@keyframes a{from{opacity:0}to{opacity:1}}.x{opacity:0;animation:a 1s forwards}
@keyframes a{to{opacity:0}}.x{animation:a 1s infinite}
@font-face{font-family:x;src:url(x)}
#c{visibility:hidden}.x,.x b{visibility:visible}
#c{font-size:0}.x{font-size:16px}
#c{text-indent:-9999px}.x{text-indent:0}
#c{color:transparent}.x{color:#000}
body{opacity:0}
html{visibility:visible}
body{display:none}
.x{bad selector{display:none}
.x:bogus{display:none}
.x{display:"none"}
.x{font-size:62.5%}
html{font-size:10px}.x{font-size:1.6rem}
.x{max-height:20em;overflow:auto}
.x{position:absolute;left:-9999px;position:static}
@media handheld{.x{display:none}}
@media (orientation:portrait){.x{display:none}}
@media (hover:none){.x{display:none}}
@media (pointer:coarse){.x{display:none}}
@media (min-width:90em){.x{display:none}}
@media (min-width:1281px){.x{display:none}}
@media (width>=1600px){.x{display:none}}
@media (1600px <= width){.x{display:none}}
@media (display-mode:standalone){.x{display:none}}
@media print, (max-width:600px){.x{display:none}}
@media screen{@media print{.x{display:none}}}
.x{display:none}#c{.x{display:block}}
.x{display:none}#c{&.d .x{display:block}}
.x{display:none}@layer a{.x{display:block!important}}
.x{display:none}@scope (#c){.x{display:block}}
.x{display:none}.x:lang(en){display:block}
.x{display:none}.x:dir(ltr){display:block}
.x{display:none}.x:not(:is(:not(p))){display:block}
""".strip().splitlines()


def page(css: str = "", *, style: str = "", body: str = "") -> str:
    attribute = f' style="{style.replace(chr(34), "&quot;")}"' if style else ""
    text = body or (
        f'<div id="c" class="d"><p class="before">{SHOWN}</p>'
        f'<p class="x" id="i" data-k="v" lang="en"{attribute}>{SECRET}<b>!</b></p></div>'
    )
    return f"<html><head><style>{css}</style></head><body><h1>Top</h1>{text}</body></html>"


@pytest.mark.parametrize("style", INLINE)
def test_text_that_an_inline_style_hides_is_not_stored(convert: Convert, style: str) -> None:
    document = convert(page(style=style))
    assert (SECRET in document.markdown, SHOWN in document.markdown) == (False, True)


@pytest.mark.parametrize("css", SHEETS)
def test_text_that_a_style_sheet_of_the_page_hides_is_not_stored(
    convert: Convert, css: str
) -> None:
    document = convert(page(css))
    assert (SECRET in document.markdown, SHOWN in document.markdown) == (False, True)


@pytest.mark.parametrize("css", SHEETS)
def test_text_that_a_style_sheet_hides_is_not_in_the_html_either(
    convert: Convert, css: str
) -> None:
    assert SECRET not in convert(page(css)).html


@pytest.mark.parametrize("style", [*INNOCENT_INLINE, *UNDECIDED_INLINE])
def test_text_that_an_inline_style_does_not_plainly_hide_is_stored(
    convert: Convert, style: str
) -> None:
    assert SECRET in convert(page(style=style)).markdown


@pytest.mark.parametrize("css", [*INNOCENT_SHEETS, *UNDECIDED_SHEETS])
def test_text_that_style_sheets_do_not_plainly_hide_is_stored(convert: Convert, css: str) -> None:
    assert SECRET in convert(page(css)).markdown


@pytest.mark.parametrize(
    ("css", "body"),
    [
        ("", "<p role=tabpanel hidden>{}</p>"),
        (".t{{display:none}}", "<div role=tabpanel class=t>{}</div>"),
        (".t{{display:none}}", "<a href='#two'>Two</a><div id=two class=t>{}</div>"),
        (
            ".t{{display:none}}",
            "<button aria-controls=two>Two</button><div id=two class=t>{}</div>",
        ),
        (
            ".t{{display:none}}",
            "<button onclick=\"openTab(event, 'two')\">Two</button><div id=two class=t>{}</div>",
        ),
        *(
            (
                ".t{{display:none}}",
                f'<i onclick="{said}">Two</i><p>A.</p><p>B.</p><div id=two class=t>{{}}</div>',
            )
            for said in (
                "two.style.display='block'",
                "two.classList.toggle('x')",
                "toggle(`two`)",
                "show([two])",
            )
        ),
        (".t{{max-height:0;overflow:hidden}}", "<button>More</button><div class=t>{}</div>"),
        (".t{{display:none}}", "<h3><button>More</button></h3><div class=t>{}</div>"),
        (
            ".t{{display:none}} input:checked ~ .t{{display:block}}",
            "<input type=radio id=r><label for=r>R</label><div class=t>{}</div>",
        ),
        (
            ".t{{opacity:0;transition:1s}} .t.shown{{opacity:1}}",
            "<div class=t>{}</div><script>each.classList.add('shown')</script>",
        ),
        (
            ".t{{display:none}} .t.active{{display:block}}",
            '<div class=t>{}</div><script>t.classList.toggle("active")</script>',
        ),
        (
            "details:not([open]) > p{{display:block}}",
            "<details><summary>S</summary><p>{}</p></details>",
        ),
    ],
)
def test_text_one_click_away_is_stored(convert: Convert, css: str, body: str) -> None:
    text = f"<p>{SHOWN}</p>{body.format(SECRET)}"
    assert SECRET in convert(page(css.replace("{{", "{").replace("}}", "}"), body=text)).markdown


@pytest.mark.parametrize(
    "body",
    [
        f"<div style='visibility:hidden'>{SECRET}<p style='visibility:visible'>{SHOWN}</p></div>",
        f"<div style='font-size:0'>{SECRET}<p style='font-size:16px'>{SHOWN}</p></div>",
        f"<div style='color:#fff'>{SECRET}<p style='color:#000'>{SHOWN}</p></div>",
        f"<p>{SHOWN}</p><div style='color:#fff'><p style='color:inherit'>{SECRET}</p></div>",
        f"<p>{SHOWN}</p><div style='font-size:0'><p style='font-size:100%'>{SECRET}</p></div>",
        f"<p>{SHOWN}</p><p style='visibility:hidden'><b style='visibility:inherit'>{SECRET}</b>",
        f"<p>{SHOWN}</p><style media='screen, print'>.q{{display:none}}</style><p class=q>{SECRET}",
        f"<p>{SHOWN}</p><font color=white>{SECRET}</font>",
        f"<p>{SHOWN}</p><table bgcolor=#222222><tr><td style='color:#222'>{SECRET}</table>",
        f"<p>{SHOWN}</p><style media=screen>.q{{display:none}}</style><p class=q>{SECRET}</p>",
        f"<p>{SHOWN}</p><svg><style>.q{{display:none}}</style></svg><p class=q>{SECRET}</p>",
    ],
)
def test_only_the_hidden_part_of_an_element_is_left_out(convert: Convert, body: str) -> None:
    document = convert(page(body=body))
    assert (SECRET in document.markdown, SHOWN in document.markdown) == (False, True)


@pytest.mark.parametrize(
    "body",
    [
        f"<style media=print>.q{{display:none}}</style><p class=q>{SECRET}</p>",
        f"<noscript><style>.q{{display:none}}</style></noscript><p class=q>{SECRET}</p>",
        f"<template><style>.q{{display:none}}</style></template><p class=q>{SECRET}</p>",
        f"<style type=text/x-other>.q{{display:none}}</style><p class=q>{SECRET}</p>",
        f"<table bgcolor=black><tr><td><font color=white>{SECRET}</font></table>",
        f"<body bgcolor=black text=white><p>{SECRET}</p>",
        f"<pre>.q{{display:none}}</pre><p class=q>{SECRET}</p>",
        f"<link rel=stylesheet media=print href='data:text/css,.q%7Bdisplay:none%7D'>"
        f"<p class=q>{SECRET}</p>",
    ],
)
def test_sheet_that_a_screen_does_not_use_hides_nothing(convert: Convert, body: str) -> None:
    assert SECRET in convert(page(body=body)).markdown


MANY = "".join(f"<p class='a b{number}'>Sentence {number}.</p>" for number in range(3_000))
HOSTILE = {
    "chains": ".a .a .a .a .a .a .a .a .zzz i{display:none}",
    "siblings": ".a ~ .a ~ .a ~ .a{opacity:1}",
    "counted": "p:nth-child(3n+7):nth-last-of-type(2n){opacity:.5}" * 20,
    "has": ":not(:has(:not(:has(*)))){opacity:1}" * 50,
    "rules": "".join(f".b{number}{{display:block}}" for number in range(9_000)),
    "universal": "* * * * *{opacity:1}" * 300,
    "variables": ":root{--a0:x x;"
    + "".join(f"--a{n}:var(--a{n - 1}) var(--a{n - 1});" for n in range(1, 40))
    + "}p{font-size:var(--a39)}",
    "circle": ":root{--a:var(--b);--b:var(--a)}p{display:var(--a)}",
    "calculation": "p{font-size:calc(" + "(" * 30 + "1px" + ")" * 30 + ")}",
    "numbers": "p{font-size:1e999px;opacity:1e999;zoom:calc(1/0)}",
    "imports": "@import 'data:text/css,@import %27data:text/css,p{}%27;';" * 200,
    "unclosed": "p{" * 38,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_style_sheet_neither_stops_nor_empties_the_page(
    convert: Convert, kind: str
) -> None:
    started = time.process_time()
    document = convert(page(HOSTILE[kind], body=f"<div id=q>{MANY}</div>"))
    assert "Sentence 2999." in document.markdown
    assert time.process_time() - started < 30


@pytest.mark.parametrize(
    "css",
    [
        pytest.param(".a{color:red}" * 90_000, id="long"),
        pytest.param("@media all{" * 3_000, id="media"),
        pytest.param("p{" * 3_000, id="nested"),
        pytest.param("p:is(" * 3_000 + ")" * 3_000 + "{}", id="functions"),
        pytest.param(f"@import 'data:text/css,{'p:is(' * 3_000}';", id="imported"),
        pytest.param(".a:not(.z){opacity:1}" * 20_000, id="rules"),
        pytest.param(f"{','.join(['.a'] * 60)}{{{','.join(['.b'] * 60)}{{}}}}", id="products"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_too_large_to_follow_is_left_aside_and_a_small_sheet_still_hides(
    convert: Convert, css: str, is_first: bool
) -> None:
    small, large = "<style>.x{display:none}</style>", f"<style>{css}</style>"
    head = small + large if is_first else large + small
    body = f"<p>Shown before.</p><p class=x>{SECRET}</p><div id=q>{MANY}</div>"

    started = time.process_time()
    text = convert(f"<title>Page</title>{head}<body>{body}").markdown

    assert (SECRET in text, "Shown before." in text, "Sentence 2999." in text) == (
        False,
        True,
        True,
    )
    assert time.process_time() - started < 10


MANY_HIDDEN = "<p class=x>Text.</p>" * 3_000
DEEP = "<div>" * 400
# Pages whose own text is shown, and that take long when every element is judged anew.
SLOW = {
    "classes to come": ("".join(f".x.z{n}{{display:none}}" for n in range(9_000)), MANY_HIDDEN),
    "states to come": ("".join(f".x[aria-a{n}]{{top:0}}" for n in range(9_000)), MANY_HIDDEN),
    "blocks to come": (
        "".join(f".x.z{n}{{display:none;top:{n}px}}" for n in range(9_000)),
        "".join(f"<p class=x style='margin:{n}px'>Text.</p>" for n in range(3_000)),
    ),
    "long blocks to come": (
        ",".join(f".n{n}.z" for n in range(99))
        + f"{{{';'.join(f'--{n}:1' for n in range(3_000))}}}",
        f"<p class='x {' '.join(f'n{n}' for n in range(99))}'>Text.</p>" * 900,
    ),
    "grounds": ("", DEEP + "<p style=color:#fff>Text.</p>" * 20_000),
    "inherited": ("", "<div style=color:#fff>" * 400 + "<p style=color:inherit>Text.</p>" * 9_000),
    "media": ("@media all{" * 40_000 + ".a{color:red}" * 30_000, MANY_HIDDEN),
}


@pytest.mark.parametrize("kind", SLOW)
def test_page_with_much_that_is_hidden_is_stored_in_time(convert: Convert, kind: str) -> None:
    css, body = SLOW[kind]
    head = f"<style>.x{{display:none}}</style><style>{css}</style><script>run()</script>"
    shown = f"<p>{SHOWN}</p>" * 9

    started = time.process_time()
    text = convert(f"<title>Page</title>{head}<body>{shown}{body}").markdown

    assert SHOWN in text
    assert time.process_time() - started < 8


@pytest.mark.parametrize("name", [".later{n}", ".a .later{n}", ".later{n} ~ .b{n}"])
def test_page_with_a_script_is_stored_however_many_rules_no_element_has_use_for(
    convert: Convert, name: str
) -> None:
    rules = "".join(
        f"{name.format(n=n)}{{display:block;position:relative;top:0}}" for n in range(9_000)
    )
    css = f".x{{position:absolute;left:-9999px}}{rules}"
    body = f"<p class=x>{SECRET}</p><div>{MANY}</div>"

    started = time.process_time()
    text = convert(f"<title>Page</title><style>{css}</style>{SCRIPT}<body>{body}").markdown

    assert (SECRET in text, "Sentence 2999." in text) == (False, True)
    assert time.process_time() - started < 10


def test_pictures_written_into_a_sheet_do_not_count(convert: Convert) -> None:
    css = f".y{{background:url(data:image/png;base64,{'A' * 3_000_000})}} .x{{display:none}}"
    assert SECRET not in convert(page(css)).markdown


OUTSIDE = "<link rel=stylesheet href=/site.css>"
SCRIPT = "<script src=/main.js></script>"
# Pages of good faith: by name what their heads say, and what they hold with the text in it.
HONEST = {
    "white on what a sheet from elsewhere paints": (OUTSIDE, "<div style='color:#fff'>{}</div>"),
    "white inside a painted class": (
        OUTSIDE,
        "<div style='background:#fff'><p class=card><b style='color:#fff'>{}</b></p></div>",
    ),
    "colour of elsewhere on a known background": (
        OUTSIDE + "<style>.x{background:#000}</style>",
        "<p class=x>{}</p>",
    ),
    "white heading row": (
        OUTSIDE,
        "<table style='background:#fff'><tr><th style='color:#fff'>{}<tr><td>1</table>",
    ),
    "script that may style": (SCRIPT, "<p class=bg-black style='color:#fff'>{}</p>"),
    "sheet that is imported": (
        "<style>@import url(/a.css); .x{color:#fff}</style>",
        "<p class=x>{}</p>",
    ),
    "picture of an old page": ("", "<table background=b.jpg><tr><td><font color=white>{}</table>"),
    "text over a picture": (
        "",
        "<img src=a.jpg><div style='position:absolute;top:9px;color:#fff'>{}</div>",
    ),
    "dark scheme": (
        "<meta name=color-scheme content=dark>",
        "<p style='color:#fff'>{}</p>",
    ),
    "dark scheme of the sheet": (
        "<style>:root{color-scheme:dark}p{color:#fff}</style>",
        "<p>{}</p>",
    ),
    "blanks between boxes taken out": (OUTSIDE, "<div style='font-size:0'><p>{}</p></div>"),
    "text in rem of one pixel": (
        "<style>html{font-size:1px}p{font-size:16rem}</style>",
        "<p>{}</p>",
    ),
    "amp": (
        "<style amp-boilerplate>body{visibility:hidden;-webkit-animation:-amp-start 8s steps(1,end)"
        " 0s 1 normal both;animation:-amp-start 8s steps(1,end) 0s 1 normal both}@keyframes"
        " -amp-start{from{visibility:hidden}to{visibility:visible}}</style><noscript><style>body{"
        "animation:none}</style></noscript>",
        "<p style='margin:0'>{}</p>",
    ),
    "hidden root": ("<style>html{visibility:hidden}</style>", "<p>{}</p>"),
    "hidden root without a box": ("<style>html,body{display:none}</style>", "<p>{}</p>"),
    "faded body": ("<style>body{opacity:0}p{opacity:.9}</style>", "<p>{}</p>"),
    "shrunk body": ("<style>body{transform:scale(0)}p{zoom:1}</style>", "<p>{}</p>"),
    "body without size": ("<style>body{font-size:0}p{color:#000}</style>", "<p>{}</p>"),
    "body without colour": ("<style>body{color:transparent}p{top:0}</style>", "<p>{}</p>"),
    "body aside": ("<style>body{position:absolute;left:-9999px}</style>", "<p>{}</p>"),
    "cloaked by an attribute": (
        SCRIPT + "<style>[v-cloak]{display:none}</style>",
        "<div v-cloak><p>{}</p></div>",
    ),
    "cell that is cut short": (
        "<style>td{max-width:0;overflow:hidden;text-overflow:ellipsis}</style>",
        "<table><tr><th>Name<td>{}</table>",
    ),
    "colour inside of what others may style": (
        OUTSIDE,
        "<p style='background:#eee'><span style='color:#eee'>{}</span></p>",
    ),
    "cloaked by a class": (
        SCRIPT + "<style>.ng-cloak,[ng-cloak]{display:none!important}</style>",
        "<div class=ng-cloak><p>{}</p></div>",
    ),
    "page without scripts": (
        SCRIPT + "<style>.no-js .x{display:none}</style>",
        "<div class=no-js><p class=x>{}</p></div>",
    ),
    "page with scripts": (
        SCRIPT + "<style>.js .x{opacity:0}</style>",
        "<div><p class=x>{}</p></div>",
    ),
    "guard around everything": (
        SCRIPT + "<style>#app{visibility:hidden}</style>",
        "<div id=app><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div>",
    ),
    "guard of the element itself": (
        SCRIPT,
        "<main style='display:none'><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</main>",
    ),
    "guard lifted by a sheet": (
        OUTSIDE + "<style>.page{opacity:0}</style>",
        "<div class=page><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div>",
    ),
    "guard of many sections": (
        SCRIPT + "<style>.s{opacity:0}.s:first-child{margin:0}</style>",
        "<p class=s>{}</p>" + "<p class=s>More of the page.</p>" * 20,
    ),
    "guard by place": (
        SCRIPT + "<style>.s{position:absolute;left:-9999px}</style>",
        "<div class=s><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div>",
    ),
    "guard of letters": (
        SCRIPT + "<style>.s{color:transparent}</style>",
        "<div class=s><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div>",
    ),
    "guard inside a guard": (
        SCRIPT + "<style>.s{opacity:0}.s>div{display:none}</style>",
        "<div class=s><div><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div></div>",
    ),
    "page behind an open dialog": (
        "",
        "<div aria-hidden=true><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div>",
    ),
    "page shown by its script": (
        SCRIPT,
        "<div hidden><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div>",
    ),
    "page that arrives in pieces": (
        "",
        '<div hidden id="S:0"><p>{}</p></div><script>$RC("B:0","S:0")</script>',
    ),
    "fading by attribute": (
        SCRIPT + "<style>[data-aos]{opacity:0}</style>",
        "<p data-aos=fade-up>{}</p>",
    ),
    "fading by class": (SCRIPT + "<style>.wow{opacity:0}</style>", "<p class=wow>{}</p>"),
    "fading by transition": (
        SCRIPT + "<style>.x{opacity:0;transition:opacity 1s}</style>",
        "<p class=x>{}</p>",
    ),
    "fading by movement": (
        SCRIPT,
        "<p style='opacity:0;transform:translateY(20px) translateZ(0)'>{}</p>",
    ),
    "loaded late": (
        SCRIPT + "<style>.lazy{visibility:hidden}.lazy.loaded{visibility:visible}</style>",
        "<p class=lazy>{}</p>",
    ),
    "shown by a class of the page": (
        SCRIPT + "<style>.x{display:none}.ready .x{display:block}</style>",
        "<p class=x>{}</p>",
    ),
    "rendered late": ("<style>.x{content-visibility:auto}</style>", "<p class=x>{}</p>"),
    "tab that a script hid": (
        "<script>function show(event, id) {{}}</script>",
        "<button onclick=\"show(event, 'two')\">Two</button>"
        "<div id=two style='display:none'>{}</div>",
    ),
    "tab panel that a script hid": (
        SCRIPT,
        "<div role=tabpanel style='display:none'>{}</div>",
    ),
}


@pytest.mark.parametrize("kind", HONEST)
def test_real_text_of_an_honest_page_is_not_lost(convert: Convert, kind: str) -> None:
    head, body = HONEST[kind]
    html = f"<html><head>{head}</head><body><p>{SHOWN}</p>{body.format(SECRET)}</body></html>"
    assert SECRET in convert(html).markdown


STILL_HIDDEN = {
    "cloak that no script takes away": (
        "<style>[v-cloak],.preload{display:none}</style>",
        "<div v-cloak>{0}</div><div class=preload>{0}</div>",
    ),
    "faded without a transition": (SCRIPT, "<p style='opacity:0;transition:none'>{}</p>"),
    "both colours on one element": (OUTSIDE, "<p style='color:#fff;background:#fff'>{}</p>"),
    "no colour at all": (OUTSIDE, "<div style='color:transparent'><p>{}</p></div>"),
    "inline": (OUTSIDE + SCRIPT, "<p style='display:none'>{}</p>"),
    "outside of the page": (SCRIPT, "<p style='position:absolute;left:-9999px'>{}</p>"),
    "faded for good": (OUTSIDE + SCRIPT, "<p style='opacity:.01'>{}</p>"),
    "small": (OUTSIDE, "<p style='font-size:1px'>{}</p>"),
    "rule of the page": (SCRIPT + "<style>.x{display:none}</style>", "<p class=x>{}</p>"),
    "rule with a class that is worn": (
        SCRIPT + "<style>.x{display:none}.x.y{display:none}.y.z{opacity:1}</style>",
        "<p class='x y'>{}</p>",
    ),
    "most of a page that nothing changes": (
        "<style>.x{display:none}</style>",
        "<div class=x><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div>",
    ),
    "hidden attribute of a page that nothing changes": (
        "",
        "<div hidden><p>{}</p>" + "<p>More of the page.</p>" * 20 + "</div>",
    ),
    "hidden inside a guard": (
        SCRIPT + "<style>body{opacity:0}.x{display:none}</style>",
        "<p class=x>{}</p>",
    ),
    "link to a page of its name": (
        "<style>.x{display:none}</style>",
        "<a href=two data-tab=one>Two</a><p>Between.</p><p>Both.</p><div id=two class=x>{}</div>",
    ),
    "no script": ("", "<button onclick=x>Two</button><p id=x style='display:none'>{}</p>"),
}


@pytest.mark.parametrize("kind", STILL_HIDDEN)
def test_what_styles_of_the_page_hide_stays_hidden_beside_sheets_and_scripts(
    convert: Convert, kind: str
) -> None:
    head, body = STILL_HIDDEN[kind]
    shown = f"<p>{SHOWN}</p>" + "<p>Something that everybody sees.</p>" * 10
    html = f"<html><head>{head}</head><body>{shown}{body.format(SECRET)}</body></html>"
    document = convert(html)
    assert (SECRET in document.markdown, SHOWN in document.markdown) == (False, True)
