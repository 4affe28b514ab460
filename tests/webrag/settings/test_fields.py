import subprocess
import sys
from typing import Any

import pytest

from webrag.errors import ConfigurationError
from webrag.postgres.server import checked_dsn
from webrag.settings import load_settings
from webrag.settings.variables import MASK, is_loopback, mask_url

SECRET = "hunter2"
PG = "postgresql://"

# What is written, and what is shown of it.
SHOWN = {
    # Nothing to hide.
    "postgresql://db.test/web": "postgresql://db.test/web",
    "postgresql://me@db.test:5432/web": "postgresql://me@db.test:5432/web",
    "postgresql://a.test:1,b.test:2/web": "postgresql://a.test:1,b.test:2/web",
    "postgresql:///web?host=/run/pg": "postgresql:///web?host=/run/pg",
    "postgresql://me@[fe80::1]:5432/web": "postgresql://me@[fe80::1]:5432/web",
    "https://api.test/v1": "https://api.test/v1",
    "no URL": "no URL",
    # Written as the standard says.
    f"postgresql://me:{SECRET}@db.test/web": f"postgresql://me:{MASK}@db.test/web",
    f"postgres://me:{SECRET}@db.test": f"postgres://me:{MASK}@db.test",
    f"postgresql://:{SECRET}@db.test/web": f"postgresql://:{MASK}@db.test/web",
    f"postgresql://me:{SECRET}%2F%23%3F@db.test/web": f"postgresql://me:{MASK}@db.test/web",
    f"postgresql://me:{SECRET}@a.test:1,b.test:2/web": f"postgresql://me:{MASK}@a.test:1,b.test:2/web",
    f"postgresql://me:{SECRET}@[::1]:5432/web": f"postgresql://me:{MASK}@[::1]:5432/web",
    f"postgresql://me:a:{SECRET}@db.test/web": f"{PG}{MASK}",
    # Characters of the password that should have been percent-encoded.
    f"postgresql://me:{SECRET}/x@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:1/{SECRET}@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:{SECRET}#x@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:12#{SECRET}@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:{SECRET}?x@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:12?sslmode={SECRET}@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:{SECRET}@x@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:x@{SECRET}@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:{SECRET} x@db.test/web": f"{PG}{MASK}",
    f"postgresql://me:{SECRET},x@db.test/web": f"postgresql://me:{MASK}@db.test/web",
    f"postgresql://me/{SECRET}:x@db.test/web": f"{PG}{MASK}",
    # Queries.
    f"postgresql://me@db.test/web?password={SECRET}": f"{PG}me@db.test/web?password={MASK}",
    f"postgresql://db.test/web?sslmode=require&sslpassword={SECRET}&port=1": (
        f"{PG}db.test/web?sslmode=require&sslpassword={MASK}&port=1"
    ),
    f"postgresql://db.test/web?PassWord={SECRET}": f"{PG}db.test/web?PassWord={MASK}",
    f"postgresql://db.test/web?options=-c%20x%3D{SECRET}": f"{PG}db.test/web?options={MASK}",
    f"https://api.test/v1?api_key={SECRET}": f"https://api.test/v1?api_key={MASK}",
    f"https://api.test/v1?key={SECRET}&api-version=2": f"https://api.test/v1?key={MASK}&api-version=2",
    f"https://api.test/v1?code={SECRET}&sig={SECRET}": f"https://api.test/v1?code={MASK}&sig={MASK}",
    f"https://api.test/v1#access_token={SECRET}": f"https://api.test/v1#{MASK}",
    f"https://me:{SECRET}@api.test/v1": f"https://me:{MASK}@api.test/v1",
    f"https://me:{SECRET}/x@api.test/v1": f"https://{MASK}",
    f"socks5h://me:{SECRET}@proxy.test:1080": f"socks5h://me:{MASK}@proxy.test:1080",
    # Lists and connection strings.
    f"http://a.test,http://me:{SECRET}@b.test": f"http://{MASK}",
    f"host=db.test user=me password={SECRET}": f"host=db.test user=me password={MASK}",
    f"host=db.test password = '{SECRET} x'": f"host=db.test password = {MASK}",
    f"me:{SECRET}@db.test": f"me:{MASK}@db.test",
    f"me:{SECRET}@db.test://": MASK,
    f"host=db.test sslpassword={SECRET} dbname=x": f"host=db.test sslpassword={MASK}",
}  # fmt: skip


@pytest.mark.parametrize("text", SHOWN)
def test_what_is_secret_in_an_address_is_masked(text: str) -> None:
    assert mask_url(text) == SHOWN[text]


@pytest.mark.parametrize("url", [url for url in SHOWN if url.startswith("postgres")])
def test_configuration_shows_no_password(url: str) -> None:
    assert SECRET not in str(load_settings(database_url=url).shown("database_url"))


@pytest.mark.parametrize("url", [url for url in SHOWN if url.startswith("postgres")])
def test_unusable_connection_string_is_refused_without_its_password(url: str) -> None:
    shown = ""
    try:
        checked_dsn(url)
    except ConfigurationError as error:
        shown = f"{error} {error!r} {error.hint} {error.__cause__}"

    assert SECRET not in shown


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("firecrawl_api_url", f"https://fc.test/?key={SECRET}"),
        ("embedding_base_url", f"https://e.test/v1?code={SECRET}"),
        ("orchestration_llm_base_url", f"https://llm.test/v1?api-version=1&sig={SECRET}"),
        ("langsmith_endpoint", f"https://ls.test#{SECRET}"),
        ("otel_exporter_otlp_endpoint", f"https://otel.test/?token={SECRET}"),
    ],
)
def test_configuration_shows_no_key_of_a_query(field: str, value: str) -> None:
    shown = str(load_settings(**{field: value}).shown(field))

    assert SECRET not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    "value",
    [
        f"https://me:{SECRET}@api.test/v1",
        f"https://me:{SECRET}/x@api.test/v1",
        f"https://me:{SECRET}#x@api.test/v1",
        f"https://me:{SECRET}?x@api.test/v1",
        f"https://me:x@{SECRET}@api.test",
        f"me:{SECRET}@api.test://",
        f"password={SECRET}",
    ],
)
def test_refused_address_is_shown_without_its_password(value: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_settings(embedding_base_url=value)

    assert SECRET not in f"{raised.value} {raised.value!r} {raised.value.hint}"


@pytest.mark.parametrize(
    "value", [f"{PG}me:{SECRET}/x@db.test/web", f"{PG}me:{SECRET}#@db/web", f"{PG}db?key={SECRET}"]
)
def test_command_prints_no_password(value: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("WEBRAG_DATABASE_URL", value)

    done = subprocess.run(
        [sys.executable, "-m", "webrag", "config"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.evil.example", ""])
def test_what_others_can_reach_is_no_loopback(host: str) -> None:
    assert not is_loopback(host)
