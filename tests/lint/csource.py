"""C and C++ sources as tokens, and the functions in them: as much as the lints need, of code as clang-format leaves it."""
import collections
import re

KEYWORDS = ('auto break case char const continue default do double else enum extern float for goto if inline int long register '
            'return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false class '
            'constexpr namespace new delete operator private public template this typename using nullptr static_assert').split()
# In order: what separates tokens, directives with their continuations, literals, words, signs.
TOKEN = re.compile(r'''(?P<blank>\s+|//[^\n]*|/\*.*?\*/|\\\n)
|(?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\.|[^\n\\])*)
|(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
|(?P<char>'(?:\\.|[^'\\\n])+')
|(?P<number>\.?[0-9](?:[eEpP][+-]|['.\w])*)
|(?P<name>[A-Za-z_]\w*)
|(?P<sign><<=|>>=|\.\.\.|->\*?|\+\+|--|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||::|[^\s\w])''', re.DOTALL | re.MULTILINE | re.VERBOSE)
# Their parentheses are not those of a function's parameters.
NO_FUNCTIONS = {'__attribute__', '__launch_bounds__', '__align__', 'alignas', 'decltype', 'noexcept', '_Alignas', 'sizeof', 'requires'}
# Bodies that hold functions and not statements.
HOLDERS = {'namespace', 'class', 'struct', 'union'}
TESTS = {'Test', 'ParameterizedTest', 'ParameterizedTestParameters', 'Theory', 'TheoryDataPoints'}

# code: a character a token; names are alike, numbers too.
Function = collections.namedtuple('Function', 'path name line lines static code')


class Alphabet(dict):
    """A character for each word or sign of the language; one for all names, one for all numbers, one for all literals."""

    def __missing__(self, word):
        self[word] = chr(0x80 + len(self))  # below 0x100 strings are short
        return self[word]


ALPHABET = Alphabet()
KIND = {'name': 'n', 'number': '0', 'string': 's', 'char': 's'}


def tokens(text):
    """(kind, word, position) of each token; comments and directives are none."""
    return [(m.lastgroup, m[0], m.start()) for m in TOKEN.finditer(text) if m.lastgroup not in ('blank', 'directive')]


def letter(kind, word):
    return ALPHABET[word] if kind == 'sign' or word in KEYWORD_SET else KIND[kind]


KEYWORD_SET = frozenset(KEYWORDS)


def called(header):
    """Name of the function that these tokens declare; None: they declare none."""
    name, depth = None, 0
    for i, (kind, word, _) in enumerate(header):
        if word in '([':
            before = header[i - 1] if i else ('', '', 0)
            inner = header[i + 1:i + 4]  # one that returns a function: void (*name(...))(...)
            if depth == 0 and name is None and [k for k, _, _ in inner] == ['sign', 'name', 'sign'] and inner[2][1] == '(':
                name = inner[1][1]
            elif depth == 0 and word == '(' and name is None and before[0] == 'name' and before[1] not in NO_FUNCTIONS | KEYWORD_SET:
                name = before[1]
                if name in TESTS:
                    name = '::'.join(w for k, w, _ in header[i + 1:i + 4] if k == 'name')
            depth += 1
        elif word in ')]':
            depth -= 1
        elif word == '=' and depth == 0 and (i == 0 or header[i - 1][1] != 'operator'):
            return None
    return name


def body_end(found, i):
    """Index behind the brace that closes the one at i."""
    depth = 0
    for i in range(i, len(found)):
        if found[i][1] == '{':
            depth += 1
        elif found[i][1] == '}':
            depth -= 1
            if depth == 0:
                return i + 1
    return len(found)


def functions(path, text):
    """The functions that a file defines, in order."""
    found, out, start, i, first = tokens(text), [], 0, 0, (0, 1)
    while i < len(found):
        word = found[i][1]
        if word in (';', '}') or word == ':' and found[i - 1][1] in ('public', 'private'):
            start = i + 1
        elif word == '{':
            header = found[start:i]
            words = {w for _, w, _ in header}
            name = called(header)
            end = body_end(found, i)
            if name:
                first = first[1] and (header[0][2], first[1] + text.count('\n', first[0], header[0][2]))
                lines = 1 + text.count('\n', header[0][2], found[end - 1][2])
                out.append(Function(path, name, first[1], lines, 'static' in words,
                                    ''.join(letter(k, w) for k, w, _ in found[start:end])))
            elif words & HOLDERS and '=' not in words or [w for _, w, _ in header][:1] == ['extern']:
                start = i + 1
                i += 1
                continue
            i = end
            start = end
            continue
        i += 1
    return out
