"""Fixtures that any test file may use."""

from tests.browser import browser, complaints, page

__all__ = ["browser", "complaints", "page"]
