#!/usr/bin/env python3
"""Private words that are to give way to those of the trade, statuses that are passed on by hand, and precisions that are told apart
by hand.

usage: words.py SOURCE        prints TAP

Of words with a second, common meaning (slot, column, lane, keep, load, setup, ahead, fall) no count says anything: they are not here.
"""
import re

import ratchet

# word: what is said instead
WORDS = {
    'mount': 'setup',
    'berth': 'staging buffer',
    'settled': 'done',
    'lone': 'single-RHS',
    'seat': 'in-flight entry',
    'abreast': 'slot group',
    'doom': 'close',
    'reap': 'collect',
    'mend': 'refresh',
    'remedy': 'refresh',
    'suspect': 'quarantined',
    'ties': 'hooks',
    'legacy': 'adopted',
    'lastwords': 'stderr tail',
    'border': 'halo',
    'hear': 'receive',
    'disbelief': 'residual gap',
}
# Where a word has its ordinary meaning: file systems are mounted, and numbers are rounded with ties to even.
ORDINARY = {'mount': ('daemon/base/room.c', 'daemon/front/state/', 'client/selftest/machine.c'), 'ties': ('cuda/site/lane.h',)}
# Users and their scripts know these by name: an old flag, a row of the plan that STATUS has.
KNOWN = {'lone': ('"lone-solver"', '"lone"')}
PRODUCT = ('daemon/', 'client/', 'proto/', 'cuda/')
# Half by its name, where what is meant is often "has scales" or "the last precision"; three for their number.
PRECISION = re.compile(r'(?:[=!]=|[<>]=?|case) ?qk_half\b|\bqk_half (?:[=!]=|[<>])|\bint p = 0; p < 3\b')
# Matrices, vectors and files that are in single or half and in nothing else, and settings that choose between these two.
LOW = ('cuda/args/mg_args.c', 'cuda/args/vector_block_args.c', 'cuda/body/coarse_setup.h', 'cuda/cpu/coarse.cc', 'cuda/cpu/transfer.cc',
       'cuda/cpu/vector_block.cc', 'cuda/gpu/krylov/vector_block.cu', 'cuda/gpu/multigrid/coarse.cu', 'cuda/gpu/multigrid/transfer.cu',
       'daemon/engine/checkpoint/mg_header.', 'daemon/engine/eigen/deflation.c', 'daemon/engine/multigrid/mg_check.c',
       'daemon/engine/multigrid/mg_params.c', 'daemon/engine/multigrid/mg_text.c')
PLUMBING = re.compile(r'if \(!?status( == qk_ok)?\) status =')


def lines(tree, below, endings, pattern):
    """A finding for each line that has the pattern, which is in lower case."""
    found = []
    for path, text in tree.items():
        if path.startswith(below) and path.endswith(endings):
            low, last = text.lower(), -1
            for m in pattern.finditer(low):
                begin = low.rfind('\n', 0, m.end()) + 1
                if begin != last:
                    last = begin
                    line = text[begin:].split('\n', 1)[0].strip()
                    key = re.sub(r'"[\w/]*/', '"', line)  # an include stays what it is when a file moves
                    found.append(ratchet.Finding('%s:%d' % (path, low.count('\n', 0, begin) + 1), line, key))
    return found


def measure(tree):
    for word, instead in WORDS.items():
        found = lines(tree, PRODUCT, ratchet.CODE + ('.proto',), re.compile('(?<![a-z])%s(?:s|ed)?(?![a-z])' % word))
        found = [f for f in found if not f.place.startswith(ORDINARY.get(word, ()))
                 and not any(name in f.text for name in KNOWN.get(word, ()))]
        yield ratchet.Count('lines with the word %s' % word, found, 'Say "%s".' % instead)
    found = [f for f in lines(tree, ('daemon/engine/', 'cuda/'), ratchet.CODE, PRECISION) if not f.place.startswith(LOW)]
    yield ratchet.Count('lines that tell precisions apart by hand', found, 'Ask qk_prec_scaled, QK_PRECS or with_storage.')
    found = lines(tree, 'daemon/engine/', ratchet.CODE, PLUMBING)
    yield ratchet.Count('lines of daemon/engine that pass a status on', found,
                        'Let a function return at the first failure, or call what keeps the first status.', 50)


if __name__ == '__main__':
    ratchet.main(measure)
