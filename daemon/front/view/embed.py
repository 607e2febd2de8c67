#!/usr/bin/env python3
"""page.html as C: embed.py PAGE_HTML PAGE_C

The policy names the page's style and script by their digests, so that nothing else runs.
"""
import base64
import hashlib
import re
import sys


def digest(page, element):
    found = re.findall(r'<%s>(.*?)</%s>' % (element, element), page, re.DOTALL)
    if len(found) != 1:
        sys.exit('%s: one <%s> is needed, there are %d' % (sys.argv[1], element, len(found)))
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()


with open(sys.argv[1], encoding='utf-8', newline='') as f:
    html = f.read()
policy = "default-src 'none'; script-src %s; style-src %s; connect-src 'self'; base-uri 'none'; form-action 'none'; " \
    "frame-ancestors 'none'" % (digest(html, 'script'), digest(html, 'style'))
signed = [b - 256 if b > 127 else b for b in html.encode()]
numbers = ''.join('%d,%s' % (b, '\n' if i % 24 == 23 else '') for i, b in enumerate(signed))
with open(sys.argv[2], 'w', encoding='utf-8') as f:
    f.write('#include "daemon/front/view/page.h"\n\nconst char QK_PAGE[] = {\n%s0};\nconst char QK_PAGE_POLICY[] = "%s";\n'
            % (numbers, policy))
