from pathlib import Path

from webrag.evaluation.questions import ResultRecord, RunRecord, read_run, write_record


def test_run_file_gives_back_what_was_written(tmp_path: Path) -> None:
    written = RunRecord(id="a", retrieved=(ResultRecord(url="u", text="t"),), ms=1.5)
    path = tmp_path / "run.jsonl"
    with path.open("w", encoding="utf-8") as file:
        write_record(file, written)

    assert read_run(path) == {"a": written}


def test_record_is_on_disk_before_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("w", encoding="utf-8") as file:
        write_record(file, RunRecord(id="a"))

        assert list(read_run(path)) == ["a"]
