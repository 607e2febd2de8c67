#!/usr/bin/env python3
"""Pairs of functions that share 80 tokens in a row, with names alike, numbers alike and literals alike.

usage: duplicates.py SOURCE        prints TAP
"""
import os

import csource
import ratchet

TOKENS = 80
ADVICE = 'Give both one function for what they share, or a table.'


def pairs(functions):
    """{(index, index)}, the first less."""
    first, shared = {}, {}
    for n, f in enumerate(functions):
        code = f.code
        for i in range(len(code) - TOKENS + 1):
            row = code[i:i + TOKENS]
            if first.setdefault(row, n) != n:
                shared.setdefault(row, {first[row]}).add(n)
    return {(a, b) for members in shared.values() for a in members for b in members if a < b}


def measure(tree):
    functions = [f for path, text in tree.items() if path.endswith(ratchet.CODE) for f in csource.functions(path, text)]
    product, tests = [], []
    for a, b in sorted(pairs(functions)):
        a, b = functions[a], functions[b]
        key = ' '.join(sorted(os.path.basename(f.path) + ':' + f.name for f in (a, b)))
        (tests if 'tests/' in (a.path[:6], b.path[:6]) else product).append(
            ratchet.Finding('%s:%d' % (a.path, a.line), '%s is like %s of %s:%d' % (a.name, b.name, b.path, b.line), key))
    yield ratchet.Count('pairs of functions of the product that share %d tokens' % TOKENS, product, ADVICE, 15)
    yield ratchet.Count('pairs of functions with tests that share %d tokens' % TOKENS, tests, ADVICE, 15)


if __name__ == '__main__':
    ratchet.main(measure)
