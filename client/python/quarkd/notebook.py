"""What notebooks show: tables and small curves, as HTML and SVG without scripts; all text is escaped."""
from __future__ import annotations

import html
import math
from typing import Sequence

import numpy as np
from numpy.typing import ArrayLike

WIDTH, HEIGHT, MARGIN = 300, 90, 8


def table(title: str, rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """
    >>> table('a < b', [('x', '1')])
    '<table><caption>a &lt; b</caption><tr><td>x</td><td>1</td></tr></table>'
    """
    def line(cells: Sequence[str], tag: str) -> str:
        return '<tr>%s</tr>' % ''.join('<%s>%s</%s>' % (tag, html.escape(str(cell)), tag) for cell in cells)
    top = line(head, 'th') if head else ''
    return '<table><caption>%s</caption>%s%s</table>' % (html.escape(title), top, ''.join(line(row, 'td') for row in rows))


def curve(values: ArrayLike, logarithmic: bool = False) -> str:
    """Values by their index as a line; those that are not finite are left out, and nothing is drawn of fewer than two."""
    y = np.asarray(values, float)
    with np.errstate(divide='ignore', invalid='ignore'):
        y = np.log10(y) if logarithmic else y
    good = [(i, float(v)) for i, v in enumerate(y) if math.isfinite(v)]
    if len(good) < 2:
        return ''
    low, high = min(v for _, v in good), max(v for _, v in good)
    right, up = (WIDTH - 2 * MARGIN) / (len(y) - 1), (HEIGHT - 2 * MARGIN) / (high - low or 1)
    points = ' '.join('%.1f,%.1f' % (MARGIN + i * right, HEIGHT - MARGIN - (v - low) * up) for i, v in good)
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"><polyline fill="none" stroke="#26c" stroke-width="1.5" points="%s"/></svg>'
            % (WIDTH, HEIGHT, points))
