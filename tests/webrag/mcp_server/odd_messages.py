"""Messages that are JSON and yet nothing a client would send, each of which wants an answer."""

from typing import Final

_CALL: Final = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%s}'


def _call(name: str, arguments: str) -> str:
    return _CALL % f'{{"name":{name},"arguments":{arguments}}}'


def _with_id(identity: str) -> str:
    return f'{{"jsonrpc":"2.0","id":{identity},"method":"tools/list"}}'


def _nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


ODD_MESSAGES: Final = {
    "half pair as id": _with_id(r'"\ud800"'),
    "low half as id": _with_id(r'"x\udfffy"'),
    "half pair as id of a response": r'{"jsonrpc":"2.0","id":"\ud800","result":{}}',
    "half pair as id of an error": r'{"jsonrpc":"2.0","id":"\ud800","error":{"code":1}}',
    "half pair as version": r'{"jsonrpc":"\ud800","id":"\udfff"}',
    "half pair as method": r'{"jsonrpc":"2.0","id":7,"method":"\ud800"}',
    "half pair as method of nobody": r'{"jsonrpc":"2.0","method":"\ud800"}',
    "half pair as tool": _call(r'"\ud800"', "{}"),
    "half pair as argument": _call('"status"', r'{"\ud800":1}'),
    "half pair as value": _call('"status"', r'{"contains":"\ud800"}'),
    "half pair as progress token": _CALL % r'{"name":"status","_meta":{"progressToken":"\ud800"}}',
    "half pair as key": r'{"jsonrpc":"2.0","id":7,"method":"ping","\ud800":1}',
    "half pair as parameter": r'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\ud800"}}',
    "two ids, the second half a pair": r'{"jsonrpc":"2.0","id":7,"id":"\ud800","method":"ping"}',
    "two ids, the first half a pair": r'{"jsonrpc":"2.0","id":"\ud800","id":7,"method":"ping"}',
    "two methods": '{"jsonrpc":"2.0","id":7,"method":"nothing","method":"tools/list"}',
    "NUL as id": _with_id(r'"\u0000"'),
    "NUL as tool": _call(r'"\u0000"', "{}"),
    "NUL as argument": _call('"status"', r'{"\u0000":1}'),
    "NUL as value": _call('"status"', r'{"contains":"\u0000"}'),
    "integer beyond 64 bits": _with_id("18446744073709551616"),
    "integer of 4,000 digits": _with_id("9" * 4000),
    "integer of 5,000 digits": _with_id("9" * 5000),
    "long id": _with_id('"' + "x" * 40_000 + '"'),
    "fraction": _with_id("1.5"),
    "number that is whole": _with_id("1.0"),
    "infinite": _with_id("1e999"),
    "no number": _with_id("NaN"),
    "null": _with_id("null"),
    "true": _with_id("true"),
    "list": _with_id("[7]"),
    "arguments 150 deep": _call('"status"', _nested(150)),
    "arguments 900 deep": _call('"status"', _nested(900)),
    "arguments 100,000 deep": _call('"status"', _nested(100_000)),
    "infinite argument": _call('"status"', '{"page":1e999}'),
    "huge argument": _call('"status"', '{"page":%s}' % ("9" * 4000)),
    "list as arguments": _call('"status"', "[1]"),
    "number as tool": _call("7", "{}"),
    "invalid UTF-8 as id": _with_id('"\udcff\udcfe"'),
    "invalid UTF-8 as value": _call('"status"', '{"contains":"\udcff"}'),
    "byte order mark": "\ufeff" + _with_id("7"),
}


def as_bytes(message: str) -> bytes:
    """The message as it is sent; half pairs in it stand for bytes that are no UTF-8."""
    return message.encode("utf-8", "surrogateescape")
