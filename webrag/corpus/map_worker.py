"""What a worker process does with the files of a site's own map: the job behind `SiteMaps`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import ConfigDict

from webrag.corpus.site_index import pack_listing
from webrag.frozen import FrozenModel
from webrag.ingestion.models import MapMark
from webrag.ingestion.site_maps.listing import MapRefusedError


@dataclass(frozen=True, slots=True)
class MapRequest:
    """Files of a map to read; as for `read_map`."""

    mark: MapMark
    page_url: str
    files: Mapping[str, bytes]


class MapAnswer(FrozenModel):
    """What came of reading; one of the attributes says it.

    Attributes:
        packed: The map, as `MapIndex` reads it.
        refusal: Why it cannot be used, as the end of a sentence.
        wanted: Further files that are needed.
        marks: Maps that the file, a page, names.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    packed: bytes = b""
    refusal: str = ""
    wanted: tuple[str, ...] = ()
    marks: tuple[MapMark, ...] = ()


def make_mapper(_setup: object) -> Callable[[MapRequest], MapAnswer]:
    """Load what reads maps."""
    # The process that only asks for it does without.
    from webrag.ingestion.site_maps.reading import NamedMaps, Wanted, read_map

    def mapped(request: MapRequest) -> MapAnswer:
        try:
            found = read_map(request.mark, request.page_url, request.files)
        except MapRefusedError as error:
            return MapAnswer(refusal=str(error))
        if isinstance(found, Wanted):
            return MapAnswer(wanted=tuple(found.urls))
        if isinstance(found, NamedMaps):
            return MapAnswer(marks=tuple(found.marks))
        return MapAnswer(packed=pack_listing(found))

    return mapped
