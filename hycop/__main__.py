"""So that ``python -m hycop`` is the ``hycop`` command."""

from hycop_command import main

main()
