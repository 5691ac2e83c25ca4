"""What the tests of the page share: the content of one."""

from typing import Any

import pytest

from .made_up import made_up_content


@pytest.fixture(scope="session")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a page's content; it must not be changed."""
    return made_up_content(tmp_path_factory.mktemp("project"))
