#!/usr/bin/env python3
"""Each folder of sources has a README whose table names each of its files once.

usage: readmes.py SOURCE        prints TAP

Looked at are the first cells of tables headed `file`, `room` or `folder`: `x.c`, `.h`; `x.[ch]`; `x.*`; `x_*.c`; `sub/x.c`, for folders without a README.
"""
import fnmatch
import os
import re

import ratchet

HEADS = ('file', 'files', 'room', 'folder')
CELL = re.compile(r'^\|([^|]*)\|')
ENDINGS = ratchet.CODE + ('.py', '.proto')


def cells(text):
    """(line, first cell) of each row of a table of files."""
    head = None
    for number, line in enumerate(text.split('\n'), 1):
        m = CELL.match(line)
        if not m:
            head = None
        elif head is None:
            head = m[1].strip()
        elif head in HEADS and not set(m[1]) <= set(' -:'):
            yield number, m[1]


def spelled(name):
    """The names that `x.[ch]` or `x.[cu,cuh]` stands for."""
    m = re.fullmatch(r'(.*)\[([a-z,]+)\](.*)', name)
    return [m[1] + part + m[3] for part in (m[2].split(',') if ',' in m[2] else m[2])] if m else [name]


def named(folder, cell, files):
    """What a cell names: {file: whether by its whole name}, and the names of files that are not there."""
    found, lost, at, stems = {}, [], folder, []
    for name in (n for quoted in re.findall(r'`([^`]+)`', cell) for n in spelled(quoted)):
        if re.fullmatch(r'\.\w+', name):  # `x.c`, `y.c`, `.h`
            found.update({stem + name: True for stem in stems if stem + name in files})
            continue
        if not name.endswith(ENDINGS + ('.*',)):
            continue
        if '/' in name:  # those behind it may stand there too: `sub/x.c`, `y.c`
            at, name = os.path.join(folder, os.path.dirname(name)), os.path.basename(name)
        for place in (at, folder):
            match = [f for f in files if os.path.dirname(f) == place and fnmatch.fnmatchcase(os.path.basename(f), name)]
            if match:
                found.update({f: '*' not in name for f in match})
                stems += [os.path.splitext(f)[0] for f in match]
                break
        else:
            lost.append(name)
    return found, lost


def measure(tree):
    files = {path for path in tree if path.endswith(ENDINGS)}
    folders = {os.path.dirname(path) for path in files}
    homes = {os.path.dirname(path) for path in tree if path.endswith('README.md')}
    whole, loose, lost = {}, set(), []
    for home in homes:
        readme = os.path.join(home, 'README.md')
        for number, cell in cells(tree[readme]):
            found, missing = named(home, cell, [f for f in files if f.startswith(home + '/')])
            place = '%s:%d' % (readme, number)
            lost += [ratchet.Finding(place, '%s is not there' % name, name) for name in missing]
            for f, exactly in found.items():
                if exactly:
                    whole.setdefault(f, []).append(place)
                else:
                    loose.add(f)
    found = [ratchet.Finding(f, 'no README names it', f) for f in sorted(files - whole.keys() - loose)]
    found += [ratchet.Finding(f, 'named %d times: %s' % (len(places), ', '.join(places)), f) for f, places in whole.items() if len(places) > 1]
    yield ratchet.Count('folders of sources without a README', [ratchet.Finding(f, 'no README.md', f) for f in sorted(folders - homes)],
                        'Give it a README.md: what the folder is for, and a table `| file | what it is |`.')
    yield ratchet.Count('files that no README names, or that one names twice', found,
                        'A row a file in the README.md of its folder, in the table `| file | what it is |`.')
    yield ratchet.Count('rows of READMEs that name no file', lost, 'Take them out, or name the file as it is called now.')


if __name__ == '__main__':
    ratchet.main(measure)
