"""The command line `advisor`: parses options, calls the public functions, prints the results.

`commands.py` has evaluate, simulate, recommend, audit, report and cards; `play.py` has play and
explore; `options.py` has what they share; `text.py` formats results; `terminal.py` prints them.
Errors and exit codes are handled in `advisor/__main__.py`.
"""
