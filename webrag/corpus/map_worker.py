"""What a worker process does with the files of a site's own map: the job behind `SiteMaps`."""

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from webrag.corpus.site_index import pack_listing
from webrag.ingestion.models import MapMark
from webrag.ingestion.site_maps.listing import MapRefusedError

_SIZE: Final = struct.Struct(">I")
_PACKED, _REFUSED, _WANTED, _NAMED = b"\x01", b"\x02", b"\x03", b"\x04"


@dataclass(frozen=True, slots=True)
class MapRequest:
    """Files of a map to read; as for `read_map`."""

    mark: MapMark
    page_url: str
    files: Mapping[str, bytes]

    def to_bytes(self) -> bytes:
        """As the job takes it."""
        head = json.dumps(
            {
                "mark": self.mark.model_dump(mode="json"),
                "page_url": self.page_url,
                "files": [(url, len(body)) for url, body in self.files.items()],
            }
        ).encode()
        return b"".join([_SIZE.pack(len(head)), head, *self.files.values()])

    @classmethod
    def from_bytes(cls, payload: bytes) -> "MapRequest":
        """What `to_bytes` gave."""
        (size,) = _SIZE.unpack_from(payload)
        start = _SIZE.size + size
        head = json.loads(payload[_SIZE.size : start])
        files = {}
        for url, length in head["files"]:
            files[url] = payload[start : start + length]
            start += length
        return cls(MapMark.model_validate(head["mark"]), head["page_url"], files)


@dataclass(frozen=True, slots=True)
class MapAnswer:
    """What came of reading; one of the attributes says it.

    Attributes:
        packed: The map, as `MapIndex` reads it.
        refusal: Why it cannot be used, as the end of a sentence.
        wanted: Further files that are needed.
        marks: Maps that the file, a page, names.
    """

    packed: bytes = b""
    refusal: str = ""
    wanted: tuple[str, ...] = ()
    marks: tuple[MapMark, ...] = ()

    @classmethod
    def from_bytes(cls, answer: bytes) -> "MapAnswer":
        """What the job gave."""
        kind, body = answer[:1], answer[1:]
        if kind == _PACKED:
            return cls(packed=body)
        if kind == _WANTED:
            return cls(wanted=tuple(json.loads(body)))
        if kind == _NAMED:
            return cls(marks=tuple(MapMark.model_validate(mark) for mark in json.loads(body)))
        return cls(refusal=body.decode())


def make_mapper(_setup: bytes) -> Callable[[bytes], bytes]:
    """What reads maps: a `MapRequest` to a `MapAnswer`."""
    return _mapped


def _mapped(payload: bytes) -> bytes:
    request = MapRequest.from_bytes(payload)
    # The process that only asks for it does without what reads maps.
    from webrag.ingestion.site_maps.reading import NamedMaps, Wanted, read_map

    try:
        found = read_map(request.mark, request.page_url, request.files)
    except MapRefusedError as error:
        return _REFUSED + str(error).encode()
    if isinstance(found, Wanted):
        return _WANTED + json.dumps(found.urls).encode()
    if isinstance(found, NamedMaps):
        return _NAMED + json.dumps([mark.model_dump(mode="json") for mark in found.marks]).encode()
    return _PACKED + pack_listing(found)
