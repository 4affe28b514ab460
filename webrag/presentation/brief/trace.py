"""The way a run went from link to link, on a line or as a tree; it judges nothing."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import takewhile
from urllib.parse import urlsplit

from webrag.orchestration.models import EvaluationSignals, ExpansionStep, OrchestrationResult
from webrag.presentation.reports import counted
from webrag.presentation.untrusted import one_line

_URL_CHARS = 160
_ACTIONS = {
    "expand_recall": "searched again with a larger budget",
    "expand_intent": "searched again with other words",
}


@dataclass
class _Node:
    label: str
    children: list["_Node"] = field(default_factory=list)
    depth: int = 0


def expansion_path(result: OrchestrationResult, printed: Set[str]) -> str:
    """Give the way to the `printed` pages, link by link, and why no more were read; "" for none."""
    steps = _steps(result)
    if not steps:
        return ""
    read = {url: step for step in steps for url in step.candidates_expanded}
    ways: list[list[str]] = []
    for page in filter(printed.__contains__, read):
        way = [page]
        while (step := read.get(way[0])) and len(way) <= len(read):
            way.insert(0, step.parents.get(way[0]) or step.source_url)
        ways.append(way)
    went_on = {url for way in ways for url in way[:-1]}
    told: dict[str, list[str]] = {}
    for root, *pages in ways:
        if pages[-1] not in went_on:
            links = " → ".join(_link(url, root, read[url]) for url in pages)
            told.setdefault(root, []).append(links)
    lines = [f"{_whole(root)} → {'; → '.join(links)}" for root, links in told.items()]
    lines = lines or [_whole(next(iter(result.seed_urls), ""))]
    if others := read.keys() - went_on - printed:
        lines[-1] += f"; {counted(len(others), 'more page')}"
    return "\n".join([*lines, f"[stopped: {one_line(result.final_decision.reason)}]"])


def _whole(url: str) -> str:
    return one_line(url, max_chars=_URL_CHARS) or "(stored pages)"


def _link(url: str, root: str, step: ExpansionStep) -> str:
    """A page that was read, without its host where that is the one of `root`."""
    origin = "://".join(urlsplit(root)[:2])
    name = _whole(url.removeprefix(origin) if url.startswith(f"{origin}/") else url)
    promise = _promise(url, step)
    return f"{name} ({promise})" if promise else name


def expansion_trace(result: OrchestrationResult) -> str:
    """Draw the tree of obtained pages, each under the page that links to it; "" without rounds.

    Below it stand the rule and the signals of each action.
    """
    steps = _steps(result)
    if not steps:
        return ""
    base = _common_base(result, steps)
    lines = [f"Base: {base}", ""]
    for root in _tree(result, steps, base):
        lines += _drawn(root)
    decision = result.final_decision
    lines += [f"    [{_round(number, step)}]" for number, step in enumerate(steps, start=1)]
    rule = f"rule {decision.rule_number}, " if decision.rule_number else ""
    lines.append(f"    [stopped by {rule}{decision.rule}: {one_line(decision.reason)}]")
    if result.final_signals is not None:
        lines.append(f"    [at the end: {_signals(result.final_signals)}]")
    return "\n".join(lines)


def _steps(result: OrchestrationResult) -> list[ExpansionStep]:
    return [step for step in result.expansion_steps if step.decision != "stop"]


def _tree(result: OrchestrationResult, steps: Sequence[ExpansionStep], base: str) -> list[_Node]:
    before = steps[0].top_score_before
    score = f"score: {before:.2f} → {before:.2f}"
    nodes = {url: _Node(f"{_short(url, base)} (seed, {score})") for url in result.seed_urls}
    seeds = list(nodes.values()) or [_Node("(stored pages)")]
    for step in steps:
        if step.decision != "expand_breadth":
            seeds[0].children.append(_Node(_search_label(step)))
        for url in step.candidates_expanded:
            parent = _parent(url, step, nodes, seeds, base)
            depth = parent.depth + 1
            node = _Node(_page_label(url, step, base, depth), depth=depth)
            parent.children.append(node)
            nodes.setdefault(url, node)
        if len(step.candidates_expanded) > 1:
            count = len(step.candidates_expanded)
            change = f"{_score_change(step)}, {step.duration_ms:.0f}ms"
            seeds[0].children.append(_Node(f"({count} pages in one round: {change})"))
        for url, reason in step.candidates_failed.items():
            parent = _parent(url, step, nodes, seeds, base)
            told = one_line(reason.replace(f"The page {url} ", "it "))
            parent.children.append(_Node(f"{_short(url, base)} [failed: {told}]"))
    return seeds


def _parent(
    url: str, step: ExpansionStep, nodes: dict[str, _Node], seeds: list[_Node], base: str
) -> _Node:
    """The page a link stands on; one that an earlier run stored gets a tree of its own."""
    found_on = step.parents.get(url)
    if found_on is None:
        return nodes.get(step.source_url, seeds[0])
    if found_on not in nodes:
        nodes[found_on] = _Node(f"{_short(found_on, base)} (stored before)")
        seeds.append(nodes[found_on])
    return nodes[found_on]


def _round(number: int, step: ExpansionStep) -> str:
    rule = f"rule {step.rule_number}, {step.rule}" if step.rule_number else step.rule
    signals = f"; {_signals(step.signals)}" if step.signals is not None else ""
    return f"action {number}: {step.decision} by {rule}{signals}"


def _signals(signals: EvaluationSignals) -> str:
    """The numbers the rules look at; those of the scorer's own confidence where it gives one."""
    given = signals.avg_confidence
    sure = "" if given is None else f", scorer sure {given:.2f}"
    return (
        f"top {signals.top_score:.2f}, rank K {signals.score_at_k:.2f}, "
        f"mean {signals.score_mean:.2f}, variance {signals.score_variance:.3f}, "
        f"near top {signals.chunks_above_threshold}, fill {signals.token_fill_ratio:.0%}, "
        f"repeated {signals.redundancy_ratio:.0%}, pages {signals.source_document_count}{sure}"
    )


def _search_label(step: ExpansionStep) -> str:
    action = _ACTIONS.get(step.decision, step.decision)
    return f"({action}, {_score_change(step)}, {step.duration_ms:.0f}ms)"


def _page_label(url: str, step: ExpansionStep, base: str, depth: int) -> str:
    external = "" if url.startswith(base) else "external, "
    chunks = step.chunks_by_url.get(url, 0)
    label = f"{_short(url, base)} ({external}depth {depth}, +{chunks} chunks"
    if promise := _promise(url, step):
        label += f", {promise}"
    if len(step.candidates_expanded) > 1:  # what a round did is not one page's doing
        return f"{label})"
    return f"{label}, {_score_change(step)}, {step.duration_ms:.0f}ms)"


def _promise(url: str, step: ExpansionStep) -> str:
    """The chance that a link led on, the time its page took, and where it was found."""
    parts = []
    if url in step.scores:
        parts = [f"link {step.scores[url]:.2f}", f"{step.fetch_ms.get(url, 0.0):.0f}ms"]
    if url in step.found_in:
        parts.append(f"found in {step.found_in[url]}")
    return ", ".join(parts)


def _score_change(step: ExpansionStep) -> str:
    return f"score: {step.top_score_before:.2f} → {step.top_score_after:.2f}"


def _drawn(node: _Node) -> Iterator[str]:
    yield node.label
    for place, child in enumerate(node.children, 1):
        is_last = place == len(node.children)
        first, *others = _drawn(child)
        yield ("└── " if is_last else "├── ") + first
        yield from (("    " if is_last else "│   ") + line for line in others)


def _common_base(result: OrchestrationResult, steps: Sequence[ExpansionStep]) -> str:
    """Longest directory that the first URL shares with every other URL of its host."""
    urls = [*result.seed_urls, *(url for step in steps for url in step.candidates_expanded)]
    urls += [url for step in steps for url in step.candidates_failed]
    first = urlsplit(urls[0])
    origin = f"{first.scheme}://{first.netloc}"
    paths = [url[len(origin) :] for url in urls if url == origin or url.startswith(origin + "/")]
    folders = [path.split("?")[0].split("/")[1:-1] for path in paths]
    same = takewhile(lambda names: len(set(names)) == 1, zip(*folders, strict=False))
    return "/".join([origin, *(names[0] for names in same)]) + "/"


def _short(url: str, base: str) -> str:
    return one_line(
        "/" + url.removeprefix(base) if url.startswith(base) else url, max_chars=_URL_CHARS
    )
