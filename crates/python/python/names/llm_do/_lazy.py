"""Names that are looked up in their module when they are first used."""

from importlib import import_module

from ._missing import raise_missing


def lazy_names(package, table):
    """Returns `__getattr__` and `__all__` for a package; the table maps modules to the names they define."""
    module_of = {name: module for module, names in table.items() for name in names}

    def __getattr__(name):
        if name not in module_of:
            raise_missing(package, name, module_of)
        return getattr(import_module(module_of[name]), name)

    return __getattr__, sorted(module_of)
