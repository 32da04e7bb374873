"""What computes here: another build of it may round a score differently."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Give the version of this service."""
    try:
        return version("itan")
    except PackageNotFoundError:
        return "unknown"


BUILD = "/".join((installed_version(), version("numpy"), version("scipy")))
