"""Settings from files: secrets that neither an environment nor a process list shows."""

import os
import warnings
from pathlib import Path
from typing import Any, Final

from pydantic_settings import BaseSettings, SecretsSettingsSource

FOLDER: Final = "ITAN_SECRETS_FOLDER"
CLOUDS: Final = ("AWS_", "AZURE_", "GOOGLE_")


class SecretsUnreadable(ValueError):
    """A file that should hold a setting does not give it."""

    def __init__(self, reason: object) -> None:
        super().__init__(f"{FOLDER}: {reason}")


class SecretFiles(SecretsSettingsSource):
    """Reads the files of the folder that the environment names; nothing if it names none."""

    def __init__(self, settings: type[BaseSettings]) -> None:
        super().__init__(settings, os.environ.get(FOLDER) or None)

    def __call__(self) -> dict[str, Any]:
        """Give the settings that are there. Raises SecretsUnreadable: a service without its keys would be open."""
        with warnings.catch_warnings():
            # the library only warns of a folder that is missing, or of a file that leads out of it
            warnings.simplefilter("error")
            try:
                return super().__call__()
            except (OSError, UserWarning, ValueError) as error:
                raise SecretsUnreadable(error) from None


def credentials(folder: str) -> dict[str, str]:
    """Give the files of a folder that hold credentials of a cloud, such as AWS_SECRET_ACCESS_KEY."""
    if not folder:
        return {}
    files = [path for path in Path(folder).iterdir() if path.name.startswith(CLOUDS)]
    try:
        return {path.name: path.read_text().strip() for path in files}
    except (OSError, UnicodeDecodeError) as error:
        raise SecretsUnreadable(error) from None


def secret_files() -> list[str]:
    """Give the names of the files in that folder."""
    folder = os.environ.get(FOLDER)
    return [path.name for path in Path(folder).iterdir()] if folder else []
