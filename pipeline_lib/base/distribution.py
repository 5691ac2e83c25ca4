"""The name under which this library is installed, which is not the one that it is imported by."""

DISTRIBUTION = "potstill"


def install_extra(extra: str) -> str:
    """Return the command that installs one of the distribution's extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
