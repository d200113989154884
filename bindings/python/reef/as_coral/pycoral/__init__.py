# SPDX-License-Identifier: Apache-2.0
"""PyCoral's modules, by Reef: every module of reef.coral under PyCoral's name, the same objects."""

import importlib as _importlib
import pkgutil as _pkgutil
import sys as _sys

import reef.coral as _coral

__version__ = "2.0.0"  # PyCoral's release whose interface this is


def _take_over():
    for found in _pkgutil.walk_packages(_coral.__path__, "reef.coral."):
        name = found.name[len("reef.coral."):]
        module = _importlib.import_module(found.name)
        _sys.modules[f"{__name__}.{name}"] = module
        if "." not in name:
            globals()[name] = module


def _be_strict():
    from . import _imprinting_engine
    name = f"{__name__}.learn.imprinting"
    _sys.modules[f"{name}.engine"] = _imprinting_engine
    # reef.coral's package stays as it is: this one has another engine in it.
    package = type(_sys)(name, "Imprinting engine.")
    package.__path__, package.engine = [], _imprinting_engine
    _sys.modules[name] = package
    learn = type(_sys)(f"{__name__}.learn", "Learning on the device.")
    learn.__path__, learn.imprinting = [], package
    learn.backprop = _sys.modules[f"{__name__}.learn.backprop"]
    _sys.modules[f"{__name__}.learn"] = globals()["learn"] = learn


_take_over()
_be_strict()
