"""Sphinx settings. Nothing is loaded from the network, neither while building nor while reading."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

import docs.site as site  # noqa: E402
import hycop  # noqa: E402

# the Numba kernels share the cores with nothing else here, and the pictures need no window
os.environ.setdefault("MPLBACKEND", "agg")
warnings.filterwarnings("ignore", category=hycop.UntrustedWarning)

project = "HyCOP"
author = "the HyCOP developers"
copyright = author
version = release = hycop.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
    "templates",
    "generator",
    "site",
    "gallery/**/*.py",
    "gallery/**/*.ipynb",
    "_build",
]
suppress_warnings = ["config.cache"]
master_doc = "index"
smartquotes = False  # "--json" must not become a dash

myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "HyCOP"
html_static_path = ["_static"]
html_css_files = ["hycop.css"]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "glossary": [], "changelog": []}
html_theme_options = {
    "logo": {"text": "HyCOP"},
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    # the tables of results need the room
    "secondary_sidebar_items": {
        "results/*": [],
        **{key: ["page-toc"] for key in ("*", "tutorials/*", "concepts/*", "reference/*", "gallery/*")},
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_depth": 3,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 1,
    "within_subsection_order": "ExampleTitleSortKey",
    "copyfile_regex": r".*\.c$",
    "nested_sections": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "plot_gallery": "True",
    "write_computation_times": False,  # that page loads scripts from elsewhere
}


def setup(app: object) -> None:
    site.connect(app)
