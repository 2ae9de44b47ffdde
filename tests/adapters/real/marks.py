"""What the tests look for at a provider: texts that must never arrive there, and texts that always must.

They are letters and digits, so that they look the same in JSON, in JSON within JSON, and in HTML.
"""

LARGE, SMALL, FRAGMENT = "PlantedInALargeView7Kq2", "PlantedInASmallView9Xw4", "PlantedInAFragment2Rc6"
META, LINK = "PlantedInMetadata3Vb8", "PlantedInALink8Ws1"
APP_ONLY = "PlantedInAnAppOnlyTool5Jd1"
HIDDEN = "refresh"
"""The tool that only a view may call."""
PLANTED = (LARGE, SMALL, FRAGMENT, META, LINK, APP_ONLY)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""An image that a model is to see."""


def kept(name: str) -> str:
    """The text that a model is to see of a result, or of a part of one."""
    return f"KeptOf{name.capitalize()}6Tz5"


def page(mark: str, rows: int) -> str:
    """A view of so many rows, as a whole page."""
    return f"<!doctype html>\n<html><head><title>Größe ☃</title></head>\n<body>{fragment(mark, rows)}</body></html>"


def fragment(mark: str, rows: int) -> str:
    """A view of so many rows, as no whole page: browsers show that as well."""
    return f'<h1>Größe ☃</h1><script>/* "{mark}" \\ */</script>\n' + f"<p>ä {mark}</p>" * rows
