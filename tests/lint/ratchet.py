#!/usr/bin/env python3
"""Counts that may only fall: limits.txt, and what a lint says of a count against its limit.

usage: ratchet.py SOURCE [BUILD]        lowers the limits in limits.txt to what is counted now, and raises none

A lint is `measure(tree)`, which yields a Count or a Longest for each of its limits; `main(measure)` prints a test for each.
"""
import collections
import importlib
import io
import os
import re
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
FOLDERS = ('daemon', 'client', 'proto', 'cuda', 'tests')
CODE = ('.c', '.h', '.cc', '.cu', '.cuh')
TABLE = 'tests/lint/limits.txt'
LINTS = ('sizes', 'widths', 'words', 'duplicates', 'declared', 'readmes')
SHOWN = 20

# place: file:line. key: the same in another commit, wherever it stands there. size: of a Longest alone.
Finding = collections.namedtuple('Finding', 'place text key size', defaults=(None, 0))
Row = collections.namedtuple('Row', 'line limit aim')


class Count:
    """So many findings. aim: a limit that it need not fall below; listed: whether the table must name it (else its aim is the limit)."""

    def __init__(self, name, findings, advice, aim=0, listed=True):
        self.name, self.findings, self.advice, self.aim, self.listed = name, findings, advice, aim, listed

    def value(self):
        return len(self.findings)

    def beyond(self, _limit, before):
        """The findings that `before`, the same count of an earlier tree, does not have; all where it is None or nothing is new."""
        old = collections.Counter(f.key or f.text for f in before.findings) if before else {}
        new = []
        for f in self.findings:
            key = f.key or f.text
            if old.get(key, 0) > 0:
                old[key] -= 1
            else:
                new.append(f)
        return new or self.findings


class Longest(Count):
    """The largest size of a finding."""

    def value(self):
        return max((f.size for f in self.findings), default=0)

    def beyond(self, limit, before):
        return [f for f in self.findings if f.size > limit]


def read_folder(root):
    """{path: text} of the code, the scripts and the READMEs."""
    tree = {}
    for folder in FOLDERS:
        for directory, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if wanted(name):
                    with open(os.path.join(directory, name), encoding='utf-8') as f:
                        tree[os.path.relpath(os.path.join(directory, name), root)] = f.read()
    return dict(sorted(tree.items()))


def wanted(path):
    return path.endswith(CODE + ('.py', '.proto')) or os.path.basename(path) == 'README.md'


def git(root, *arguments):
    return subprocess.run(['git', '-C', root, *arguments], capture_output=True, check=True).stdout


def read_commit(root, commit):
    """The same of a commit."""
    with tarfile.open(fileobj=io.BytesIO(git(root, 'archive', commit, '--', *FOLDERS))) as archive:
        return {m.name: archive.extractfile(m).read().decode() for m in archive if m.isfile() and wanted(m.name)}


def set_in(root, row):
    """The commit in which a row was written; None: not to be known, or nothing has changed since."""
    try:
        commit = git(root, 'blame', '--porcelain', '-L', '%d,%d' % (row.line, row.line), '--', TABLE).split()[0].decode().lstrip('^')
        if not commit.strip('0'):
            return 'HEAD'
        changed = git(root, 'diff', '--name-only', commit, '--', *FOLDERS)
        return commit if changed else commit + '^'
    except (OSError, subprocess.CalledProcessError):
        return None


def rows(root):
    """{name: Row} of the table; other lines are those of cycles.py."""
    found = {}
    with open(os.path.join(root, TABLE), encoding='utf-8') as f:
        for line, text in enumerate(f, 1):
            if m := re.match(r'\s*(\d+)\s+(\d+)\s+(.*\S)', text):
                found[m[3]] = Row(line, int(m[1]), int(m[2]))
    return found


def verdict(count, row):
    """What is wrong with a count; None: nothing."""
    if row is None and count.listed:
        return 'limits.txt has no line for it'
    limit, aim = (row.limit, row.aim) if row else (count.aim, count.aim)
    if count.value() > limit:
        return 'the limit is %d' % limit
    least = max(count.value(), aim)
    if row and not count.listed and least == aim:
        return 'it needs no line of its own any more: remove it from limits.txt'
    if least < limit:
        return 'lower the limit from %d to %d in limits.txt' % (limit, least)
    return None


def report(count, row, earlier):
    """Lines of TAP. earlier: the same count where the limit was set, or None."""
    bad = verdict(count, row)
    yield '%s - %s: %d%s' % ('not ok' if bad else 'ok', count.name, count.value(), '; ' + bad if bad else '')
    if not bad:
        return
    limit = row.limit if row else count.aim
    if count.value() <= limit:
        yield '# A limit goes down with its count. tests/lint/ratchet.py . BUILD does it for all of them.'
        return
    found = count.beyond(limit, earlier())
    for f in found[:SHOWN]:
        yield '# %s: %s' % (f.place, f.text)
    if len(found) > SHOWN:
        yield '# ... and %d more' % (len(found) - SHOWN)
    yield '# ' + count.advice


def main(measure):
    """SOURCE is the first argument. Prints a test for each count that the table names or that is beyond its aim."""
    root = sys.argv[1]
    table = rows(root)
    counts = [c for c in measure(read_folder(root)) if c.listed or c.name in table or c.value() > c.aim]
    print('1..%d' % len(counts))
    trees = {}

    def earlier(count):
        commit = set_in(root, table[count.name]) if count.name in table else 'HEAD'
        try:
            if commit and commit not in trees:
                trees[commit] = {c.name: c for c in measure(read_commit(root, commit))}
        except (OSError, subprocess.CalledProcessError, tarfile.TarError):
            trees[commit] = {}
        return trees.get(commit, {}).get(count.name)

    bad = 0
    for count in counts:
        for line in report(count, table.get(count.name), lambda count=count: earlier(count)):
            print(line)
            bad |= line.startswith('not ok')
    sys.exit(1 if bad else 0)


def lower(root, build):
    """Writes the table anew."""
    tree = read_folder(root)
    counts = {c.name: c for lint in LINTS for c in importlib.import_module(lint).measure(tree)}
    with open(os.path.join(root, TABLE), encoding='utf-8') as f:
        lines = f.read().splitlines()
    for name, row in sorted(rows(root).items(), key=lambda item: -item[1].line):
        count = counts.get(name)
        if count is None:
            del lines[row.line - 1]
            print('removed: %s: nothing counts it' % name)
            continue
        least = max(count.value(), row.aim)
        if not count.listed and least == row.aim:
            del lines[row.line - 1]
            print('removed: %s' % name)
        elif least < row.limit:
            lines[row.line - 1] = '%5d %4d  %s' % (least, row.aim, name)
            print('lowered from %d to %d: %s' % (row.limit, least, name))
        elif count.value() > row.limit:
            print('left at %d, though it is %d: %s' % (row.limit, count.value(), name))
    if build:
        lines = importlib.import_module('cycles').lowered(lines, root, build)
    with open(os.path.join(root, TABLE), 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith('-'):
        sys.exit(__doc__.strip())
    lower(*(sys.argv[1:] + [None])[:2])
