"""The profile that `init` writes can be read back."""

import pytest
from ruamel.yaml import YAML

from pipeline_lib.onboarding.profile_writer import overlay_text


@pytest.mark.parametrize("word", ["reviews", "a class of some more words"])
@pytest.mark.parametrize("count", [2, 6, 40])
def test_class_names_of_several_words_are_not_broken_over_lines(word: str, count: int) -> None:
    values = {"tasks": {"r": {"labels": {f"{word} {n}": [f"{word} {n}"] for n in range(count)}}}}
    text = overlay_text(values, "default.yaml", "Of files.")
    read = YAML(typ="safe", pure=True).load(text)
    assert read == {"extends": "default.yaml", **values}
