"""`python -m bentpipe`."""

from bentpipe.cli import main

main()
