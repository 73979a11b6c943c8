"""Cards: what the Hub says of their front matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from tests.hub.routes import Answer, as_json, route

if TYPE_CHECKING:
    from tests.hub.hub import LoopbackHub
    from tests.hub.routes import Request

LICENSES = {"apache-2.0", "mit", "llama3", "llama3.1", "llama3.3", "gemma", "cc-by-4.0", "cc-by-nc-4.0", "other"}


def front_matter(card: str) -> Any:
    found = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    return yaml.safe_load(found[1]) if found else None


@route("POST /api/validate-yaml")
def validate_yaml(hub: LoopbackHub, request: Request) -> Answer:
    try:
        data = front_matter(request.json()["content"])
    except yaml.YAMLError as error:
        return as_json({"errors": [{"message": f"YAML: {error}"}], "warnings": []}, 400)
    if not data:
        return as_json({"errors": [], "warnings": [{"message": "empty or missing yaml metadata in repo card"}]})
    lists = ("tags", "language", "datasets")
    faults = [f'"{key}" must be an array' for key in lists if not isinstance(data.get(key, []), list)]
    if data.get("license", "other") not in LICENSES:
        faults.append('"license" must be one of [...]')
    base = data.get("base_model", [])
    if not all(re.fullmatch(r"[\w.-]+/[\w.-]+", each) for each in ([base] if isinstance(base, str) else base)):
        faults.append('"base_model" with value is not valid. Use a model id from https://hf.co/models.')
    return as_json({"errors": [{"message": fault} for fault in faults], "warnings": []}, 400 if faults else 200)
