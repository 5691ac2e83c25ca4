"""Data sets from the Hugging Face hub, or from a folder in its layout."""

from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params.sources import hub_folder


def hub_location(dataset: str, revision: str | None, inputs: Path) -> dict[str, Any]:
    """Return where a data set is: below ``inputs`` if it is there, else on the hub."""
    local = hub_folder(dataset, inputs)
    return {"path": str(local.resolve())} if local else {"path": dataset, "revision": revision}


def load_hub(options: dict[str, Any], where: str) -> Any:
    """Return the result of ``datasets.load_dataset`` for ``options``.

    :param where: the key of params.yaml, for the message.
    """
    import datasets

    try:
        return datasets.load_dataset(**options)
    except Exception as error:  # the library raises many kinds: network, split, config, scripts
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise PotstillError(
            f"{where}: {options['path']} could not be loaded: {reason[0].rstrip('.')}. Check "
            "dataset, config, revision and split, or give a local folder."
        ) from error
