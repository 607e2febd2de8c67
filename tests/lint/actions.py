#!/usr/bin/env python3
"""Each fermion action stands in all places of docs/howto-add-an-action.md, and its name nowhere else in the product.

usage: actions.py SOURCE_ROOT        prints TAP, a test an action and one of the product
"""
import glob
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
# Where the name of an action may stand as a string (client/quda: which of them QUDA has, too); quark-gauge has gauge actions, whose names are others' business.
MAY_NAME = re.compile(r'^(proto/action/actions\.c|daemon/engine/action/[^/]+/|daemon/engine/overlap/|daemon/engine/gauge_tool/|client/quda/operator\.c|tests/)')
COMMENT = re.compile(r'/\*.*|^[^:]*:\d+:\s*\*.*|//.*')


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as f:
        return f.read()


def names():
    rows = read('proto/action', 'actions.c').split('qk_action_rows[]')[1]
    return re.findall(r'\.name = "([^"]+)"', rows)


def missing(name):
    """Places that lack the action."""
    tables = {}
    for path in [f for room in ('action/*', 'overlap') for f in glob.glob(os.path.join(ROOT, 'daemon/engine', room, '*.c'))]:
        with open(path, encoding='utf-8') as f:
            for symbol, table in re.findall(r'^const qk_action_t (\w+) = \{(.*?)\};', f.read(), re.M | re.S):
                for given in re.findall(r'\.name = "([^"]+)"', table):
                    tables[given] = symbol
    symbol = tables.get(name)
    if not symbol:
        yield 'daemon/engine/action/: no table has .name = "%s"' % name
    elif len(re.findall(r'\b%s\b' % symbol, read('daemon/engine/setup/actions.c'))) < 2:
        yield 'daemon/engine/setup/actions.c: %s is not declared and listed' % symbol
    if not re.search(r'^\| `%s` \|' % re.escape(name), read('docs/physics.md').split('## The operator')[1], re.M):
        yield 'docs/physics.md, "The operator": no row | `%s` |' % name
    if "'%s':" % name not in read('tests/ref/ref_dirac.py'):
        yield "tests/ref/ref_dirac.py: ACTIONS has no entry '%s'" % name


def strangers(known):
    """Lines of the product that name an action as a string."""
    found = subprocess.run(['git', 'grep', '-nE', '"(%s)"' % '|'.join(map(re.escape, known)), '--', '*.c', '*.h', '*.cc', '*.cu', '*.cuh'],
                           cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout
    quoted = re.compile('"(%s)"' % '|'.join(map(re.escape, known)))
    return [line for line in found.splitlines() if not MAY_NAME.match(line) and quoted.search(COMMENT.sub('', line))]


known = names()
print('1..%d' % (len(known) + 1))
for action in known:
    bad = list(missing(action))
    print('%s - %s is in all places' % ('not ok' if bad else 'ok', action))
    for line in bad:
        print('# ' + line)
bad = strangers(known)
print(('not ok' if bad else 'ok') + ' - actions are named in their rows and tables alone')
for line in bad:
    print('# ' + line)
