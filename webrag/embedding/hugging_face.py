"""Says what sentence-transformers is going to download from the Hugging Face Hub."""

import logging
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from huggingface_hub import HfApi
from huggingface_hub.hf_api import RepoSibling

from webrag.embedding.known_models import download_notice, is_on_disk

_log = logging.getLogger(__name__)

# In the order sentence-transformers prefers them; networks of other programs lie in these folders.
_WEIGHTS = ("*.safetensors", "*.bin")
_OTHERS = frozenset({"onnx", "openvino"})
_TIMEOUT_S = 10.0


def announce_hub_download(model: str, folder: Path, *, endpoint: str | None = None) -> None:
    """Say the size and the licence of what is downloaded, as the Hub tells them.

    Where the Hub does not answer, both are said to be unknown; it is for the download to fail.
    Blocks for up to ten seconds.

    Args:
        model: Its name at the Hub; one without an owner is sentence-transformers' own.
        folder: Where weights are kept; nothing is asked or said where they are there.
        endpoint: Address of the Hub; None takes that of the environment, or the public one.
    """
    repository = model if "/" in model else f"sentence-transformers/{model}"
    if is_on_disk(repository, folder, _WEIGHTS):
        return
    size, licence = None, None
    try:
        told = HfApi(endpoint=endpoint).model_info(
            repository, files_metadata=True, timeout=_TIMEOUT_S
        )
    except Exception:  # noqa: BLE001 - a failed connection is an error of the HTTP client it has
        _log.debug("The Hub says nothing of %s.", repository, exc_info=True)
    else:
        size = _weights_bytes(told.siblings or ())
        licence = getattr(told.card_data, "license", None)
    _log.warning(download_notice(repository, folder, size_bytes=size, licence=licence))


def _weights_bytes(files: Sequence[RepoSibling]) -> int | None:
    """Bytes of the weights that are read; None where the Hub does not say."""
    for pattern in _WEIGHTS:
        sizes = [
            file.size
            for file in files
            if (path := PurePosixPath(file.rfilename)).match(pattern)
            and _OTHERS.isdisjoint(path.parts)
        ]
        if sizes:
            known = [size for size in sizes if size is not None]
            return sum(known) if len(known) == len(sizes) else None
    return None
