#!/usr/bin/env python3
"""Makes the C source of quarkd._quark, and its stub for type checkers, from the public headers.

usage: build_quark.py OUT.c OUT.pyi HEADER...

The headers are quark.h and what it includes, without their comments and preprocessor lines: what the compiler then checks
against the headers themselves is all that Python knows of libquark.
"""
import re
import sys

import cffi

# Macros are not seen by cffi; this one is a number.
MACROS = ('QUARK_RECONNECT_AUTO',)
# cffi writes a pointer to an array of constants as int32_t(const *p)[3].
CONST_ARRAY = re.compile(r'\b(\w+)\(const \*')
STUB = '''"""Made by build_quark.py from the public headers. Pointers and structs are cffi's."""
from typing import Any

class Lib:
    """libquark"""
%s

ffi: Any
lib: Lib
'''


def declarations(text):
    """What is left of a header: no comments, no preprocessor, nothing that is for C++ alone."""
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.DOTALL)
    text = re.sub(r'^#ifdef __cplusplus\n.*?^#endif\n', '', text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r'^[ \t]*#(?:.*\\\n)*.*\n', '', text, flags=re.MULTILINE)
    return re.sub(r'\bQUARK_API\b\s*', '', text)


def builder(headers):
    """The FFI of the headers, each given before what needs it."""
    ffi = cffi.FFI()
    for header in headers:
        with open(header, encoding='utf-8') as f:
            ffi.cdef(declarations(f.read()))
    for name in MACROS:
        ffi.cdef('#define %s ...' % name)
    ffi.set_source('quarkd._quark', '#include "client/quark.h"\n', py_limited_api=True)
    return ffi


def stub(headers):
    """Names, constants and the numbers of arguments."""
    lines = ['    %s: int' % name for name in MACROS]
    for header in headers:
        with open(header, encoding='utf-8') as f:
            text = declarations(f.read())
        for body in re.findall(r'enum(?:\s+\w+)?\s*\{(.*?)\}', text, re.DOTALL):
            lines += ['    %s: int' % word.split('=')[0].strip() for word in body.split(',') if word.strip()]
        for what, name, arguments in re.findall(r'^((?:const )?\w+ \*?)(quark_\w+)\(((?:[^()]|\([^()]*\))*)\);', text, re.MULTILINE):
            n = 0 if arguments.strip() == 'void' else arguments.count(',') + 1
            result = {'void': 'None', 'bool': 'bool'}.get(what.strip(), 'Any' if '*' in what else 'int')
            lines.append('    def %s(self%s, /) -> %s: ...' % (name, ''.join(', a%d: Any' % i for i in range(n)), result))
    return STUB % '\n'.join(lines)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__.strip())
    source, pyi, headers = sys.argv[1], sys.argv[2], sys.argv[3:]
    builder(headers).emit_c_code(source)
    with open(source, encoding='utf-8') as f:
        text = f.read()
    with open(source, 'w', encoding='utf-8') as f:
        f.write(CONST_ARRAY.sub(r'\1 const (*', text))
    with open(pyi, 'w', encoding='utf-8') as f:
        f.write(stub(headers))


if __name__ == '__main__':
    main()
