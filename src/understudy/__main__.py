"""`python -m understudy` is the `understudy` command."""

from understudy.cli import main

main()
