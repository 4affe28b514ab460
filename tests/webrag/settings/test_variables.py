import logging
from pathlib import Path

import pytest

from webrag.errors import ConfigurationError
from webrag.settings import load_settings


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    return tmp_path / "webrag.env"


def user_file(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    path = folder / "webrag" / ".env"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


def test_named_file_is_read(settings_file: Path) -> None:
    settings_file.write_text("# comment\nMCP_PORT=1234\nexport MAX_PAGES_PER_RUN='7'\n")

    settings = load_settings(settings_file)

    assert (settings.mcp_port, settings.max_pages_per_run) == (1234, 7)
    assert settings.origin("mcp_port") == f"MCP_PORT in {settings_file}"


def test_file_named_by_the_environment_is_read(
    settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file.write_text("MCP_PORT=1234\n")
    monkeypatch.setenv("WEBRAG_ENV_FILE", str(settings_file))

    assert load_settings().mcp_port == 1234


def test_file_of_the_user_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    user_file(monkeypatch, tmp_path, "MCP_PORT=1234\n")

    assert load_settings().mcp_port == 1234


def test_named_file_replaces_the_users_file(
    settings_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    user_file(monkeypatch, tmp_path, "MCP_PORT=1234\n")
    settings_file.write_text("MAX_PAGES_PER_RUN=7\n")

    assert load_settings(settings_file).mcp_port == 8765


def test_file_in_the_current_directory_is_never_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("MCP_PORT=1234\nWEBRAG_COLLECTION=theirs\n")
    monkeypatch.chdir(tmp_path)

    settings = load_settings()

    assert (settings.mcp_port, settings.collection) == (8765, "webrag")


def test_environment_wins_over_the_file(
    settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file.write_text("MCP_PORT=1234\n")
    monkeypatch.setenv("MCP_PORT", "4321")

    assert load_settings(settings_file).mcp_port == 4321


def test_empty_value_counts_as_not_set(
    settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file.write_text("MCP_PORT=1234\nOPENAI_API_KEY=\n")
    monkeypatch.setenv("MCP_PORT", " ")

    settings = load_settings(settings_file)

    assert (settings.mcp_port, settings.openai_api_key) == (1234, None)


def test_names_that_are_not_settings_are_ignored(settings_file: Path) -> None:
    settings_file.write_text("SECRET_KEY=x\nDEBUG=1\nPORT=abc\n")

    assert load_settings(settings_file).model_dump() == load_settings().model_dump()


def test_dollar_signs_in_the_file_are_kept(
    settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME_PAGE", "expanded")
    settings_file.write_text("WEBRAG_USER_AGENT=agent-${HOME_PAGE}\n")

    assert load_settings(settings_file).user_agent == "agent-${HOME_PAGE}"


def test_wrong_value_in_the_file_is_reported_with_the_file(settings_file: Path) -> None:
    settings_file.write_text("MAX_PAGES_PER_RUN=none\n")

    with pytest.raises(ConfigurationError) as caught:
        load_settings(settings_file)

    assert str(caught.value).startswith(f"MAX_PAGES_PER_RUN (in {settings_file}) is 'none' but")


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_settings(tmp_path / "missing")


def test_folder_instead_of_a_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a file"):
        load_settings(tmp_path)


def test_file_that_is_not_text_is_reported(settings_file: Path) -> None:
    settings_file.write_bytes(b"MCP_PORT=\xff\xfe\n")

    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_settings(settings_file)


@pytest.mark.parametrize(
    ("plain", "field", "theirs", "ours", "expected"),
    [
        ("MCP_TOOL_TIMEOUT", "mcp_tool_timeout", "60000", "90", 90.0),
        ("MCP_PORT", "mcp_port", "1000", "2000", 2000),
        ("EMBEDDING_MODEL", "embedding_model", "theirs", "ours", "ours"),
        ("MAX_PAGES_PER_RUN", "max_pages_per_run", "1", "2", 2),
    ],
)
def test_prefixed_name_wins(
    plain: str,
    field: str,
    theirs: str,
    ours: str,
    expected: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(plain, theirs)
    monkeypatch.setenv(f"WEBRAG_{plain}", ours)

    assert getattr(load_settings(), field) == expected


def test_prefixed_name_in_the_file_wins_over_a_plain_one_in_the_environment(
    settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://their-project/x")
    settings_file.write_text("WEBRAG_DATABASE_URL=postgresql://mine/x\n")

    assert load_settings(settings_file).database_config().url == "postgresql://mine/x"


@pytest.mark.parametrize(
    ("variable", "field", "value"),
    [
        ("MCP_TOOL_TIMEOUT", "mcp_tool_timeout", "60000"),
        ("MCP_TRANSPORT", "mcp_transport", "sse"),
        ("MCP_PORT", "mcp_port", "tcp://10.0.0.1:80"),
        ("DATABASE_URL", "database_url", "mysql://me:sk-very-secret@db/x"),
        ("OPENAI_API_KEY", "openai_api_key", "sk-very-secret but spaced"),
    ],
)
def test_foreign_value_of_a_shared_name_is_ignored_with_a_warning(
    variable: str,
    field: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    default = getattr(load_settings(), field)
    monkeypatch.setenv(variable, value)

    with caplog.at_level(logging.WARNING):
        settings = load_settings()

    assert getattr(settings, field) == default
    assert f"Set WEBRAG_{variable}" in caplog.text
    assert "sk-very-secret" not in caplog.text


def test_fitting_value_of_a_shared_name_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOOL_TIMEOUT", "60")

    assert load_settings().mcp_tool_timeout == 60.0


def test_misspelt_variable_is_pointed_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WEBRAG_COLECTION", "x")

    with caplog.at_level(logging.WARNING):
        load_settings()

    assert "did you mean WEBRAG_COLLECTION?" in caplog.text
