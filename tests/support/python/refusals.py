"""What a daemon refuses, as Python's package says it."""
import quarkd


def refused(call, code):
    try:
        call()
    except quarkd.Error as e:
        assert quarkd.errors.code_name(e.code) == code, e
        return str(e)
    raise AssertionError('was not refused')
