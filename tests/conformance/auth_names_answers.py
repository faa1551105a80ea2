"""Family auth_names: resources, names of enums, subjects, addresses."""

from nodes.broker.tables.auth.addresses import is_in_range, is_valid_ip_or_cidr
from nodes.broker.tables.auth.policies import PolicyEntry
from nodes.broker.tables.auth.resources import Resource
from nodes.broker.tables.auth.users import subject_key, username_of
from nodes.protocol.auth import (
    Action,
    Decision,
    PolicyType,
    ResourceType,
    SubjectType,
    UserStatus,
    UserType,
    by_name,
)

NAMED = {
    "action": Action,
    "decision": Decision,
    "policyType": PolicyType,
    "resourceType": ResourceType,
    "userType": UserType,
    "userStatus": UserStatus,
    "subjectType": SubjectType,
}


def auth_names(requested):
    return OPERATIONS[requested["op"]](requested)


def shown(resource):
    if resource is None:
        return {"resource": None}
    named = {"type": resource.type, "name": resource.name, "pattern": resource.pattern, "key": resource.key}
    return {"resource": named}


def match(requested):
    wanted = Resource(by_name(ResourceType, requested["type"]), requested["name"])
    return {"match": Resource.of(requested["entry"]).matches(wanted)}


def match_action(requested):
    own, wanted = (tuple(by_name(Action, name) for name in requested[field] if name) for field in ("own", "requested"))
    entry = PolicyEntry(Resource.of("*"), own, (), Decision.ALLOW)
    return {"match": entry.matches_action(wanted)}


def in_range(requested):
    try:
        return {"match": is_in_range(requested["ip"], requested["own"])}
    except ValueError:
        return {"error": "RuntimeException"}


def subject(requested):
    name = username_of(requested["key"])
    return {"subject": None if name is None else subject_key(name)}


OPERATIONS = {
    "resource": lambda requested: shown(Resource.of(requested["key"])),
    "ofGroup": lambda requested: shown(Resource.of_group(requested["name"])),
    "match": match,
    "matchAction": match_action,
    "byName": lambda requested: {field: by_name(kind, requested["name"]) for field, kind in NAMED.items()},
    "subject": subject,
    "ip": lambda requested: {"valid": is_valid_ip_or_cidr(requested["text"])},
    "range": in_range,
}
