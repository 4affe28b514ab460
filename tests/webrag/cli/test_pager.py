"""Pages of text on a terminal: a pseudo-terminal, as a person's is a real one."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

PROGRAM = "from webrag.cli.output import print_text\nprint_text({text!r}, pager={pager})"
LONG = "\n".join(f"line {number}" for number in range(1, 200))

Start = Callable[..., "Terminal"]


class Terminal:
    """A program on a pseudo-terminal of 24 lines."""

    def __init__(self, text: str, *, pager: bool, **environment: str) -> None:
        self._own, other = pty.openpty()
        size = {"LINES": "24", "COLUMNS": "80", "TERM": "xterm", "LESS": "", **environment}
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(text=text, pager=pager)],
            stdin=other, stdout=other, stderr=other, env={**os.environ, **size},
            start_new_session=True, close_fds=True,
        )  # fmt: skip
        os.close(other)
        self.shown = ""

    def read_until(self, text: str, *, seconds: float = 60.0) -> bool:
        """Read what is shown until a text is there, or the program has ended."""
        deadline = time.monotonic() + seconds
        while text not in self.shown and time.monotonic() < deadline:
            if not select.select([self._own], [], [], 0.2)[0]:
                continue
            try:
                self.shown += os.read(self._own, 65_536).decode()
            except OSError:  # nobody has the other end any more
                break
        return text in self.shown

    def press(self, keys: str) -> None:
        os.write(self._own, keys.encode())

    def ends(self) -> int:
        """Its exit code, once it has ended."""
        self.read_until("nothing shows this")
        return self._process.wait(60)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._own)


@pytest.fixture
def start() -> Iterator[Start]:
    opened: list[Terminal] = []

    def run(text: str, *, pager: bool = True, **environment: str) -> Terminal:
        opened.append(Terminal(text, pager=pager, **environment))
        return opened[-1]

    yield run
    for terminal in opened:
        terminal.close()


def test_long_text_waits_in_the_pager_until_it_is_left(start: Start) -> None:
    terminal = start(LONG, PAGER="less")

    assert terminal.read_until("line 20")
    terminal.press("G")
    assert terminal.read_until("line 199")
    assert "line 100" not in terminal.shown
    terminal.press("q")
    assert terminal.ends() == 0


@pytest.mark.parametrize(("text", "pager"), [("line 1\nline 199", True), (LONG, False)])
def test_text_that_fits_or_is_wanted_whole_is_printed_at_once(
    start: Start, text: str, pager: bool
) -> None:
    terminal = start(text, pager=pager, PAGER="less")

    assert terminal.ends() == 0
    assert "line 199" in terminal.shown


def test_program_of_ones_own_is_the_pager(start: Start) -> None:
    terminal = start(LONG, PAGER="wc -l")

    assert terminal.ends() == 0
    assert terminal.shown.split() == ["199"]
