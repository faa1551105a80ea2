"""A cluster with one broker with ACL 2.0, and requests to it that are signed."""

from emulator.spec import loads
from nodes.config.auth import AUTHENTICATION_METADATA, AUTHORIZATION_METADATA
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.registry import encode_body, encode_header
from nodes.secret import Secret

SCENARIO = """
[scenario]
name = "auth"
run_for_s = 60

[nameserver]
count = 1

{controllers}

[[broker]]
name = "broker-a"
{place}
[broker.options]
authenticationEnabled = {authentication}
authorizationEnabled = {authorization}
authenticationMetadataProvider = "{users}"
authorizationMetadataProvider = "{acls}"
migrateAuthFromV1Enabled = {migrates}
initAuthenticationUser = "rocketmq-root"
{inner}{broker}

[[topic]]
name = "orders"

[[consumer]]
group = "billing"
topics = ["orders"]
mode = "{mode}"
options = {{ {consumer} }}

[[producer]]
group = "shop"
topic = "orders"
options = {{ {producer} }}

[[account]]
access_key = "rocketmq-shop"
secret_key = "secret-of-shop"
topic_perms = ["orders=PUB"]

[[account]]
access_key = "rocketmq-billing"
secret_key = "secret-of-billing"
default_topic_perm = "SUB"
group_perms = ["billing=SUB"]

[[account]]
access_key = "rocketmq-root"
secret_key = "secret-of-root"

[[account]]
access_key = "rocketmq-inner"
secret_key = "secret-of-inner"
"""
SHOP = 'accessKey = "rocketmq-shop", secretKey = "secret-of-shop"'
INNER = 'innerClientAuthenticationCredentials = "rocketmq-inner"\n'
BILLING = 'accessKey = "rocketmq-billing", secretKey = "secret-of-billing"'

ROOT = 'accessKey = "rocketmq-root", secretKey = "secret-of-root"'


def scenario(consumer=BILLING, producer=SHOP, **given):
    """The cluster.

    Args:
        consumer: options of the consumer.
        producer: options of the producer.
        given: other parts of the text.
    """
    defaults = {
        "broker": "",
        "mode": "pull",
        "place": "",
        "authentication": "true",
        "authorization": "true",
        "users": AUTHENTICATION_METADATA,
        "acls": AUTHORIZATION_METADATA,
        "migrates": "true",
        "controllers": "",
        "inner": INNER,
    }
    return loads(SCENARIO.format(**{**defaults, **given}, consumer=consumer, producer=producer), "auth")


SIGNS_AS_ROOT = SessionCredentials("rocketmq-root", Secret("secret-of-root"))


async def ask(caller, code, header=None, body=None, *, signs=SIGNS_AS_ROOT, node="broker-a", fields=()):
    """The answer to a request.

    Args:
        caller: a probe.
        code: of the request.
        header: its header.
        body: its body.
        signs: whose request it is; None: it is not signed.
        node: that is asked.
        fields: in addition to the header.
    """
    named = {**({} if header is None else encode_header(header)), **dict(fields)}
    content = None if body is None else encode_body(body)
    named = named if signs is None else signs.sign(named, content)
    return await caller.node.rpc.call(caller.address(node), int(code), named, content, timeout_ms=15_000)
