#!/usr/bin/env python3
"""Files in a folder, lines of a file, lines of a function.

usage: sizes.py SOURCE        prints TAP
"""
import os

import csource
import ratchet

FILES, LINES, FUNCTION = 25, 600, 60
PARTS = (('the product', lambda path: not path.startswith('tests/')), ('tests', lambda path: path.startswith('tests/')))


def measure(tree):
    folders = {}
    for path in tree:
        if path.endswith(ratchet.CODE + ('.py',)):
            folders.setdefault(os.path.dirname(path), []).append(path)
    for folder, files in folders.items():
        yield ratchet.Count('files in %s' % folder, [ratchet.Finding(f, 'one of %d files' % len(files), os.path.basename(f)) for f in files],
                            'A folder has one subject and at most %d files: give part of them a folder of their own.' % FILES, FILES, False)
    for name, inside in PARTS:
        files = [(path, text) for path, text in tree.items() if inside(path) and path.endswith(ratchet.CODE + ('.py',))]
        sized = [ratchet.Finding(path, '%d lines' % text.count('\n'), path, text.count('\n')) for path, text in files]
        advice = 'Divide it by subject: a file has at most %d lines.' % LINES
        yield ratchet.Longest('lines of the longest file of %s' % name, sized, advice, LINES)
        yield ratchet.Count('files of %s over %d lines' % (name, LINES), [f for f in sized if f.size > LINES], advice)
        sized = [ratchet.Finding('%s:%d' % (f.path, f.line), '%s: %d lines' % (f.name, f.lines), os.path.basename(f.path) + f.name, f.lines)
                 for path, text in files if path.endswith(ratchet.CODE) for f in csource.functions(path, text)]
        advice = 'Divide it by steps: a function has at most %d lines.' % FUNCTION
        yield ratchet.Longest('lines of the longest function of %s' % name, sized, advice, FUNCTION)
        yield ratchet.Count('functions of %s over %d lines' % (name, FUNCTION), [f for f in sized if f.size > FUNCTION], advice)


if __name__ == '__main__':
    ratchet.main(measure)
