#!/usr/bin/env python3
"""The lints that look for places that were missed, on made-up sources.

usage: test_places.py SOURCE        prints TAP
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support', 'python'))
import kernels  # noqa: E402
import messages  # noqa: E402
import tap  # noqa: E402

ROWS = '''#define QK_A_KERNELS(X) \\
  X(hop, qk_hop_args_t) \\
  X(pack, qk_pack_args_t)
#define QK_KERNEL_SIZES(X) X(links_bytes, (int reals))
'''
HEADERS = {'ops.h': 'typedef struct qk_hop_args {\n} qk_hop_args_t;\n', 'mg_ops.h': 'typedef struct qk_pack_args {\n} qk_pack_args_t;\n'}
HOP, PACK = '| `hop` | a hop | `ops.h` | `hop.h` |\n', '| `pack` | faces | `mg_ops.h` | `hop.h`, `pack.h` |\n'


def listed(*lines, sizes='`links_bytes`'):
    readme = '## Kernels\n\n| kernel | x | y | z |\n| --- | --- | --- | --- |\n' + ''.join(lines) + '\n' + sizes + '\n## Next\n\n| `no` | a | `b` | `c` |\n'
    return list(kernels.complaints(ROWS, readme, HEADERS, ['hop.h', 'pack.h']))


@tap.test
def a_kernel_has_its_line(_root):
    assert listed(HOP, PACK) == [], listed(HOP, PACK)
    for lines, name, word in (((HOP,), 'pack', 'without a line'), ((HOP, PACK, PACK), 'pack', 'twice'),
                              ((HOP, PACK, HOP.replace('hop`', 'old`')), 'old', 'not a row'),
                              ((HOP, PACK.replace('mg_ops.h', 'ops.h')), 'pack', 'stands in mg_ops.h'),
                              ((HOP.replace('hop.h', 'gone.h'), PACK), 'hop', 'no gone.h'), ((HOP.replace('a hop', ' '), PACK), 'hop', 'no word')):
        found = listed(*lines)
        assert len(found) == 1 and found[0].startswith(name + ':') and word in found[0], (lines, found)
    found = listed(HOP, PACK, sizes='')
    assert len(found) == 1 and found[0].startswith('links_bytes:'), found


TREE = {
    messages.PROTO: '''message ClientMessage {
  oneof body {
    Hello hello = 1;
    MakeDefault make_default = 15;
  }
}
message ServerMessage {
  oneof body {
    Welcome welcome = 1;
  }
}
message LocalRequest {
  oneof body {
    LocalPut put = 2;
  }
}
''',
    messages.PAGE: '''## 3. A request
WELCOME(token)
## 4. Control messages of the client
Roles: HELLO are for `read`; LOAD, MAKE_DEFAULT are for `operate`; all others are for `submit`.
| HELLO | opens | WELCOME |
| LOAD, MAKE_DEFAULT | sets | SETUP |
## 5. SUBMIT
## 14. The local socket
| put | 1 | a field |
''',
    messages.CONTROL: '[BODY(HELLO)] = {QK_ROLE_READ, false},\n[BODY(MAKE_DEFAULT)] = {QK_ROLE_OPERATE, false},\n',
    messages.LOCAL: 'case QUARK__LOCAL_REQUEST__BODY_PUT:\n',
    messages.REPLY: 'm.body_case = QUARK__SERVER_MESSAGE__BODY_WELCOME;\n',
    messages.HANDLERS: 'case QUARK__SERVER_MESSAGE__BODY_WELCOME:\n',
    messages.FUZZER: 'm.body_case = QUARK__CLIENT_MESSAGE__BODY_HELLO;\nm.body_case = QUARK__CLIENT_MESSAGE__BODY_MAKE_DEFAULT;\n',
}


def complaints(tree):
    return [line for _, missing in messages.ENVELOPES for line in missing(tree)]


@tap.test
def a_message_is_in_all_places(_root):
    assert complaints(TREE) == [], complaints(TREE)
    for path, old, name, word in ((messages.CONTROL, '[BODY(HELLO)]', 'HELLO', 'no row'), (messages.CONTROL, 'ROLE_OPERATE', 'MAKE_DEFAULT', 'role submit'),
                                  (messages.PAGE, '| HELLO |', 'HELLO', 'section 4'), (messages.FUZZER, 'BODY_MAKE_DEFAULT', 'MAKE_DEFAULT', 'does not send'),
                                  (messages.REPLY, 'BODY_WELCOME', 'WELCOME', 'does not send'), (messages.HANDLERS, 'BODY_WELCOME', 'WELCOME', 'no case'),
                                  (messages.PAGE, 'WELCOME', 'WELCOME', 'sections 3 and 4'), (messages.LOCAL, 'BODY_PUT', 'PUT', 'no case'),
                                  (messages.PAGE, '| put |', 'PUT', 'section 14')):
        new = 'ROLE_SUBMIT' if old == 'ROLE_OPERATE' else ''
        found = complaints({**TREE, path: TREE[path].replace(old, new)})
        assert len(found) == 1 and found[0].startswith(name + ':') and word in found[0], (path, old, found)


if __name__ == '__main__':
    tap.run(*sys.argv[1:])
