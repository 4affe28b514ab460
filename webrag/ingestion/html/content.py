"""Decides for each block of a page, by fitted weights, whether it is content."""

import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from selectolax.lexbor import LexborNode

from webrag.ingestion.addresses import link_target
from webrag.ingestion.characters import folded
from webrag.ingestion.html.tree import ancestors, attribute, drop, following, preceding, select

_INLINE: Final = frozenset(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math q
    rp rt ruby s samp small span strike strong sub sup time tt u var wbr br input""".split()  # noqa: SIM905
)
_AROUND: Final = frozenset(
    """article aside blockquote dl figure footer form header main nav ol pre section table ul
    details""".split()  # noqa: SIM905
)
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_TITLES: Final = f"{', '.join(sorted(_HEADINGS))}, dt"
_LISTS: Final = ("ul", "ol", "dl")
# What a page without headings has in their place: what has a name to lead to.
_NAMED: Final = "p[id], a[id]:not([href]), a[name]:not([href])"
# How many elements around a block tell something by their names.
_NAMED_LEVELS: Final = 5
# `benchmarks/fit_content.py` prints what other values keep; documentation keeps .994 of its words.
_THRESHOLD: Final = 0.0
# Of shorter pages less is known, of the shortest too little.
_SHORT_THRESHOLD: Final = -0.75
_SHORT_BLOCKS: Final = 15
_LEAST_BLOCKS: Final = 5
# Such as "Related articles", above a comment that stays.
_HEADING_THRESHOLD: Final = -2.0
_MOST_SHARE: Final = 0.9
_PARTLY_LINKED: Final = 2
_ALL_LINKED: Final = 4
# What neither a menu nor a teaser is made of.
_KEPT: Final = frozenset({"pre", "dt", "dd", "dl", "math", "figcaption"})
# What decides with the others of its kind.
_HOLDERS: Final = {"li": ("ul", "ol"), "td": ("table",), "th": ("table",)}
_KEPT_NAMES: Final = frozenset(
    f"name {name}"
    for name in (
        *("footnote", "footnotes", "citation", "admonition", "callout"),
        *("columnheader", "rowheader", "gridcell", "rowgroup"),
        *("memname", "fragment"),  # Doxygen's declarations and code
    )
)
_NAMING: Final = ("class", "id", "role", "itemprop")
_NAME: Final = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
_WORDS: Final = re.compile(r"[^\W\d_]+")
_LEAST_PROSE: Final = 40
# Of so many texts of one kind this share keeps all: they score low for what is around each of them.
_STAYING_SHARE: Final = 1 / 3
_LEAST_ALIKE: Final = 10
# And of so many of any length this share does.
_STAYING_COUNT: Final = 0.75
_LEAST_COUNTED: Final = 4
_MENU_SHARE: Final = 0.9
_LEAST_ENTRIES: Final = 5
# Beside a menu; a map of the site that names itself has less.
_LEAST_BESIDE: Final = 200
# Fewer entries than these are no table of contents.
_LEAST_LISTED: Final = 2
# Of the entries of one; the others word their titles otherwise.
_TITLED_SHARE: Final = 0.75
_LABEL: Final = re.compile(r"\s*[^\W_]{1,2}[:.)\uff1a]\s")
_LEAST_WAYS_BACK: Final = 3
# Letters of what stands above one.
_CONTENTS_LABELS: Final = frozenset(
    """contents contentshide tableofcontents pagecontents articlecontents toc onthispage
    inthisarticle inthischapter inthisdocument inthisguide inthispage inthispost inthissection
    jumpto jumptosection inhalt inhaltsverzeichnis inhaltsübersicht aufdieserseite
    sommaire tabledesmatières surcettepage contenido contenidos índice tabladecontenidos
    enestapágina conteúdo sumário nestapágina indice indicedeicontenuti sommario inhoud
    inhoudsopgave innehåll indhold innhold sisällys obsah spistreści tartalom içindekiler
    содержание оглавление зміст 目次 目录 目錄 차례 목차""".split()  # noqa: SIM905
)
# What leads to the page before and behind, and what stands beside it.
_DIRECTIONS: Final = frozenset(
    """prev previous next back forward zurück weiter vorherige nächste précédent précédente suivant
    suivante anterior siguiente próximo precedente successivo назад вперёд вперед далее
    前へ 次へ 前のページ 次のページ 上一页 下一页 上一頁 下一頁""".split()  # noqa: SIM905
)
_PAGER_WORDS: Final = _DIRECTIONS | frozenset(
    """up top home contents index toc table of chapter section page book part article main
    inhalt inhaltsverzeichnis sommaire índice indice содержание 目次 目录""".split()  # noqa: SIM905
)
_MOST_PAGER_CHARS: Final = 300
_MOST_PAGER_NODES: Final = 60  # on either side of a link; all of a long run take quadratic time
# There these words are names, as of a method `next`; so is a lone one in an item or a row.
_NAMED_IN: Final = frozenset({*_HEADINGS, "code", "dt", "pre"})
_CELLS: Final = frozenset({"dd", "li", "td", "th", "tr"})
# What holds content of its own beside a list, or is built of all that stands in it.
_NO_FRAMES: Final = frozenset({"table", "tr", "td", "th", "dl", "dd", "li", "pre", "code"})
# What stands beside links: "« Back", "Home | News", "Reply »".
_MARKS: Final = frozenset(" \t\r\n\xa0|¦«»‹›←→↑↓⇐⇒◀▶◄►◂▸▾▴·•●∙×✕✖")  # noqa: RUF001
_MOST_MARKS: Final = 4
_MARKED: Final = frozenset({"div", "p", "li", "section"})
# What a menu's entries, and headings above teasers, are not longer than.
_MOST_WORDS: Final = 9
_MOST_PHRASE: Final = 3
_OUTER: Final = "outer {0} size {1}|outer {0} links {2}|outer {0} plain {3} {4}"
_NEAR: Final = "near {0} {1}|near {0} {2} {3}|far {0} {4}"
_SENTENCE: Final = re.compile(r"[.!?:;\u3002\uff01\uff1f\u2026][\"'\u201d\u2019\xbb)\]]*\s*\Z")


class _Box:
    """An element that begins a block, with the text right in it and that of all it holds."""

    __slots__ = (
        "all_chars", "all_links", "all_signs", "around", "chars", "inner", "kind", "level", "links",
        "names", "node", "outer", "parts", "prose", "signs", "tag", "tags",
    )  # fmt: skip

    def __init__(self, node: LexborNode, outer: "_Box | None") -> None:
        self.node = node
        self.outer = outer
        # Itself and the nearest elements around it, as far as they tell of it.
        self.around: tuple[_Box, ...] = (
            self,
            *(outer.around[: _NAMED_LEVELS - 1] if outer else ()),
        )
        self.parts: list[str] = []
        self.chars = self.links = self.all_chars = self.all_links = self.prose = self.level = 0
        self.signs = self.all_signs = 0  # such as the number beside an entry of a menu
        self.tag = tag = node.tag or ""
        above = outer.tags if outer else frozenset()
        self.tags: frozenset[str] = above | {tag} if tag in _AROUND else above
        attributes = node.attributes
        self.kind = f"{tag} {attributes.get('class') or ''}"
        named = (
            " ".join([attributes.get(name) or "" for name in _NAMING])[:400] if attributes else ""
        )
        self.names = _words_of(named)
        self.inner: dict[str, int] = {}  # how many boxes of a kind stand right in it
        if outer is not None:
            outer.inner[self.kind] = outer.inner.get(self.kind, 0) + 1


@lru_cache(maxsize=10_000)
def _words_of(names: str) -> frozenset[str]:
    return frozenset(f"name {word.lower()}" for word in _NAME.findall(names))


class Block(NamedTuple):
    """A box with text of its own, and what tells of it."""

    box: _Box
    text: str
    features: list[str]


def remove_unwanted(root: LexborNode, address: str, base_url: str) -> None:
    """Remove menus, teasers, lists of related pages and the like from a page's main element.

    Of pages with little text, and of those of which little would be left, only menus of the site
    and lone marks are removed: an index is a page of links.
    """
    boxes = boxes_of(root)
    if menus := _menus(boxes, address, base_url):
        drop(menus)
        boxes = boxes_of(root)
    drop([*_around_content(boxes), *_lone_marks(boxes, address)])


def _around_content(boxes: Sequence[_Box]) -> list[LexborNode]:
    blocks = read_blocks(boxes)
    if len(blocks) < _LEAST_BLOCKS:
        return []
    doomed = _unwanted(blocks)
    whole = sum(block.box.chars for block in blocks)
    if sum(block.box.chars for block in blocks if id(block.box) in doomed) > _MOST_SHARE * whole:
        return []
    kept = {id(box) for box in boxes if box.chars and id(box) not in doomed}
    for box in reversed(boxes):
        if id(box) in kept and box.outer is not None:
            kept.add(id(box.outer))
    return [box.node for box in boxes if box.all_chars and id(box) not in kept]


def remove_contents(root: LexborNode) -> None:
    """Remove tables of contents: lists of links whose words the page has as titles below, mostly.

    Numbered lists of such links may also be rankings or steps, so of these only those go that the
    page calls its contents, or that stand below a title which stands again above what they list.
    """
    below = Counter(_title(title) for title in select(root, "h1"))
    doomed: list[LexborNode] = []
    for node in reversed(select(root, ", ".join((_TITLES, _NAMED, *_LISTS)))):
        if node.tag not in _LISTS:
            below[_title(node)] += 1
        elif len(below) > _LEAST_LISTED and _is_of_links(node, below):
            frame = _frame(node, root)
            label = next(filter(_letters, preceding(frame)), None)
            if label is not None and not _labels_contents(label, below):
                label = None
            is_numbered = any(each.tag == "ol" for each in (node, *ancestors(node)))
            if label is not None or _letters(frame) != _letters(node) or not is_numbered:
                doomed.append(frame)
                doomed += [label] if label is not None and label.tag != "h1" else []
    drop(doomed)


def remove_ways_back(root: LexborNode) -> None:
    """Remove paragraphs that say nothing but the same link upwards, such as to the page's top."""
    found: defaultdict[tuple[str, str], list[LexborNode]] = defaultdict(list)
    inside = {attribute(node, "id") for node in select(root, "[id]")}
    above: set[str] = set()
    for node in select(root, "[id], a[href^='#']"):
        above.add(attribute(node, "id"))
        target = attribute(node, "href").removeprefix("#")
        if node.tag != "a" or (target in inside and target not in above):
            continue
        around = next((up for up in ancestors(node) if up.tag not in _INLINE), None)
        told = _letters(node)
        if told and around is not None and around.tag in ("p", "div") and _letters(around) == told:
            found[target, told].append(around)
    drop(node for alike in found.values() if len(alike) >= _LEAST_WAYS_BACK for node in alike)


def remove_pagers(root: LexborNode) -> None:
    """Remove what only leads to the pages before and behind, and up to the contents.

    Links within the page are none of it: a class may have methods named `next` and `previous`. Nor
    are links in code and titles, and one that names an item of a list or a row of a table.
    """
    doomed: list[LexborNode] = []
    known: dict[int, bool] = {}
    for link in select(root, "a[href]"):
        if _is_direction(link):
            doomed += _pager(link, root, known)
    drop(doomed)


def _pager(link: LexborNode, root: LexborNode, known: dict[int, bool]) -> list[LexborNode]:
    """The largest element around a link that is a pager, or else its line, if that is one."""

    def is_pager(node: LexborNode) -> bool:
        if node.mem_id not in known:
            known[node.mem_id] = _is_pager([node])
        return known[node.mem_id]

    around = list(itertools.takewhile(lambda up: up.mem_id != root.mem_id, ancestors(link)))
    if any(up.tag in _NAMED_IN for up in around):
        return []
    line = _line(link)
    beyond = list(itertools.dropwhile(lambda up: up.tag in _INLINE, around))
    pagers = list(itertools.takewhile(is_pager, beyond))
    found = pagers[-1:] or (line if _is_pager(line) else [])
    held_in = beyond[max(len(pagers) - 1, 0) :]
    cell = next((up for up in held_in if up.tag in _CELLS), None)
    return [] if cell is not None and _is_named_by_one(cell) else found


def _is_named_by_one(cell: LexborNode) -> bool:
    """Tell a short item or row with a single link that is named as those of pagers are."""
    row = cell.parent if cell.tag in ("td", "th") else None
    whole = row or cell
    named = [link for link in select(whole, "a[href]") if _PAGER_WORDS.issuperset(_words(link))]
    return len(named) < 2 and len(whole.text()) <= _MOST_PAGER_CHARS


def _line(link: LexborNode) -> list[LexborNode]:
    """A link and the text and links beside it, up to the blocks before and behind."""
    node = link
    while node.parent is not None and node.parent.tag in _INLINE:
        node = node.parent
    sides = (itertools.takewhile(_is_inline, side(node)) for side in (preceding, following))
    return [node, *(each for side in sides for each in itertools.islice(side, _MOST_PAGER_NODES))]


def _is_inline(node: LexborNode) -> bool:
    return not node.is_element_node or (node.tag in _INLINE and node.tag != "br")


def _is_direction(link: LexborNode) -> bool:
    first = _WORDS.search(link.text(separator=" "))
    if first is not None and first[0].casefold() not in _PAGER_WORDS:
        return False
    words = _words(link).keys()
    is_named = words <= _PAGER_WORDS and not words.isdisjoint(_DIRECTIONS)
    return is_named and not attribute(link, "href").startswith("#")


def _is_pager(nodes: Sequence[LexborNode]) -> bool:
    """Tell nothing but links named by where they lead, or by titles beside a word for that."""
    if sum(len(node.text()) for node in nodes) > _MOST_PAGER_CHARS:
        return False
    if any(select(node, ", ".join(_HEADINGS)) for node in nodes):
        return False
    links = [link for node in nodes for link in (node, *select(node, "a")) if link.tag == "a"]
    numbered = [link for link in links if _words(link) and any(map(str.isdigit, link.text()))]
    if len(numbered) > _LEAST_LISTED:  # contents, such as "Chapter 1"
        return False
    named = [link for link in links if not attribute(link, "href").startswith("#")]
    beside = sum(map(_words, nodes), Counter()) - sum(map(_words, links), Counter())
    is_told = not beside.keys().isdisjoint(_DIRECTIONS)
    names = () if is_told else itertools.chain.from_iterable(map(_words, named))
    return beside.keys() <= _PAGER_WORDS and _PAGER_WORDS.issuperset(names)


def _words(node: LexborNode) -> Counter[str]:
    pictures = [attribute(each, "alt") for each in select(node, "img")]
    return Counter(
        word.casefold() for word in _WORDS.findall(" ".join([node.text(separator=" "), *pictures]))
    )


def _is_of_links(entries: LexborNode, titles: Mapping[str, int]) -> bool:
    links = select(entries, "a[href^='#']")
    if len(links) <= _LEAST_LISTED or select(entries, ", ".join(_HEADINGS)):
        return False
    own = Counter(_title(entry) for entry in select(entries, "dt"))
    told = [_title(link) for link in links]
    named = sum(titles.get(title, 0) > own[title] for title in told)
    whole = sum(map(str.isalpha, _letters(entries)))
    return named >= _TITLED_SHARE * len(links) and sum(map(len, told)) >= _MENU_SHARE * whole


def _frame(entries: LexborNode, root: LexborNode) -> LexborNode:
    """The outermost element that holds nothing but a list and its label."""
    frame = entries
    for outer in ancestors(entries):
        beside = _letters(outer).replace(_letters(frame), "", 1)
        is_content = outer.tag in _NO_FRAMES or select(outer, "h1, img, math, pre")
        is_other = beside and beside not in _CONTENTS_LABELS
        if outer.mem_id == root.mem_id or is_content or is_other:
            break
        frame = outer
    return frame


def _labels_contents(label: LexborNode, below: Mapping[str, int]) -> bool:
    is_repeated = label.tag in _HEADINGS and label.tag != "h1" and bool(below.get(_title(label)))
    return is_repeated or _letters(label) in _CONTENTS_LABELS


def _title(node: LexborNode) -> str:
    """The letters of a title without its number or "Q:", which its entry may lack in its link."""
    label = _LABEL.match(text := node.text())
    letters = folded(text[label.end() :] if label else text)
    return letters.lstrip("0123456789") or letters


def _letters(node: LexborNode) -> str:
    return folded(node.text())


def _unwanted(blocks: Sequence[Block]) -> set[int]:
    threshold = _THRESHOLD if len(blocks) >= _SHORT_BLOCKS else _SHORT_THRESHOLD
    weights = _weights()
    title = next((block for block in blocks if block.box.tag == "h1"), None)
    low: dict[int, float] = {}
    for block in blocks:
        score = math.fsum(filter(None, map(weights.get, block.features)))
        is_kept = block is title or not _KEPT.isdisjoint((block.box.tag, *block.box.tags))
        if score < threshold and not is_kept and _KEPT_NAMES.isdisjoint(block.features):
            low[id(block.box)] = score
    plain = [block for block in blocks if block.box.tag not in _HEADINGS]
    doomed = {id(block.box) for block in plain if id(block.box) in low}
    _decide_together(blocks, doomed)
    _keep_alike(plain, doomed)
    doomed -= {id(block.box) for block in _said_between(plain, doomed)}
    doomed -= {id(block.box) for block in plain if _is_within_text(block.box, doomed)}
    doomed -= _alone_below(blocks, low)
    titles = (block.box for block in blocks if block.box.tag in _HEADINGS)
    staying = {_kinds(box) for box in titles if id(box) not in low}
    # A heading goes with what it is a heading of; one that only links, above no text, is a teaser.
    follows_doomed = True
    below: _Box | None = None
    for box in (block.box for block in reversed(blocks)):
        if box.tag not in _HEADINGS:
            follows_doomed, below = id(box) in doomed, box
            continue
        if id(box) in low:
            around = _outward(below.outer) if below else ()
            is_above = any(outer is box.outer for outer in around)
            is_teaser = _linked(box.links, box.chars) == _ALL_LINKED and not is_above
            is_apart = low[id(box)] < _HEADING_THRESHOLD and _kinds(box) not in staying
            if follows_doomed or is_teaser or is_apart:
                doomed.add(id(box))
        below = None
    return doomed


def _menus(boxes: Sequence[_Box], address: str, base_url: str) -> list[LexborNode]:
    """The elements that are all links to many pages, the page itself among them: site menus."""
    root, name = boxes[0], _last_segment(address)
    # The outermost element of links around each box.
    linked: dict[int, _Box | None] = {root.node.mem_id: None}
    for box in boxes[1:]:
        around = linked[box.outer.node.mem_id] if box.outer else None
        told = box.all_chars - box.all_signs
        is_linked = box.all_links and box.all_links >= _MENU_SHARE * told
        linked[box.node.mem_id] = around or (box if is_linked else None)
    found: dict[int, _Box] = {}
    for link in select(root.node, "a[href]"):
        href = attribute(link, "href")
        is_named = _last_segment(href) == name and "#" not in href
        # An empty one leads to the page itself, as browsers read it.
        if href.strip() and not (is_named and link_target(href, base_url) == address):
            continue
        around = linked[next(up.mem_id for up in ancestors(link) if up.mem_id in linked)]
        if around is not None:
            found[around.node.mem_id] = around
    menus = [box for box in found.values() if _is_menu(box, address, base_url)]
    plain = root.all_chars - root.all_links
    plain -= sum(box.all_chars - box.all_links for box in menus)
    return [box.node for box in menus] if plain >= _LEAST_BESIDE else []


def _lone_marks(boxes: Sequence[_Box], address: str) -> list[LexborNode]:
    """Blocks of nothing but arrows, bars or bullets, which stood beside links or controls.

    Or of nothing but the page's address, for its readers on paper. In a cell either is a value.
    """
    plain = (box for box in boxes if 0 < box.chars == box.all_chars and box.tag in _MARKED)
    alone = (box for box in plain if _is_mark(box, address))
    return [box.node for box in alone if not _is_value(box)]


def _is_mark(box: _Box, address: str) -> bool:
    told = "".join(box.parts).strip()
    return (box.chars <= _MOST_MARKS and _MARKS.issuperset(told)) or told == address


def _is_value(box: _Box) -> bool:
    around = itertools.takewhile(lambda outer: outer.all_chars == box.all_chars, _outward(box))
    return any(
        outer.tag in ("td", "th", "dd")
        or attribute(outer.node, "role") in ("cell", "gridcell", "columnheader", "rowheader")
        for outer in around
    )


def _last_segment(address: str) -> str:
    return address.strip().rstrip("/").rpartition("/")[2]


def _is_menu(box: _Box, address: str, base_url: str) -> bool:
    """Tell a menu from a list of the pages below this one, from titles and lists of names."""
    links = select(box.node, "a[href]")
    entries = {attribute(link, "href").partition("#")[0] for link in links} - {""}
    targets = (link_target(entry, base_url) or "" for entry in entries)
    below = sum(target.startswith(f"{address.rstrip('/')}/") for target in targets)
    return (
        len(entries) > _LEAST_ENTRIES
        and 2 * below < len(entries)
        and not box.tags & _KEPT
        and not select(box.node, "h1, pre, dl")
        and len(select(box.node, "code a, a code")) * 2 < len(entries)
    )


def _decide_together(blocks: Sequence[Block], doomed: set[int]) -> None:
    """Let most items of a list, and most cells of a table, decide for all of them.

    Of other elements that are alike, those that stay keep the others.
    """
    for members in _alike(blocks) if len(blocks) < _SHORT_BLOCKS else ():
        if 2 * len(doomed.intersection(members)) <= len(members):
            doomed.difference_update(members)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for box in (block.box for block in blocks):
        kinds = _HOLDERS.get(box.tag, ())
        holders = (outer for outer in _outward(box) if outer.tag in kinds)
        if kinds and (holder := next(holders, None)) is not None:
            groups[id(holder)].append(id(box))
    for members in groups.values():
        if 2 * len(doomed.intersection(members)) > len(members):
            doomed.update(members)
        else:
            doomed.difference_update(members)


def _keep_alike(blocks: Sequence[Block], doomed: set[int]) -> None:
    """Let text with few links stay where most that is in elements of its kinds does.

    Of prose less is enough.
    """
    groups: defaultdict[tuple[str, ...], list[Block]] = defaultdict(list)
    for block in blocks:
        if _linked(block.box.links, block.box.chars) < _PARTLY_LINKED:
            groups[_kinds(block.box)].append(block)
    for members in groups.values():
        prose = [e.box for e in members if e.box.chars >= _LEAST_PROSE and _SENTENCE.search(e.text)]
        whole = sum(box.chars for box in prose)
        staying = sum(box.chars for box in prose if id(box) not in doomed)
        is_prose = len(prose) >= _LEAST_ALIKE and 2 * whole > sum(e.box.chars for e in members)
        count = sum(id(each.box) not in doomed for each in members)
        stay = len(members) >= _LEAST_COUNTED and count >= _STAYING_COUNT * len(members)
        if stay or (is_prose and staying >= _STAYING_SHARE * whole):
            doomed.difference_update(id(each.box) for each in members)


def _alone_below(blocks: Sequence[Block], low: Mapping[int, float]) -> set[int]:
    """The only blocks below headings that stay, which these are headings of."""
    is_heading = [block.box.tag in _HEADINGS for block in blocks]
    return {
        id(block.box)
        for at, block in enumerate(blocks[1:], 1)
        if is_heading[at - 1 : at + 2] in ([True, False], [True, False, True])
        and id(blocks[at - 1].box) not in low
        and block.box.outer is blocks[at - 1].box.outer
        and _linked(block.box.links, block.box.chars) < _ALL_LINKED
    }


def _is_within_text(item: _Box, doomed: Set[int]) -> bool:
    """Tell an item, no link alone, of a list right in an element with much text which stays."""
    holder = item.outer if item.tag == "li" else None
    around = holder.outer if holder is not None and holder.tag in _LISTS else None
    is_said = _linked(item.links, item.chars) < _ALL_LINKED
    is_text = around is not None and around.chars >= _LEAST_BESIDE
    return is_said and is_text and id(around) not in doomed


def _kinds(box: _Box) -> tuple[str, ...]:
    return tuple([outer.kind for outer in box.around[:4]])


def _said_between(blocks: Sequence[Block], doomed: Set[int]) -> list[Block]:
    """The paragraphs that say something between two blocks that stay, and belong to these."""
    return [
        block
        for above, block, below in zip(blocks, blocks[1:], blocks[2:], strict=False)
        if block.box.tag == "p"
        and block.box.chars - block.box.links >= max(_LEAST_PROSE, block.box.links)
        and _SENTENCE.search(block.text)
        and id(above.box) not in doomed
        and id(below.box) not in doomed
    ]


def _alike(blocks: Sequence[Block]) -> Iterable[list[int]]:
    """Blocks of the same place in elements of the same kind that stand beside each other."""
    groups: defaultdict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(list)
    for block in blocks:
        around, kinds = block.box.around[:4], _kinds(block.box)
        for level in range(2, len(around)):
            groups[id(around[level]), kinds[:level]].append(id(block.box))
    return groups.values()


@cache
def _weights() -> Mapping[str, float]:
    text = files("webrag.ingestion.html").joinpath("content_weights.json").read_text("utf-8")
    found: dict[str, float] = json.loads(text)["weights"]
    return found


def read_blocks(boxes: Sequence[_Box]) -> list[Block]:
    """The boxes with text of their own, in the page's order, with their features."""
    own = [box for box in boxes if box.chars]
    texts = [" ".join("".join(box.parts).split()) for box in own]
    shapes = [("none",), *map(_shape, own, texts), ("none",)]
    features = [["bias", *_about(box, text)] for box, text in zip(own, texts, strict=True)]
    under: list[str] = []
    for at, (box, text, each) in enumerate(zip(own, texts, features, strict=True)):
        words = _WORDS.findall(text[:100].lower())
        is_short = len(words) <= _MOST_WORDS
        if is_short:
            each += {f"word {word}" for word in words}
            each += [f"all {' '.join(words)}"] * (len(words) <= _MOST_PHRASE)
        each += {f"under {word}" for word in under}
        if box.tag in _HEADINGS:
            under = words if is_short else []
        each += [f"before {name}" for name in shapes[at]]
        each += [f"after {name}" for name in shapes[at + 2]]
    _add_places(boxes, own, features)
    return list(map(Block, own, texts, features))


def _add_places(boxes: Sequence[_Box], own: Sequence[_Box], features: Sequence[list[str]]) -> None:
    """Add where blocks stand: in the page, below its title, and by the element with most prose."""
    whole, linked = boxes[0].all_chars or 1, boxes[0].all_links
    title = next((at for at, box in enumerate(own) if box.tag == "h1"), None)
    around = {id(box): level for level, box in enumerate(_outward(_densest(boxes)))}
    for box in boxes:
        box.level = around.get(id(box), box.outer.level if box.outer else 0)
    within = [at for at, box in enumerate(own) if box.level == 0] or [0]
    seen = plain = 0
    for at, (box, each) in enumerate(zip(own, features, strict=True)):
        side = "before" if at < within[0] else "after" if at > within[-1] else "in"
        beyond = within[0] - at if side == "before" else at - within[-1]
        far = "none" if title is None else _bin(at - title) if at >= title else "above"
        near, links = min(box.level, 6), _linked(box.links, box.chars)
        each += _told(_NEAR, side, near, min(near, 3), links, _bin(beyond))
        each += (
            f"plain place {10 * plain // (whole - linked or 1)}",
            f"place {10 * seen // whole}",
            f"title {far}",
            f"page {_bin(whole // 200)}",
        )
        plain += box.chars - box.links
        seen += box.chars


def _outward(box: _Box | None) -> Iterator[_Box]:
    while box is not None:
        yield box
        box = box.outer


def _densest(boxes: Sequence[_Box]) -> _Box:
    """The element whose own paragraphs say most, those a level further in counting half."""
    for box in boxes:
        size = box.chars - box.links
        if size > _LEAST_PROSE and box.links < box.chars / 3:
            for level, outer in enumerate(box.around[1:3]):
                outer.prose += size >> level
    return max(boxes, key=lambda box: box.prose)


def boxes_of(root: LexborNode) -> list[_Box]:
    """Every element that begins a block, in the page's order, with the text in it counted."""
    first = _Box(root, None)
    boxes = [first]
    # Asking each node for its parent takes longer.
    waiting = [(root.iter(include_text=True), first, False)]
    while waiting:
        nodes, box, is_link = waiting[-1]
        node = next(nodes, None)
        if node is None:
            waiting.pop()
        elif node.is_text_node:
            text = node.text_content or ""
            length = len(text.strip())
            box.chars += length
            box.links += length * is_link
            if length and not is_link and not any(map(str.isalpha, text)):
                box.signs += length
            box.parts.append(text)
        elif node.is_element_node:
            if node.tag not in _INLINE:
                box = _Box(node, box)
                boxes.append(box)
            leads = node.tag == "a" and "href" in node.attributes  # else it only names a place
            waiting.append((node.iter(include_text=True), box, is_link or leads))
    for box in reversed(boxes):
        box.all_chars += box.chars
        box.all_links += box.links
        box.all_signs += box.signs
        if box.outer is not None:
            box.outer.all_chars += box.all_chars
            box.outer.all_links += box.all_links
            box.outer.all_signs += box.all_signs
    return boxes


@lru_cache(maxsize=10_000)
def _bin(count: int) -> int:
    return min(12, max(0, count).bit_length())


def _linked(links: int, chars: int) -> int:
    share = links / max(1, chars)
    return 0 if not links else 1 if share < 0.2 else 2 if share < 0.5 else 3 if share < 0.9 else 4


def _shape(box: _Box, text: str) -> tuple[str, ...]:
    tag = box.tag
    kind = tag if tag in ("p", "li", "pre", "td") else "h" if tag in _HEADINGS else "x"
    size, links = _bin(len(text) // 8), _linked(box.links, box.chars)
    return f"size {size}", f"links {links}", f"{kind} {links}{size // 3}"


@lru_cache(maxsize=30_000)  # blocks share most of what tells of them
def _told(forms: str, *values: object) -> tuple[str, ...]:
    return tuple(forms.format(*values).split("|"))


def _count(text: str, kind: Callable[[str], bool]) -> int:
    if text.isascii():  # a tenth of the time
        return len(text.encode().translate(None, _others(kind)))
    return sum(map(kind, text))


@cache
def _others(kind: Callable[[str], bool]) -> bytes:
    return bytes(code for code in range(128) if not kind(chr(code)))


def _about(box: _Box, text: str) -> Iterator[str]:
    start = text[:200]
    size, links = _bin(len(text) // 8), _linked(box.links, box.chars)
    letters, digits = (_count(start, kind) for kind in (str.isalpha, str.isdigit))
    letters, digits = 5 * letters // max(1, len(start)), min(2, digits // 3)
    ends = bool(_SENTENCE.search(text))
    yield from _told("tag {0}|links {1}|tag {0} links {1}|size {2}", box.tag, links, size)
    yield from _told("size {0} links {1}|size {0} ends {2}", size, links, ends)
    yield from _told("letters {0}|digits {1} size {2}", letters, digits, size // 3)
    yield f"commas {_bin(text.count(','))}"
    for name in box.tags:
        yield from _told("in {0}|in {0} links {1}", name, links)
    for level, outer in enumerate(box.around[1:4], start=1):
        told = _bin(outer.all_chars // 16), _linked(outer.all_links, outer.all_chars)
        plain = _bin((outer.all_chars - outer.all_links) // 16)
        yield from _told(_OUTER, level, *told, plain, links)
    for level, inner in enumerate(box.around[:4]):
        if inner.outer is not None:
            alike = min(8, inner.outer.inner[inner.kind])
            yield from _told("alike {0} {1}", level, alike)
            if inner.tag not in ("p", "li"):
                whole = _bin(inner.all_chars // 16)
                yield from _told("alike {0} {1} {2} {3}", level, min(alike, 4), whole, links)
    yield from set().union(*(e.names for e in box.around if e.tag not in ("body", "html")))
