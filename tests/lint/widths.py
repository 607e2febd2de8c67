#!/usr/bin/env python3
"""Lines over 100 columns.

usage: widths.py SOURCE        prints TAP
"""
import ratchet

COLUMNS = 100
KINDS = (('headers', ('.h', '.cuh')), ('sources', ('.c', '.cc', '.cu')))
ADVICE = 'Break these lines; comments too, which clang-format leaves as they are.'


def measure(tree):
    for kind, endings in KINDS:
        found = [ratchet.Finding('%s:%d' % (path, number), '%d columns: %s' % (len(line), line.strip()[:60]), line.strip())
                 for path, text in tree.items() if path.endswith(endings)
                 for number, line in enumerate(text.split('\n'), 1) if len(line) > COLUMNS]
        yield ratchet.Count('lines over %d columns in %s' % (COLUMNS, kind), found, ADVICE)


if __name__ == '__main__':
    ratchet.main(measure)
