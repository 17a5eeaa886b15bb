# SPDX-License-Identifier: GPL-2.0-only
"""Checks values against JSON Schema: the few keywords that docs/schema uses, and an error for any other."""

import json

KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties", "items", "enum",
         "minimum", "maximum"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
         "null": type(None)}


def load(path):
    """A schema."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def is_type(value, name):
    """Is the value of a type? To Python, but not to JSON, True is a number."""
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def errors(value, schema, root=None, path="$"):
    """What is wrong with a value, as a list of sentences. A property that the schema does not name is an error."""
    root = root or schema
    if set(schema) - KNOWN:
        raise ValueError(f"{path}: keywords that are not supported: {set(schema) - KNOWN}")
    if "$ref" in schema:
        return errors(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
    types = schema.get("type", list(TYPES))
    if not any(is_type(value, name) for name in ([types] if isinstance(types, str) else types)):
        return [f"{path}: {value!r} is not of type {types}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is not one of {schema['enum']}")
    if is_type(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{path}: {value!r} is out of range")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{path}: {name} is missing" for name in schema.get("required", []) if name not in value]
        found += [f"{path}: {name} is not documented" for name in value if name not in properties]
        for name in set(value) & set(properties):
            found += errors(value[name], properties[name], root, f"{path}.{name}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            found += errors(item, schema.get("items", {}), root, f"{path}[{place}]")
    return found


def names(schema):
    """All names of properties."""
    if isinstance(schema, list):
        return set().union(*map(names, schema))
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})).union(*map(names, schema.values()))
