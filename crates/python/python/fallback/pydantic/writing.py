"""Turns models and what they hold into plain values."""

import enum


def plain(value, mode, settings):
    """Returns a value without models in it; in the mode "json", as JSON has it."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode=mode, **settings)
    if isinstance(value, dict):
        return plain_dict(value, mode, settings)
    if isinstance(value, (list, tuple, set, frozenset)):
        return plain_items(value, mode, settings)
    if hasattr(type(value), "__dataclass_fields__"):
        return {
            name: plain(getattr(value, name), mode, settings) for name in type(value).__dataclass_fields__
        }
    return json_value(value) if mode == "json" else value


def plain_dict(value, mode, settings):
    """Returns a dict; two keys that JSON writes alike are refused, as one of the values would be lost."""
    found = {}
    for key, item in value.items():
        key = plain_key(key, mode)
        if key in found:
            raise ValueError("two keys of a dict are written as %r in JSON" % (key,))
        found[key] = plain(item, mode, settings)
    return found


def plain_key(key, mode):
    """Returns the key of a dict; JSON has only strings."""
    if mode != "json" or isinstance(key, str) and not isinstance(key, enum.Enum):
        return key
    key = json_value(key)
    return key if isinstance(key, str) else str(key)


def plain_items(values, mode, settings):
    """Returns the items of a list, tuple or set, in the same kind of collection where Python has it."""
    items = [plain(value, mode, settings) for value in values]
    if mode == "json" or isinstance(values, list):
        return items
    if isinstance(values, tuple):
        return type(values)(*items) if hasattr(values, "_fields") else tuple(items)
    return type(values)(items)


def json_value(value):
    """Returns one value as JSON has it."""
    if isinstance(value, enum.Enum):
        return json_value(value.value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "isoformat"):  # datetime, date, time
        text = value.isoformat()
        return text[:-6] + "Z" if text.endswith("+00:00") else text
    if isinstance(value, (bytes, bytearray)):
        return value.decode()
    if hasattr(value, "total_seconds"):
        return duration(value.total_seconds())
    return written_as_text(value)


def written_as_text(value):
    """Returns a path, UUID or Decimal as text, and refuses everything else."""
    module = type(value).__module__.partition(".")[0]
    if module in ("pathlib", "uuid", "decimal", "ipaddress", "pydantic"):
        return str(value)
    if hasattr(value, "path") and type(value).__name__ == "Attachment":
        return {"path": str(value.path)}
    raise TypeError("Unable to serialize unknown type: %s" % type(value))


def duration(seconds):
    """Writes a duration as ISO 8601 has it."""
    sign = "-" if seconds < 0 else ""
    days, rest = divmod(abs(seconds), 86400)
    text = "%sP%dD" % (sign, days) if days else "%sP" % sign
    if rest or not days:
        text += "T%gS" % rest if rest != int(rest) else "T%dS" % rest
    return text
