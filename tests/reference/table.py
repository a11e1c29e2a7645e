"""Checks the reference against every row of the numerics table, within 1e-5. usage: table.py

Exits 1 if a row misses, or if a control (a known mistake) does not.
"""

import math
import sys

import table_advantages
import table_losses

ROWS = {"1", "1b", "1c", "2", "3", "4", "5", "5b", "6", "7", "8", "9", "10", "10b", "11", "12"}
ROWS |= {"13", "13b", "13c", "14", "15", "15b", "16", "17", "18", "19", "20", "21", "22", "23"}


def close(got, want):
    return len(got) == len(want) and all(math.isfinite(a) and abs(a - b) < 1e-5 for a, b in zip(got, want))


def main():
    wrong = 0
    for group in (table_advantages, table_losses):
        for row, got, want in group.checks():
            ROWS.discard(row.split()[0])
            if not close(got, want):
                wrong += 1
                print(f"row {row}: got {got}, must be {want}")
        for row, got, want in group.controls():
            if close(got, want):
                wrong += 1
                print(f"control {row}: does not miss")
    if ROWS:
        wrong += 1
        print(f"rows without a check: {sorted(ROWS)}")
    print("all rows agree, all controls miss" if wrong == 0 else f"{wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
