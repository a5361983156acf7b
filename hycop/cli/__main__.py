"""So that ``python -m hycop.cli`` is the ``hycop`` command."""

from hycop_command import main

main()
