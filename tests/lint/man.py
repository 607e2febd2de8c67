#!/usr/bin/env python3
"""The option list of a man page is the one that the program's configuration table makes.

usage: man.py PROGRAM PAGE        prints TAP

`PROGRAM --help-man` prints the list as mdoc; each of its entries must stand in PAGE, word by word.
"""
import os
import re
import subprocess
import sys


def entries(mdoc):
    """Flag -> (arguments, text) of each `.It Fl` entry, white space made equal."""
    found = {}
    for m in re.finditer(r'^\.It Fl -(\S+)([^\n]*)\n((?:(?!\.(?:It|El|Ss|Sh|Bl)\b).*\n?)*)', mdoc, re.MULTILINE):
        found[m[1]] = (' '.join(m[2].split()), ' '.join(m[3].split()))
    return found


def main():
    program, page = sys.argv[1], sys.argv[2]
    made = entries(subprocess.run([program, '--help-man'], capture_output=True, text=True, check=True).stdout)
    with open(page, encoding='utf-8') as f:
        written = entries(f.read())
    print('1..1')
    bad = [name for name in made if written.get(name) != made[name]]
    print(f"{'ok' if made and not bad else 'not ok'} - {os.path.basename(page)} lists the {len(made)} options of "
          f'{os.path.basename(program)} as its table has them')
    for name in bad:
        print(f'# --{name}: page has {written.get(name)}, table has {made[name]}')


main()
