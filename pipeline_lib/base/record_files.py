"""Records: JSON files whose content has a class, checked when they are written and read."""

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json, write_json
from pipeline_lib.base.seals import check_sealed


class Record(BaseModel):
    """A part of a file: unknown keys are errors, and it cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordFile(Record):
    """A record stored as a file.

    :cvar others: what is done about keys of the file that the class does not have.
    """

    others: ClassVar[Literal["forbid", "ignore"]] = "forbid"

    def write(self, path: Path) -> None:
        """Write it as JSON; equal records give equal bytes."""
        write_json(path, self.model_dump())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what :meth:`write` wrote."""
        check_sealed(path)
        content = read_json(path)
        try:
            return cls.model_validate(content, extra=cls.others)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "the file"
            raise PotstillError(
                f"{path}: {key}: {first['msg']}. Delete it and run `distill run` to make it again."
            ) from error
