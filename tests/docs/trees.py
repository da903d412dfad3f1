"""What the tests of documents share."""


def places(value):
    """All (container, key) in a tree."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else [])
    return [place for key, item in items for place in [(value, key), *places(item)]]
