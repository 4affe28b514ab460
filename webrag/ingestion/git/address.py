"""Addresses of repositories and of the files in them; it asks no host."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from webrag.errors import InputError

_PREFIXES: Final = ("git+https://", "git+http://")
_REPOSITORY: Final = re.compile(
    r"git\+(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?)"
    r"/(?P<path>[\w.~/+-]+?)(?:\.git)?/?(?:@(?P<ref>[^@#]+?))?(?:#(?P<folder>.*))?"
)
_FILE: Final = re.compile(
    r"git\+(?P<scheme>https?)://(?P<host>[^/@#]+)/(?P<path>[\w.~/+-]+?)\.git@(?P<ref>[^/@#]+)"
    r"/(?P<folder>[^#]*)"
)
_REF: Final = re.compile(r"[A-Za-z0-9_][\w.+/-]{0,199}")


@dataclass(frozen=True)
class GitFile:
    """A file of a repository, or a folder when `name` is empty or ends with a slash.

    Attributes:
        scheme: `https`, or `http` where the host is allowed to be private.
        path: Of the repository on its host, without `.git`.
        ref: A branch, tag or commit; `HEAD` for what the host shows first.
    """

    scheme: str
    host: str
    path: str
    ref: str
    name: str = ""

    @property
    def repository(self) -> str:
        """What git asks for."""
        return f"{self.scheme}://{self.host}/{self.path}"

    @property
    def site(self) -> str:
        """Host, repository and ref, as filters name them."""
        return f"{self.host}/{self.path}@{self.ref}"

    @property
    def url(self) -> str:
        """The canonical address."""
        ref = quote(self.ref, safe="")
        return f"git+{self.scheme}://{self.host}/{self.path}.git@{ref}/{quote(self.name, safe='/')}"


def is_git(address: str) -> bool:
    """Whether an address is of a repository, or of a file in one."""
    return address.startswith(_PREFIXES)


def parse_git(address: str) -> GitFile:
    """Read the address of a repository, `git+https://host/owner/repo@ref#folder`, or of a file.

    Raises:
        InputError: It is neither; the message says how one is written.
    """
    found = _FILE.fullmatch(address)
    name = unquote(found["folder"]) if found else ""
    ref = unquote(found["ref"]) if found else ""
    if found is None:
        found = _REPOSITORY.fullmatch(address)
        if found is not None:
            folder = (found["folder"] or "").strip("/")
            name, ref = f"{folder}/" if folder else "", found["ref"] or "HEAD"
    parts = [] if found is None else [*found["path"].split("/"), *name.rstrip("/").split("/")]
    if found is None or ".." in parts or "." in parts or "\0" in name or not _is_ref(ref):
        raise InputError(
            f"{address[:200]!r} is no address of a repository; write"
            " git+https://host/owner/repository, with @ and a branch, tag or commit, and # and a"
            " folder behind it where you want one."
        )
    path = "/".join(part for part in found["path"].split("/") if part)
    return GitFile(found["scheme"], found["host"].lower(), path, ref, name)


def _is_ref(ref: str) -> bool:
    return bool(_REF.fullmatch(ref)) and ".." not in ref and not ref.endswith((".lock", "/"))


def web_link(file: GitFile, commit: str, line: int | None = None) -> str:
    """Where the host shows a file as it was at a commit.

    The forms of GitHub, GitLab, Bitbucket and Gitea, by the host's name; others mostly run Gitea or
    Forgejo.
    """
    root, name = f"{file.scheme}://{file.host}/{file.path}", quote(file.name, safe="/")
    host = file.host.partition(":")[0]
    at = "" if line is None else f"#L{line}"
    if "gitlab" in host:
        return f"{root}/-/blob/{commit}/{name}{at}"
    if "bitbucket" in host:
        return f"{root}/src/{commit}/{name}{at.replace('#L', '#lines-')}"
    if "github" in host:
        return f"{root}/blob/{commit}/{name}{at}"
    return f"{root}/src/commit/{commit}/{name}{at}"
