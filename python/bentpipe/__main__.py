"""`python -m bentpipe`."""

from bentpipe.start import main

main()
