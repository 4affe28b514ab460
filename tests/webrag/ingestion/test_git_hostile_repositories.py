"""Repositories that are small where they lie, and would be large where they are cloned."""

import hashlib
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.git_host import Host, git, served_repositories
from webrag.errors import FetchError
from webrag.ingestion.addresses import parse_git
from webrag.ingestion.git import GitClones


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "served" / "owner" / "repo"
    root.mkdir(parents=True)
    git(root, "init", "-q")
    return root


@pytest.fixture
def host(repository: Path, tmp_path: Path) -> Iterator[Host]:
    with served_repositories(tmp_path / "served") as host:
        yield host


def clones(tmp_path: Path, **limits: Any) -> GitClones:
    return GitClones(tmp_path / "clones", allowed_hosts=["127.0.0.1"], **limits)


def commit_tree(repository: Path, content: str, *, width: int, depth: int) -> None:
    """Commit a tree of `width ** (depth + 1)` names of one content, in `depth + 3` objects."""
    held = git(repository, "hash-object", "-w", "--stdin", given=content)
    kind = "100644 blob"
    for _ in range(depth + 1):
        names = "".join(f"{kind} {held}\t{number}.md\n" for number in range(width))
        held, kind = git(repository, "mktree", given=names), "040000 tree"
    git(repository, "update-ref", "HEAD", git(repository, "commit-tree", held, "-m", "One"))


@pytest.mark.parametrize(
    ("content", "width", "depth"),
    [
        pytest.param("A", 10, 9, id="10^10-files-of-12-objects"),
        pytest.param("", 1_000, 1, id="a-million-empty-files"),
    ],
)
async def test_tree_of_too_many_files_is_not_written(
    host: Host, repository: Path, tmp_path: Path, content: str, width: int, depth: int
) -> None:
    commit_tree(repository, content, width=width, depth=depth)

    with pytest.raises(FetchError, match=r"has more than 2,000 files and folders, the most"):
        await clones(tmp_path, max_files=2_000).refresh(parse_git(f"git+http://{host}/owner/repo"))

    assert list((tmp_path / "clones").iterdir()) == []


async def test_tree_of_folders_alone_is_counted_too(
    host: Host, repository: Path, tmp_path: Path
) -> None:
    empty = git(repository, "mktree")
    for _ in range(10):
        names = "".join(f"040000 tree {empty}\t{number}\n" for number in range(10))
        empty = git(repository, "mktree", given=names)
    git(repository, "update-ref", "HEAD", git(repository, "commit-tree", empty, "-m", "One"))

    with pytest.raises(FetchError, match="more than 2,000 files and folders"):
        await clones(tmp_path, max_files=2_000).refresh(parse_git(f"git+http://{host}/owner/repo"))


async def test_bytes_are_counted_before_they_are_written(
    host: Host, repository: Path, tmp_path: Path
) -> None:
    commit_tree(repository, "A" * 100_000, width=30, depth=1)

    with pytest.raises(FetchError, match="more than 20,000,000 bytes, the most that is cloned"):
        await clones(tmp_path, max_bytes=20_000_000).refresh(
            parse_git(f"git+http://{host}/owner/repo")
        )


async def test_tree_within_the_limits_is_written_as_it_is(
    host: Host, repository: Path, tmp_path: Path
) -> None:
    (repository / ".gitattributes").write_text("* text ident eol=crlf working-tree-encoding=UTF-32")
    (repository / "a.md").write_bytes(b"$Id$\nA line.\n")
    for name in (".gitattributes", "a.md"):
        blob = git(repository, "hash-object", "-w", "--no-filters", name)
        git(repository, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    git(repository, "commit", "-qm", "One")

    clone = await clones(tmp_path, max_files=2).refresh(parse_git(f"git+http://{host}/owner/repo"))

    assert (clone / "a.md").read_bytes() == b"$Id$\nA line.\n"


async def test_list_of_refs_is_read_to_a_limit(
    host: Host, repository: Path, tmp_path: Path
) -> None:
    commit_tree(repository, "A", width=1, depth=0)
    asked = parse_git(f"git+http://{host}/owner/repo@main")
    limited = clones(tmp_path)
    await limited.refresh(asked)
    commit = git(repository, "rev-parse", "HEAD")
    refs = "".join(f"{commit} refs/heads/{number:06}/main\n" for number in range(100_001))
    (repository / ".git" / "packed-refs").write_text("# pack-refs with: sorted\n" + refs)

    with pytest.raises(FetchError, match="has more than 100,000 refs, the most"):
        await limited.refresh(asked, forced=True)


def packet(content: bytes) -> bytes:
    return b"%04x%b" % (len(content) + 4, content)


def packed(kind: int, content: bytes, base: bytes = b"") -> bytes:
    size, header = len(content), bytearray()
    first = kind << 4 | size & 15
    size >>= 4
    while size:
        header.append(first | 128)
        first, size = size & 127, size >> 7
    return bytes([*header, first]) + base + zlib.compress(content)


def object_id(kind: str, content: bytes) -> bytes:
    return hashlib.sha1(b"%b %d\0%b" % (kind.encode(), len(content), content)).digest()


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def bomb() -> tuple[str, bytes]:
    """A commit, and a pack of 300 bytes with a file of two gigabytes."""
    base = b"A" * 65_536
    tree = b"100644 a.md\0" + object_id("blob", base)
    commit = b"tree %b\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\nOne\n" % (
        object_id("tree", tree).hex().encode()
    )
    # One byte copies all of the base.
    delta = varint(len(base)) + varint(2**31) + b"\x80" * 2**15
    objects = [packed(1, commit), packed(2, tree), packed(3, base)]
    objects.append(packed(7, delta, object_id("blob", base)))
    pack = b"PACK" + (2).to_bytes(4) + len(objects).to_bytes(4) + b"".join(objects)
    return object_id("commit", commit).hex(), pack + hashlib.sha1(pack).digest()


@pytest.fixture
def hostile() -> Iterator[ThreadingHTTPServer]:
    """Speaks git's protocol, and sends the pack of `bomb`; or nothing at the path `/stalls`."""
    commit, pack = bomb()
    server_ends = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            refs = f"{commit} HEAD\0shallow side-band-64k\n".encode()
            said = packet(b"# service=git-upload-pack\n") + b"0000" + packet(refs) + b"0000"
            self.reply("advertisement", said)

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.startswith("/stalls"):
                server_ends.wait(60)
                return
            said = packet(f"shallow {commit}".encode()) + b"0000"
            if b"done" in asked:
                said += packet(b"NAK\n") + packet(b"\1" + pack) + b"0000"
            self.reply("result", said)

        def reply(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", f"application/x-git-upload-pack-{kind}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server_ends.set()
    server.shutdown()
    thread.join()
    server.server_close()


async def test_file_that_needs_too_much_memory_ends_git(
    hostile: ThreadingHTTPServer, tmp_path: Path
) -> None:
    address = f"git+http://127.0.0.1:{hostile.server_port}/owner/repo"

    with pytest.raises(FetchError, match="git would need more than 400,000,000 bytes of memory"):
        await clones(tmp_path, max_memory=400_000_000).refresh(parse_git(address))

    assert list((tmp_path / "clones").iterdir()) == []


async def test_host_that_stalls_leaves_no_process(
    hostile: ThreadingHTTPServer, tmp_path: Path
) -> None:
    place = f"127.0.0.1:{hostile.server_port}/stalls"

    with pytest.raises(FetchError, match="could not be cloned within 1 seconds"):
        await clones(tmp_path, timeout_s=1).refresh(parse_git(f"git+http://{place}"))

    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [each for each in running if place.encode() in each]
