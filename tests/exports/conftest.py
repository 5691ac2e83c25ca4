"""What the tests of exports share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.readable import write_workspace


@pytest.fixture(scope="module")
def own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have transformers keep the module files that it loads in a folder of their own."""
    from transformers import CONFIG_MAPPING

    from pipeline_lib.models.folders import MODEL_TYPE

    with pytest.MonkeyPatch.context() as patch:
        cache = str(tmp_path_factory.mktemp("modules"))
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", cache)
        patch.setattr(sys, "path", [*sys.path])
        # Other tests register the library's own classes, which would come before the folder's.
        patch.delitem(CONFIG_MAPPING._extra_content, MODEL_TYPE, raising=False)
        yield
    for name in [name for name in sys.modules if name.startswith("transformers_modules")]:
        del sys.modules[name]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with a model of each kind; it must not be changed."""
    return write_workspace(tmp_path_factory.mktemp("workspace"))
