"""Users of the cluster of `support.proxy_auth`, as guests sign, and why a proxy refuses them."""

from nodes.protocol.acl_signature import SessionCredentials
from nodes.secret import Secret

SHOP = SessionCredentials("rocketmq-shop", Secret("secret-of-shop"))
BILLING = SessionCredentials("rocketmq-billing", Secret("secret-of-billing"))
ROOT = SessionCredentials("rocketmq-root", Secret("secret-of-root"))
WRONG = SessionCredentials("rocketmq-shop", Secret("another-secret"))
NOBODY = SessionCredentials("rocketmq-nobody", Secret("secret-of-nobody"))
NO_USER, WRONG_KEY = "username cannot be null.", "check signature failed."
UNKNOWN_USER = "User:rocketmq-nobody is not found."


def denied(user: str, resource: str) -> str:
    """Why a guest at its usual address may not do something that no policy of its user names."""
    return f"User:{user} has no permission to access {resource} from 127.1.200.1, no matched policies."
