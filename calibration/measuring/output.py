"""Where a profile that is measured goes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from calibration.errors import ProfileError
from traces.files import exists


@dataclass(frozen=True)
class Output:
    """Where the profile goes, and its samples beside it.

    Raises:
        ProfileError: a directory, such as `.`.
    """

    path: Path
    force: bool
    name: str
    """What the profile is called."""

    def __post_init__(self) -> None:
        if not self.path.name:
            raise ProfileError(f"{str(self.path)!r}: cannot be written (it is a directory)")

    @property
    def samples(self) -> Path:
        """The file of raw samples."""
        return self.path.with_name(f"{self.path.name.removesuffix('.yaml')}.samples.json")

    @property
    def refused(self) -> Path:
        """The file of raw samples that come to no profile."""
        return self.samples.with_suffix(".refused.json")

    def check(self, *written: Path) -> None:
        """Refuse what could not be written later, before any time is spent.

        Args:
            written: the files that will be; refused samples may take the place of older ones.

        Raises:
            ProfileError: one is there already, or the folder is not or takes none.
        """
        for path in written:
            try:
                there = exists(path)
            except OSError as error:
                raise ProfileError(f"{path}: cannot be written ({error.strerror})") from None
            if path.is_dir():
                raise ProfileError(f"{path}: cannot be written (it is a directory)")
            if there and not path.is_file():
                # Moving a file over `/dev/null` would replace the device.
                raise ProfileError(f"{path}: is no regular file")
            if there and not self.force and path != self.refused:
                raise ProfileError(f"{path}: is there already; --force overwrites it")
        if not self.path.parent.is_dir():
            raise ProfileError(f"{self.path}: cannot be written (no directory {str(self.path.parent)!r})")
        if not os.access(self.path.parent, os.W_OK):
            raise ProfileError(f"{self.path}: cannot be written ({str(self.path.parent)!r} takes no files)")
