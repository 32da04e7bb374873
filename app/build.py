"""What computes here: another build of it may round a score, or decide, differently."""

from importlib.metadata import PackageNotFoundError, version

from core import SNAPSHOT_VERSION


def installed_version() -> str:
    """Give the version of this service."""
    try:
        return version("itan")
    except PackageNotFoundError:
        return "unknown"


BUILD = "/".join((installed_version(), version("numpy"), version("scipy"), f"engine {SNAPSHOT_VERSION}"))
