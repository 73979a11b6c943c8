"""The Hub's endpoints that the client uses for model repositories; importing this package registers all of them."""

from tests.hub.api import access, cards, changes, content, discussions, uploads
from tests.hub.routes import find_route

__all__ = ["access", "cards", "changes", "content", "discussions", "find_route", "uploads"]
