"""What leads a session's requests back to where it lives: an endpoint's key, and cookies."""

from http.cookies import SimpleCookie

import pytest

from policies.affinity import MAX_COOKIE_BYTES, MAX_COOKIES, cookie_header, endpoint_key, endpoint_label

LONG = "x" * (MAX_COOKIE_BYTES - 2)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a:1/mcp", "http://a:1/mcp?key=planted", True),
        ("http://a:1/mcp", "http://a:2/mcp", False),
        ("http://a:1/mcp", "http://b:1/mcp", False),
        ("http://a:1/mcp", "http://a:1/other", False),
    ],
)
def test_an_endpoint_is_its_host_port_and_path(one: str, other: str, same: bool) -> None:
    assert (endpoint_key(one) == endpoint_key(other)) == same
    assert len(endpoint_key(one)) == 8
    assert "planted" not in endpoint_label(other)


@pytest.mark.parametrize(
    ("lines", "sent"),
    [
        ([], ""),
        (["AWSALB=abc+/=; Expires=Mon, 07 Dec 2026 10:00:00 GMT; Path=/"], "AWSALB=abc+/="),
        (["a=1; Path=/; HttpOnly", "b=2; Secure; SameSite=None"], "a=1; b=2"),
        (["a=1", "a=2"], "a=2"),
        (["JSESSIONID=12.node1; Path=/mcp; Max-Age=60"], "JSESSIONID=12.node1"),
        (["a=; Max-Age=60"], ""),
        (["a=1; Max-Age=0"], ""),
        (["a=1; Max-Age=-1"], ""),
        ([f"a={LONG}"], f"a={LONG}"),
        ([f"a={LONG}x", "b=2"], "b=2"),
        ([f"c{n}=1" for n in range(20)], "; ".join(f"c{n}=1" for n in range(MAX_COOKIES))),
    ],
)
def test_what_initialize_set_goes_with_the_session(lines: list[str], sent: str) -> None:
    jar: SimpleCookie = SimpleCookie()
    for line in lines:
        jar.load(line)
    assert cookie_header(jar.values()) == sent


@pytest.mark.parametrize("value", ["a b", "a\tb", "a;b", "a,b", 'a"b', "a\\b", "a\r\nX: y", "ä", ""])
def test_what_is_no_cookie_value_goes_nowhere(value: str) -> None:
    jar: SimpleCookie = SimpleCookie()
    jar["a"] = "fine"
    jar["a"].set("a", value, value)
    assert cookie_header(jar.values()) == ""
