"""Where an id is found in a request's bytes, and when it is the message's own."""

import json
import zlib

import pytest

from policies import coding
from policies.cache_entry import Ready, packed
from policies.repeat import ID, STRING, is_of_message

FOUND = {
    b'{"id":1,"method":"a"}': b"1",
    b'{"jsonrpc": "2.0", "id": -12, "method": "a"}': b"-12",
    b'{"method":"a","id":123456789012345}': b"123456789012345",
    b'{"id":0 }': b"0",
    b'{"id":""}': b"",
    b'{"id":"a b/~!","method":"a"}': b"a b/~!",
    b'{"id":"7","method":"a"}': b"7",
}


@pytest.mark.parametrize("body", FOUND)
def test_an_id_that_goes_back_as_it_came_is_found(body: bytes) -> None:
    found = ID.search(body)
    assert found is not None
    assert found[found.lastindex or 1] == FOUND[body]
    assert (found.lastindex == STRING) == isinstance(json.loads(body)["id"], str)
    begin, after = found.span(found.lastindex or 1)
    assert is_of_message(body[:begin], body[after:])


NOT_FOUND = [
    b'{"method":"a"}',
    b'{"id":null}',
    b'{"id":true}',
    b'{"id":[1]}',
    b'{"id":1.0}',
    b'{"id":1e3}',
    b'{"id":01}',
    b'{"id":-0}',
    b'{"id":1234567890123456}',
    b'{"id":"\\u0061"}',
    b'{"id":"a\\nb"}',
    b'{"id":"a\\""}',
    '{"id":"größe"}'.encode(),
    b'{"id":"\x7f"}',
    b'{"id":"' + b"a" * 65 + b'"}',
    b'{"\\u0069d":1}',
    b'{"ids":1}',
    b'{"id":1',
]


@pytest.mark.parametrize("body", NOT_FOUND)
def test_any_other_is_not(body: bytes) -> None:
    assert ID.search(body) is None


OF_SOMETHING_ELSE = [
    b'{"params":{"id":5},"id":5}',
    b'{"params":{"id":1},"id":1}',
    b'{"params":{"id":2}}',
    b'{"params":[{"id":2}],"id":"2"}',
    b'{"id":5,"id":6}',
    b'[{"id":5}]',
    b'"\\"id\\":5"{"id":5}',
    b'{"id":5,}',
]


@pytest.mark.parametrize("body", OF_SOMETHING_ELSE)
def test_what_is_no_id_of_the_message_is_told(body: bytes) -> None:
    found = ID.search(body)
    assert found is not None
    begin, after = found.span(found.lastindex or 1)
    assert not is_of_message(body[:begin], body[after:])


@pytest.mark.parametrize("size", [0, 1, 100, 100_000])
@pytest.mark.parametrize("rest", [b"", b"}", b'"size":5}', b"x" * coding.MAX_REST_BYTES])
def test_a_body_in_gzip_whose_end_is_said_later_is_the_whole(size: int, rest: bytes) -> None:
    data = (b'{"name":"value"},' * size)[:size]
    begun = coding.begun(data)
    unpacker = zlib.decompressobj(wbits=31)  # one member: what follows the first is thrown away by some readers
    assert unpacker.decompress(begun.packed + coding.ended(begun, rest)) == data + rest
    assert unpacker.eof
    assert unpacker.unused_data == b""


@pytest.mark.parametrize("result", [b"{", b'{"tools":[]'])
def test_an_answer_in_gzip_says_what_the_plain_one_does(result: bytes) -> None:
    plain = Ready(result, "public")
    small = packed(plain)
    sent = small.result + small.ended(b'%b,"id":"a"}' % plain.rest(77))
    assert json.loads(zlib.decompress(sent, wbits=31)) == json.loads(plain.response("a", 77))
