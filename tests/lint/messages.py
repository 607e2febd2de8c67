#!/usr/bin/env python3
"""Each message between clients and quarkd stands in all places of docs/howto-add-a-message.md.

usage: messages.py SOURCE_ROOT        prints TAP, a test for each envelope
"""
import os
import re
import sys

PROTO, PAGE = 'proto/quark.proto', 'proto/PROTOCOL.md'
CONTROL, LOCAL, REPLY = 'daemon/front/net/control.c', 'daemon/front/net/local.c', 'daemon/front/net/reply.c'
HANDLERS, FUZZER = 'client/libquark/handlers.c', 'tests/fuzz/session/session_client.c'
ROLE = re.compile(r'\[BODY\((\w+)\)\] = \{QK_ROLE_(\w+),')


def bodies(proto, envelope):
    """The names of what an envelope may hold, as in code and in PROTOCOL.md: upper case."""
    inside = re.search(r'message %s \{\s*oneof body \{(.*?)\}' % envelope, proto, re.S)
    return [name.upper() for name in re.findall(r'^\s*\w+ (\w+) = \d+;', inside[1], re.M)] if inside else []


def section(page, *numbers):
    return ''.join(part for part in re.split(r'^(?=## )', page, flags=re.M) if re.match(r'## (%s)\.' % '|'.join(map(str, numbers)), part))


def listed(text):
    """What the first cells of a section's tables name."""
    return {name for cell in re.findall(r'^\| ([^|]*) \|', text, re.M) for name in re.split(r', ', cell)}


def of_clients(tree):
    """What is missing of the messages of clients."""
    roles, page = dict(ROLE.findall(tree[CONTROL])), section(tree[PAGE], 4)
    said = {name: role for names, role in re.findall(r'([A-Z_]+(?:, [A-Z_]+)*) are for `(\w+)`', page) for name in names.split(', ')}
    for name in bodies(tree[PROTO], 'ClientMessage'):
        if name not in roles:
            yield '%s: no row [BODY(%s)] in %s' % (name, name, CONTROL)
        elif said.get(name, 'submit') != roles[name].lower():
            yield '%s: its row has the role %s, section 4 of %s says %s' % (name, roles[name].lower(), PAGE, said.get(name, 'submit'))
        if name not in listed(page):
            yield '%s: no line in the table of section 4 of %s' % (name, PAGE)
        if 'CLIENT_MESSAGE__BODY_%s;' % name not in tree[FUZZER]:
            yield '%s: %s does not send it' % (name, FUZZER)


def of_server(tree):
    """What is missing of the messages of quarkd."""
    for name in bodies(tree[PROTO], 'ServerMessage'):
        if 'SERVER_MESSAGE__BODY_%s;' % name not in tree[REPLY]:
            yield '%s: %s does not send it' % (name, REPLY)
        if 'case QUARK__SERVER_MESSAGE__BODY_%s:' % name not in tree[HANDLERS]:
            yield '%s: no case in %s' % (name, HANDLERS)
        if not re.search(r'\b%s\b' % name, section(tree[PAGE], 3, 4)):
            yield '%s: sections 3 and 4 of %s do not have it' % (name, PAGE)


def of_local_socket(tree):
    """What is missing of the messages of the local socket."""
    for name in bodies(tree[PROTO], 'LocalRequest'):
        if 'case QUARK__LOCAL_REQUEST__BODY_%s:' % name not in tree[LOCAL]:
            yield '%s: no case in %s' % (name, LOCAL)
        if name.lower() not in listed(section(tree[PAGE], 14)):
            yield '%s: no line in the table of section 14 of %s' % (name, PAGE)


ENVELOPES = (('ClientMessage', of_clients), ('ServerMessage', of_server), ('LocalRequest', of_local_socket))


def main(root):
    tree = {}
    for path in (PROTO, PAGE, CONTROL, LOCAL, REPLY, HANDLERS, FUZZER):
        with open(os.path.join(root, path), encoding='utf-8') as f:
            tree[path] = f.read()
    print('1..%d' % len(ENVELOPES))
    for envelope, missing in ENVELOPES:
        names, bad = bodies(tree[PROTO], envelope), list(missing(tree))
        print('%s - the %d messages of %s are in all places' % ('not ok' if bad or not names else 'ok', len(names), envelope))
        for line in bad:
            print('# ' + line)


if __name__ == '__main__':
    main(sys.argv[1])
