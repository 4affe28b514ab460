import pytest

from webrag.errors import (
    DatabaseUnavailableError,
    FetchError,
    InputError,
    PageGoneError,
    RefusedAddressError,
    WebRAGError,
)
from webrag.ingestion.http.guard import AddressCheck
from webrag.mcp_server.replies import error_text, failure_text, timeout_text

URL = "https://example.org/x"


def test_failure_names_the_error_and_forbids_answering_from_memory() -> None:
    text = failure_text(PageGoneError("404: no such page.", url=URL, status=404))

    assert text == (
        "[ERROR]\n"
        "WebRAG encountered an error during retrieval.\n\n"
        "Error type: PageGoneError\n"
        "Details: 404: no such page.\n\n"
        "The address may be mistyped, or the page may have moved.\n\n"
        "Please inform the user of this error. Do not attempt to answer from memory: the tool "
        "was called because specific source material was needed."
    )


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (RefusedAddressError("No.", url=URL), "WEBRAG_ALLOW_HOSTS"),
        (DatabaseUnavailableError("No.", hint="Start it."), "No. Start it."),
        (WebRAGError("No."), "Try again later"),
    ],
)
def test_failure_advises_by_kind(error: WebRAGError, advice: str) -> None:
    assert advice in failure_text(error)


@pytest.mark.parametrize("host", ["10.0.0.1", "[fd00::1]:8080"])
async def test_refused_address_names_a_setting_and_no_flag_of_a_command(host: str) -> None:
    with pytest.raises(RefusedAddressError) as caught:
        await AddressCheck(()).check(f"http://{host}/")

    text = failure_text(caught.value)

    assert "--allow-host" not in text
    assert f"allow it: set WEBRAG_ALLOW_HOSTS={host}." in text


def test_failure_that_advises_itself_gets_no_other_advice() -> None:
    closed = FetchError("It is closed (HTTP 403).", url=URL, hint="It may want a login.")

    assert "Details: It is closed (HTTP 403). It may want a login.\n\nPlease" in failure_text(
        closed
    )


def test_message_of_an_unexpected_error_is_not_shown() -> None:
    text = failure_text(KeyError("secret-token"))

    assert "secret-token" not in text
    assert "Error type: KeyError" in text


def test_input_error_is_its_sentence_and_hint() -> None:
    assert error_text(InputError("url is empty.", hint="Name one.")) == ("url is empty. Name one.")


def test_timeout_names_the_limit_and_a_way_out() -> None:
    assert timeout_text(120.0) == (
        "[ERROR]\n"
        "WebRAG timed out after 120s.\n\n"
        "What was stored until then is kept. Suggestion: repeat the call, retry with "
        "expansion_budget=0 to follow no links, or name a more specific page."
    )


@pytest.mark.parametrize(
    "sentence",
    ["'a.test' may not be contacted: port 1 is not one of the web's.", "It redirects to ftp."],
)
def test_a_refused_address_is_answered_like_other_input(sentence: str) -> None:
    text = failure_text(RefusedAddressError(sentence, url=URL))

    assert text.startswith(f"[ERROR]\n{sentence}")
    assert "encountered an error" not in text
    assert text.count("\n") == 1
