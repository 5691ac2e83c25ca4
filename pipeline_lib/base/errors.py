"""The one exception that users are meant to see: what is wrong, where, and the remedy."""


class DistilleryError(Exception):
    """An input, a parameter or a file is not usable; the message names it and says what to do."""
