"""How a model behaves: `model_config = ConfigDict(extra="forbid")`."""

EXTRA = ("ignore", "forbid", "allow")


def ConfigDict(**settings):
    """Returns the settings as the dict that they are."""
    return settings


def merged(bases, own):
    """Returns the settings of a class: those of its bases, then its own; `extra` must be a known one."""
    settings = {}
    for base in reversed(bases):
        settings.update(getattr(base, "model_config", {}))
    settings.update(own)
    if settings.get("extra", "ignore") not in EXTRA:
        raise ValueError("extra must be one of %s, not %r" % (", ".join(EXTRA), settings["extra"]))
    return settings
