"""Run the command line as `python -m privet`."""

from privet.cli import main

main()
