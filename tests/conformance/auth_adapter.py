"""Families auth_metadata, auth_decisions, auth_authentication and auth_migration: users, policies, and evaluators."""

import json

import attrs
import yaml

from conformance.auth_contexts_answers import auth_request
from conformance.executing import Adapter
from emulator.guests.remoting.body_json import decode_json_body
from nodes.broker.tables.auth.acls import info_of
from nodes.broker.tables.auth.auth_tables import auth_tables
from nodes.broker.tables.auth.errors import AuthenticationError, AuthFaultError, AuthorizationError
from nodes.broker.tables.auth.migration import migrate
from nodes.config.auth import AUTHENTICATION_METADATA, AUTHORIZATION_METADATA, AuthConfig
from nodes.config.options import option_name
from nodes.protocol.bodies_auth import AclInfo, UserInfo
from nodes.protocol.json_text import to_json
from nodes.secret import Secret

FAULT = {"error": "fault"}
"""Exceptions of Java that are none of RocketMQ's: their texts are those of the virtual machine."""
ERRORS = {AuthenticationError: "AuthenticationException", AuthorizationError: "AuthorizationException"}


class AuthSession(Adapter):
    """The tables of ACL 2.0 of a broker; unless a case has others, both metadata providers are the local ones."""

    def __init__(self, **config):
        self.begun = None
        try:
            self.tables_of_auth = made(config)
        except (ValueError, KeyError, TypeError, AuthFaultError, AuthenticationError) as error:
            self.begun = error

    def ordered(self, op, out):
        if out.get("error") in ("IllegalStateException", "NullPointerException", "RuntimeException"):
            return FAULT
        if (out.get("message") or "").startswith("Init "):
            return FAULT
        return {**out, "acls": out.get("acls") or None}

    def answer(self, call, *arguments):
        if self.begun is not None:
            return FAULT
        try:
            return call(*arguments) or {}
        except tuple(ERRORS) as error:
            return {"error": ERRORS[type(error)], "message": str(error)}
        except AuthFaultError:
            return FAULT

    def start(self):
        return self.answer(lambda: None)

    def create_user(self, **given):
        return self.answer(lambda: self.tables_of_auth.users.create(UserInfo(**given)))

    def update_user(self, **given):
        return self.answer(lambda: self.tables_of_auth.users.update(UserInfo(**given)))

    def delete_user(self, username):
        return self.answer(lambda: self.tables_of_auth.delete_user(username))

    def get_user(self, username):
        return self.answer(lambda: {"user": shown_user(self.tables_of_auth.users.get(username))})

    def list_user(self, **given):
        return self.answer(
            lambda: {"users": [shown_user(user) for user in self.tables_of_auth.users.listed(given["filter"])]}
        )

    def is_super_user(self, username):
        return self.answer(lambda: {"isSuper": self.tables_of_auth.users.is_super(username)})

    def create_acl(self, acl):
        return self.answer(lambda: self.tables_of_auth.acls.update(read_acl(acl)))

    update_acl = create_acl

    def delete_acl(self, subject, policy_type, resource):
        return self.answer(lambda: self.tables_of_auth.acls.delete(subject, policy_type, resource))

    def get_acl(self, subject):
        def shown():
            found = self.tables_of_auth.acls.get(subject)
            return {"acl": None if found is None else shown_acl(found)}

        return self.answer(shown)

    def list_acl(self, subject_filter, resource_filter):
        def shown():
            found = self.tables_of_auth.acls.listed(subject_filter, resource_filter)
            return {"acls": [shown_acl(acl) for acl in found] or None}

        return self.answer(shown)

    def authenticate(self, **requested):
        return self.evaluate("authentication", requested)

    def authorize(self, **requested):
        return self.evaluate("authorization", requested)

    def evaluate(self, which, requested):
        tables = None if self.begun is not None else self.tables_of_auth

        def evaluated():
            if getattr(tables.config, f"{which}_enabled"):
                getattr(tables, which).evaluate(auth_request(requested), self.at_ms)

        return self.answer(evaluated)


class AuthMigration(AuthSession):
    """Accounts of ACL 1.0 from YAML files, the files of the folder `acl` first."""

    def ordered(self, op, out):
        return {"error": "AclException"} if out.get("error") == "AclException" else super().ordered(op, out)

    def migrate(self, files):
        try:
            accounts = read_accounts(files)
        except (yaml.YAMLError, KeyError):
            return {"error": "AclException"}
        if self.tables_of_auth.config.migrate_auth_from_v1_enabled:
            list(migrate(accounts, self.tables_of_auth.users, self.tables_of_auth.acls))
        return {}


def made(config):
    names = {
        "authentication_metadata_provider": AUTHENTICATION_METADATA,
        "authorization_metadata_provider": AUTHORIZATION_METADATA,
        **config,
    }
    accounts = {}
    for option, keys in JSON_OPTIONS.items():
        if names.get(option, "").strip():
            access_key, secret_key = (json.loads(names[option])[key] for key in keys)
            accounts.setdefault(access_key, Account(access_key, secret_key))
            names[option] = access_key
        else:
            names[option] = ""
    tables = auth_tables(AuthConfig(**names), "DefaultCluster")
    list(tables.begin(accounts.values()))
    return tables


JSON_OPTIONS = {
    "init_authentication_user": ("username", "password"),
    "inner_client_authentication_credentials": ("accessKey", "secretKey"),
}


@attrs.frozen
class Account:
    """An account that no rule of ours has checked."""

    access_key: str = ""
    secret_key: Secret = attrs.field(default="", converter=Secret)
    admin: bool = attrs.field(default=False, converter=lambda value: value == "true")
    default_topic_perm: str = ""
    default_group_perm: str = ""
    topic_perms: tuple[str, ...] = ()
    group_perms: tuple[str, ...] = ()
    white_remote_address: str = ""


def read_accounts(files):
    order = sorted(files, key=lambda path: not path.startswith("conf/acl"))
    found = {}
    for path in order:
        read = yaml.load(files[path], yaml.BaseLoader) if path.endswith((".yml", ".yaml")) else None
        for account in (read or {}).get("accounts") or ():
            named = {SNAKE[key]: value for key, value in account.items()}
            found.setdefault(named.get("access_key"), Account(**named))
    return found.values()


SNAKE = {option_name(field.name): field.name for field in attrs.fields(Account)}


def read_acl(acl):
    return decode_json_body(AclInfo, json.dumps(acl).encode())


def shown_user(user):
    return None if user is None else json.loads(to_json(user.info()))


def shown_acl(acl):
    return json.loads(to_json(info_of(acl)))
