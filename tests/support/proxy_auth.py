"""A cluster whose proxy checks calls by ACL 2.0, with the users and policies of its broker."""

from emulator.spec import loads
from emulator.spec.model.scenario import Scenario
from nodes.config.auth import (
    AUTHENTICATION_METADATA,
    AUTHORIZATION_METADATA,
    PROXY_AUTHENTICATION_METADATA,
    PROXY_AUTHORIZATION_METADATA,
)

SCENARIO = """
[scenario]
name = "proxy-auth"
run_for_s = 60

[nameserver]
count = 1

[[broker]]
name = "broker-a"
[broker.options]
authenticationEnabled = true
authorizationEnabled = {authorization_of_broker}
authenticationMetadataProvider = "{users_of_broker}"
authorizationMetadataProvider = "{acls_of_broker}"
migrateAuthFromV1Enabled = true
initAuthenticationUser = "rocketmq-root"
innerClientAuthenticationCredentials = "rocketmq-inner"

[[proxy]]
name = "proxy-1"
[proxy.options]
authenticationEnabled = {authentication}
authorizationEnabled = {authorization}
authenticationMetadataProvider = "{users}"
authorizationMetadataProvider = "{acls}"
enableAclRpcHookForClusterMode = {signs}
{inner}
{proxy}

[[topic]]
name = "orders"
message_type = "{message_type}"

{topics}

{clients}

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
CONSUMER = """
[[consumer]]
group = "billing"
names = ["billing-1"]
topics = ["orders"]
mode = "{mode}"
options = {{ {consumer} }}
"""
PRODUCER = """
[[producer]]
name = "shop"
group = "shop"
topic = "orders"
endpoints = ["proxy-1"]
options = {{ {producer} }}
{sends}
"""
SHOP = 'accessKey = "rocketmq-shop", secretKey = "secret-of-shop"'
BILLING = 'accessKey = "rocketmq-billing", secretKey = "secret-of-billing"'
INNER = 'innerClientAuthenticationCredentials = "rocketmq-inner"'


def scenario(
    *, consumer: str | None = BILLING, producer: str | None = SHOP, mode: str = "push5", sends: str = "", **given: str
) -> Scenario:
    """The cluster.

    Args:
        consumer: options of a consumer of `billing`; None: there is none.
        producer: options of the producer `shop`; None: there is none.
        mode: of the consumer.
        sends: other keys of the producer.
        given: other parts of the text.
    """
    defaults = {
        "authorization_of_broker": "false",
        "users_of_broker": AUTHENTICATION_METADATA,
        "acls_of_broker": AUTHORIZATION_METADATA,
        "authentication": "true",
        "authorization": "true",
        "users": PROXY_AUTHENTICATION_METADATA,
        "acls": PROXY_AUTHORIZATION_METADATA,
        "signs": "true",
        "inner": INNER,
        "proxy": "",
        "message_type": "NORMAL",
        "topics": "",
    }
    clients = "" if consumer is None else CONSUMER.format(mode=mode, consumer=consumer)
    clients += "" if producer is None else PRODUCER.format(producer=producer, sends=sends)
    return loads(SCENARIO.format(**{**defaults, **given}, clients=clients), "proxy-auth")
