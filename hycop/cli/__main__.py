"""So that ``python -m hycop.cli`` works too."""

from hycop.cli import main

main()
