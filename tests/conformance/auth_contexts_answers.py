"""Family auth_contexts: what requests do to which resources, and what their signatures are of."""

import base64

from emulator.guests.remoting.body_kinds import request_from_wire
from nodes.broker.tables.auth.contexts import AuthRequest, contexts_of
from nodes.broker.tables.auth.errors import AuthorizationError
from nodes.broker.tables.auth.users import subject_key
from nodes.protocol.command import VERSION
from nodes.protocol.errors import ProtocolError, UnreadableBody


def auth_contexts(requested):
    request = auth_request(requested)
    return authentication_context(request) if requested["op"] == "authenticationContext" else contexts(request)


def auth_request(requested):
    """The request as a broker gets it of the codec of guests."""
    code, fields = requested["code"], requested.get("fields") or {}
    raw = None if requested.get("body") is None else requested["body"].encode()
    body = raw if requested.get("op") == "authenticationContext" else converted(code, fields, raw)
    channel, address = requested.get("channel", "c1"), requested.get("address", "10.0.0.5:4000")
    return AuthRequest(channel, shown_ip(address), code, fields, body, requested.get("version", VERSION))


def converted(code, fields, raw):
    try:
        body = request_from_wire(code, fields, raw)
    except ProtocolError as error:
        return UnreadableBody(raw or b"", str(error))
    return body


def shown_ip(address):
    ip = address.rpartition(":")[0]
    # So Java prints an IPv6 address of a channel.
    return f"[{ip}]" if ":" in ip else ip


def contexts(request):
    try:
        found = contexts_of(request, "DefaultCluster")
    except AuthorizationError as error:
        return {"error": "AuthorizationException", "message": str(error)}
    return {
        "contexts": [
            {
                "subject": None if request.username is None else subject_key(request.username),
                "resource": context.resource.key,
                "actions": list(context.actions),
                "sourceIp": request.source_ip,
                "rpcCode": str(request.code),
            }
            for context in found
        ]
    }


def authentication_context(request):
    named = request.username is not None
    return {
        "channelId": request.channel_id,
        "rpcCode": str(request.code),
        "username": request.username,
        "signature": request.signature if named else None,
        "content": base64.b64encode(request.content()).decode() if named else None,
    }
