"""The rungs of a request to an LLM API, as `gateway/front/llm.py` climbs them; its body is looked at there alone."""

from gateway.drain import REFUSED
from gateway.front.service import Service
from policies import provider_http, routing
from policies.explanation import Ladder
from policies.headers import Headers
from policies.settings_routes import Route


def explain(ladder: Ladder, service: Service, route: Route, headers: Headers, path: str, query: str) -> None:
    """From where its caller is known."""
    assert route.provider is not None
    provider = service.lines[route.provider].settings
    why = provider_http.refusal(provider, headers, routing.below(route, path), query)
    if why is not None:
        ladder.refuse("request", why)
    if service.drain.refuses:
        ladder.refuse("drain", REFUSED)
    ladder.passes("drain", "the gateway serves")
    ladder.passes("request", "its path and headers may pass")
    ladder.open("way", f"a route to an LLM API ({provider.dialect}): bodies are looked at there")
    ladder.asks = route.provider
