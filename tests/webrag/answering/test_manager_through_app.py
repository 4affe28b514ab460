import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from webrag import WebRAG, load_settings
from webrag.errors import FetchError, GuardrailsViolationError, InputError
from webrag.postgres.database import Database

PAGE = """<html><head><title>Kettle manual</title></head><body><main><h1>Kettle manual</h1>
<p>Clean the filter of the kettle every three weeks with citric acid.</p></main></body></html>"""
QUESTION = "How often is the filter of the kettle cleaned?"


@pytest.fixture
def open_app(database: Database) -> Callable[..., WebRAG]:
    """An application on the test's collection that may contact a site; settings by name."""

    def make(site: Any, **settings: Any) -> WebRAG:
        config = database.config
        chosen = load_settings(data_dir=config.data_dir, collection=config.collection, **settings)
        return WebRAG(chosen.allowing([urlsplit(site).netloc]))

    return make


def served_by(model: Any) -> dict[str, Any]:
    """Settings for a model that writes answers, and leaves the question as it is."""
    return {
        "orchestration_llm_base_url": model.url,
        "orchestration_llm_model": "local",
        "decomposition_mode": "rule_based",
    }


async def test_model_of_the_settings_writes_and_judges(
    static_site: Callable[..., Any], open_app: Callable[..., WebRAG], model: Any
) -> None:
    site = static_site({"/": PAGE})
    model.replies = [
        model.sentence(
            "It is cleaned every three weeks.", (1, "every three weeks with citric acid")
        )
    ]

    async with open_app(site, **served_by(model)) as rag:
        result = await rag.ask(QUESTION, url=f"{site}/")
        stored = await rag.markdown(f"{site}/") or ""

    (citation,) = result.citations
    assert [part.text for part in result.parts] == ["It is cleaned every three weeks."]
    assert stored[citation.char_start : citation.char_end] == citation.verbatim_text
    assert result.reflection is not None
    assert (result.synthesis, result.reflection.method) == ("llm", "llm")
    assert {request["model"] for request in model.requests} == {"local"}


@pytest.mark.parametrize(
    "image",
    [
        pytest.param('<img src="/kettle.png" alt="A kettle, open">', id="alternative text"),
        pytest.param('<img src="/kettle.png">', id="no alternative text"),
        pytest.param('<img alt="A kettle">', id="no address"),
        pytest.param('<img srcset="/s.png 1x, /l.png 2x" alt="Kettle">', id="srcset"),
        pytest.param('<img data-src="/late.png" alt="Kettle" loading="lazy">', id="lazy"),
        pytest.param(
            '<picture><source srcset="/k.webp"><img src="/k.png" alt="Kettle"></picture>',
            id="picture",
        ),
        pytest.param(
            '<figure><img src="/k.png" alt="Kettle"><figcaption>Old kettle</figcaption></figure>',
            id="figure",
        ),
        pytest.param("<svg><title>Kettle</title><path d='M0 0h9'/></svg>", id="svg"),
        pytest.param('<img src="data:image/png;base64,iVBORw0KGgo=" alt="Dot">', id="data"),
        pytest.param('<a href="/big"><img src="/k.png" alt="Kettle"></a>', id="linked"),
        pytest.param('<img src="/a.png" alt="A"><img src="/a.png" alt="A">', id="repeated"),
    ],
)
async def test_model_may_quote_a_passage_with_an_image(
    static_site: Callable[..., Any], open_app: Callable[..., WebRAG], model: Any, image: str
) -> None:
    rinse, filter_ = "Rinse the kettle twice.", "Clean the filter every three weeks."
    table = "<table><tr><th>Part</th><th>Weeks</th></tr><tr><td>Filter</td><td>3</td></tr></table>"
    body = f"<h1>Kettle</h1><p>{rinse}</p>{image}{table}<p>Then: {image} {filter_}</p>"
    site = static_site({"/": f"<title>Kettle</title><main>{body}</main>"})
    said = "Rinse the kettle twice and clean the filter every three weeks."
    model.replies = [model.sentence(said, (1, rinse), (1, filter_))]

    async with open_app(site, **served_by(model)) as rag:
        result = await rag.ask("How is the kettle cleaned?", url=f"{site}/")

    assert result.synthesis == "llm"
    assert [each.verbatim_text for each in result.citations] == [rinse, filter_]


async def test_page_that_cannot_be_obtained_is_an_error_unless_another_can(
    static_site: Callable[..., Any], open_app: Callable[..., WebRAG]
) -> None:
    site = static_site({"/": PAGE})

    async with open_app(site) as rag:
        with pytest.raises(FetchError):
            await rag.ask(QUESTION, url=f"{site}/missing.html")
        result = await rag.ask(QUESTION, url=[f"{site}/", f"{site}/missing.html"])

    assert "every three weeks" in result.answer
    assert "missing.html does not exist" in result.degraded[0]


async def test_events_name_every_step_in_order(
    static_site: Callable[..., Any], open_app: Callable[..., WebRAG]
) -> None:
    site = static_site({"/": PAGE})
    told: list[str] = []

    async with open_app(site) as rag:
        await rag.ask(
            QUESTION,
            url=f"{site}/",
            on_event=lambda event: told.append(event.detail) if event.kind == "step" else None,
        )

    assert told == ["plan", "read pages", "retrieve", "rerank", "synthesize", "reflect"]


async def test_wordings_find_what_the_question_has_no_word_of(
    static_site: Callable[..., Any], open_app: Callable[..., WebRAG]
) -> None:
    site = static_site({"/": PAGE})

    async with open_app(site) as rag:
        await rag.ingest(f"{site}/")
        wordings = ["filter citric acid every three weeks"]
        result = await rag.ask("Against limescale?", wordings=wordings)

    assert result.retrieval is not None
    assert result.retrieval.passages == 1
    assert "citric acid" in result.answer


async def test_unusable_wordings_are_refused_before_a_page_is_read(
    static_site: Callable[..., Any], open_app: Callable[..., WebRAG]
) -> None:
    site = static_site({"/": PAGE})

    async with open_app(site) as rag:
        for call in (
            rag.ask(QUESTION, url=f"{site}/", wordings=["x" * 501]),
            rag.answer(f"{site}/", QUESTION, wordings=["x" * 501]),
            rag.search(QUESTION, wordings=["x" * 501]),
        ):
            with pytest.raises(InputError, match="Wording 1 has 501 characters"):
                await call
        assert (await rag.status()).documents == 0


ANALYSED = {
    "sub_queries": ["How is limescale removed?"],
    "query_type": "how_to",
    "complexity": "simple",
    "wordings": ["clean the filter of the kettle with citric acid"],
}


@pytest.mark.parametrize(
    ("given", "searched"),
    [([], ANALYSED["wordings"]), (["descale the filter"], ["descale the filter"])],
    ids=["a model's", "the caller's"],
)
async def test_wordings_of_a_model_are_searched_for_where_the_caller_gave_none(
    static_site: Callable[..., Any],
    open_app: Callable[..., WebRAG],
    model: Any,
    given: list[str],
    searched: list[str],
) -> None:
    site = static_site({"/": PAGE})
    model.replies = [json.dumps(ANALYSED)]

    async with open_app(site, orchestration_llm_base_url=model.url) as rag:
        result = await rag.ask("How is limescale removed?", url=f"{site}/", wordings=given)

    assert result.plan is not None
    assert list(result.plan.wordings) == searched
    assert "citric acid" in result.answer
    prompts = [request["messages"][0]["content"] for request in model.requests]
    assert sum(prompt.startswith("You analyse questions") for prompt in prompts) == 1


class _NoKettles:
    stage: Any = "input"

    def check(self, checked: Any) -> None:
        if "kettle" in checked.query:
            raise GuardrailsViolationError("input", "kettles", "Ask about cups.")


async def test_guardrail_of_the_caller_stops_an_answer(
    static_site: Callable[..., Any], database: Database
) -> None:
    config = database.config
    chosen = load_settings(data_dir=config.data_dir, collection=config.collection)

    async with WebRAG(chosen, guardrails=[_NoKettles()]) as rag:
        result = await rag.ask(QUESTION)

    assert (result.state, result.answer) == ("fail", "Ask about cups.")


async def test_list_of_links_that_names_what_is_asked_for_is_no_answer(
    static_site: Callable[..., Any], open_app: Callable[..., WebRAG]
) -> None:
    names = ("The spout of a kettle", "Is the filter of the kettle washed?", "Lids of kettles")
    entries = "".join(f'<li><a href="/{n}.html">{name}</a></li>' for n, name in enumerate(names))
    contents = f"<title>Kettles</title><main><h1>Kettles</h1><ul>{entries}</ul></main>"
    other = "<title>Teapots</title><main><p>Teapots are made of clay and are not washed.</p></main>"
    site = static_site({"/": contents, "/teapots": other})

    async with open_app(site) as rag:
        named = [f"{site}/", f"{site}/teapots"]
        result = await rag.ask("Is the filter of the kettle washed?", url=named)

    assert result.final_reason != "confidence_high"
    assert "filter of the kettle" not in result.answer
