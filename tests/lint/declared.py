#!/usr/bin/env python3
"""What a C file gives to others is declared in a header of its name.

usage: declared.py SOURCE        prints TAP

The header of x.c is x.h or x_impl.h; that of x_y.c may be one of x too. Other headers that several files implement are named here.
"""
import os
import re

import csource
import ratchet

PRODUCT = ('daemon/', 'client/', 'proto/', 'cuda/')
# Their subject is one, their files are several.
SHARED = {'quark.h', 'quark_buffer.h', 'quark_daemon.h', 'quark_eigen.h', 'quark_wall.h', 'ctl.h', 'solving.h', 'workflow.h', 'checks.h',  # libquark; commands of quarkctl
          'gauge_format.h', 'operator.h', 'field.h', 'multigrid.h', 'mg_file.h', 'smoother_impl.h', 'tool.h',
          'ops.h', 'host_pages.h', 'served.h'}
# main, and what quarkd has in place of the C library's, whose header declares it
SYSTEM = {'main', 'epoll_wait'}
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.DOTALL)


def may_declare(header, source):
    """Whether a header of this name may declare what a source of that name defines."""
    h = re.sub(r'(_impl)?\.h$', '', header)
    s = source[:-2]
    return header in SHARED or s == h or s.startswith(h + '_')


def measure(tree):
    prototypes = {}  # function -> headers
    for path, text in tree.items():
        if path.startswith(PRODUCT) and path.endswith('.h'):
            for name in set(re.findall(r'\b[A-Za-z_]\w*', COMMENT.sub(' ', text))):
                prototypes.setdefault(name, []).append(os.path.basename(path))
    found = []
    for path, text in tree.items():
        if not path.startswith(PRODUCT) or not path.endswith('.c'):
            continue
        source = os.path.basename(path)
        lost = [f for f in csource.functions(path, text) if not f.static and f.name not in SYSTEM
                and not any(may_declare(h, source) for h in prototypes.get(f.name, ()))]
        if lost:
            where = sorted({h for f in lost for h in prototypes.get(f.name, ())})
            found.append(ratchet.Finding('%s:%d' % (path, lost[0].line), '%s declares %s%s' % (
                ' or '.join(where) or 'no header', ', '.join(f.name for f in lost[:3]), ', ...' if len(lost) > 3 else ''), source))
    yield ratchet.Count('files whose functions another header declares', found,
                        'Make a header of its name for them; or, for a subject of several files, name its header in declared.py.')


if __name__ == '__main__':
    ratchet.main(measure)
