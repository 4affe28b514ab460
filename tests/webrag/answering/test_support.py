import pytest

from webrag.answering.support import identifiers, is_negated, is_supported, numbers
from webrag.orchestration.judge import Encode

SUPPORTED = [
    ("The broker listens on port 7411.", "The broker listens on TCP port 7411 by default."),
    ("Port 7411 is the default.", "The broker listens on TCP port 7411 unless another is set."),
    ("At most 1,000 rows are returned.", "It returns at most 1000 rows per call."),
    ("There are three replicas.", "The cluster keeps 3 replicas of each shard."),
    ("The server does not restart automatically.", "The server is not restarted automatically."),
    ("Guests cannot write.", "Writing is not possible for guests: guests never write."),
    ("Use `--force` to overwrite files.", "`--force` overwrites existing files."),
    ("`max_connections` defaults to 100.", "The default of max_connections is typically 100."),
    ("Backups are kept for thirty days.", "Backups are kept for thirty days by default."),
    ("The filter is cleaned with citric acid.", "Clean the filter with citric acid, then rinse."),
]
CONTRADICTED = [
    ("The broker listens on port 7412.", "The broker listens on TCP port 7411 by default."),
    ("The server restarts automatically.", "The server does not restart automatically."),
    ("The server does not restart.", "The server restarts after each failure."),
    ("Use `--prune` to overwrite files.", "`--force` overwrites existing files."),
    ("`min_connections` defaults to 100.", "The default of max_connections is typically 100."),
    ("The mascot is called Rupert.", "The broker listens on TCP port 7411 by default."),
    ("It increases the timeout.", "It decreases the timeout."),
    ("The option is enabled by default.", "The option is disabled by default."),
    ("Backups are kept for 30 days and 12 hours.", "Backups are kept for 30 days by default."),
    ("See https://evil.test/x for the port.", "The broker listens on TCP port 7411."),
    ("The broker is the fastest queue on Windows and macOS.", "The broker listens on a port."),
    ("Call the vendor at once to pay the invoice.", "The broker calls the handler at once."),
    ("RFC 9110 defines the port.", "The port is defined by the administrator of the broker."),
    ("The first replica is expelled.", "The last replica is expelled."),
    ("Files are always deleted.", "Files are never deleted."),
    ("Jest takes 9 seconds.", "Jest takes 5 seconds. Mocha takes 9 seconds."),
    (
        "Ohne Filter dauert die Suche 9 Sekunden.",
        "Ohne Filter dauert die Suche 5 Sekunden. Mit Filter dauert die Suche 9 Sekunden.",
    ),
    ("It is safe.", ""),
    ("", "The broker listens on TCP port 7411."),
]


@pytest.mark.parametrize(("claim", "quote"), SUPPORTED)
def test_claim_that_the_quotation_makes_is_supported(
    claim: str, quote: str, encode: Encode
) -> None:
    assert is_supported(claim, [quote], encode=encode)


@pytest.mark.parametrize(("claim", "quote"), CONTRADICTED)
def test_claim_that_the_quotation_does_not_make_is_not_supported(
    claim: str, quote: str, encode: Encode
) -> None:
    assert not is_supported(claim, [quote], encode=encode)


def test_identifier_of_a_claim_may_stand_in_the_heading_above_the_quotation() -> None:
    claim, quote = "`shared_buffers` is 128 megabytes by default.", "The default is 128 megabytes."

    assert is_supported(claim, [quote], context="shared_buffers (integer)")
    assert not is_supported(claim, [quote], context="work_mem (integer)")


def test_number_of_a_claim_may_not_stand_in_the_heading_alone() -> None:
    assert not is_supported("The limit is 16.", ["The limit is fixed."], context="Version 16")


def test_two_quotations_support_a_claim_together() -> None:
    quotes = ["The leader listens on port 7411.", "The replica listens on port 7412."]

    assert is_supported("Leader and replica listen on port 7411 and port 7412.", quotes)


@pytest.mark.parametrize(
    ("claim", "quotes"),
    [
        ("The timeout is 5, retries are 30.", ["There are 5 retries.", "The timeout is 30."]),
        ("The timeout is 5 seconds.", ["The timeout is 30 seconds and there are 5 retries."]),
        ("The replica listens on port 7411.", ["The leader listens on port 7411.",
                                               "The replica listens on port 7412."]),
        ("Beta needs 30 watts.", ["Alpha needs 30 watts and Beta needs 50 watts."]),
        ("Use `a.close` to open it.", ["Use `a.open` to open it and `a.close` to close it."]),
        ("The minimum is 100.", ["The minimum is 1 and the maximum is 100."]),
        ("Writes are logged.", ["Reads are logged but writes are not."]),
        ("Reads may block.", ["Reads never block, although writes may."]),
        ("Caching is enabled by default.",
         ["Logging is enabled by default, caching is disabled by default."]),
    ],
)  # fmt: skip
def test_values_and_denials_stay_with_what_they_were_said_of(
    claim: str, quotes: list[str], encode: Encode
) -> None:
    assert not is_supported(claim, quotes, encode=encode)


@pytest.mark.parametrize(
    ("claim", "quotes"),
    [
        ("The timeout is 30 seconds, with 5 retries.",
         ["The timeout is 30 seconds and there are 5 retries."]),
        ("There are 5 retries.", ["The timeout is 30 seconds and there are 5 retries."]),
        ("The default timeout is 30 seconds.", ["The timeout is 30 seconds, at most 300."]),
        ("Writes are not logged.", ["Reads are logged but writes are not."]),
        ("Reads are logged.", ["Reads are logged but writes are not."]),
        ("To run tests in turn, pass `--test-threads=1`.",
         ["If you don't want to run tests in parallel, pass `cargo test -- --test-threads=1`."]),
        ("It is never safe, and 3 of 4 fail.", ["First. It is never safe, and 3 of 4 fail. Last."]),
    ],
)  # fmt: skip
def test_part_of_what_a_quotation_says_is_supported(
    claim: str, quotes: list[str], encode: Encode
) -> None:
    assert is_supported(claim, quotes, context="Default", encode=encode)


def test_numbers_are_compared_by_value() -> None:
    assert numbers("1,000 or 1_000 and twelve in 30s, 5.0") == {"1000", "12", "30", "5"}


def test_flags_paths_addresses_and_code_are_identifiers() -> None:
    found = identifiers("Run `git gc` with --auto on a.b_c, see E0502 and https://x.test/y.")

    assert found >= {"git gc", "--auto", "a.b_c", "e0502", "https://x.test/y"}


def test_a_flag_that_holds_no_is_no_negation() -> None:
    assert not is_negated("Use --no-ff to merge.")
    assert is_negated("It doesn\u2019t merge.")


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Drivers are not covered, but passengers are covered.",
         "Passengers are not covered, but drivers are covered."),
        ("All users may export the report.", "Premium users may export the report."),
        ("The option is enabled for guests and disabled for members.",
         "The option is disabled for guests and enabled for members."),
        ("The trial costs nothing, and cancelling costs 30 euros.",
         "Cancelling costs nothing, and the trial costs 30 euros."),
    ],
)  # fmt: skip
def test_what_is_said_of_another_does_not_support(claim: str, quote: str, encode: Encode) -> None:
    assert not is_supported(claim, [quote], encode=encode)
