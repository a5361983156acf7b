"""HyCOP: fast, readable surrogates of PDE solvers, composed from simple ones.

``hycop/__init__.pyi`` lists the public names. Each is imported when it is first used, so that ``import hycop`` and
commands that need little start at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
