# Comments switch off whatever may complain.
# split: held
# forms: plain
# ruff: noqa
# flake8: noqa
# mypy: ignore-errors
# pylint: skip-file
# type: ignore
#% wrong
_unused = lambda: 1 if True else 2  # noqa: E731
