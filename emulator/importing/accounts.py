"""Files with accounts of ACL 1.0, `plain_acl.yml`: tables `[[account]]` without their secrets."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from emulator.importing.settings import ConfigurationError, Setting
from emulator.importing.yaml_files import YamlValue
from nodes.config.accounts import PlainAccessConfig
from nodes.config.options import option_name
from nodes.fields import FieldError, key_of, rule_of, shown

_ACCOUNTS, _WHITE = "accounts", "globalWhiteRemoteAddresses"
_DATA_VERSION = "dataVersion"
_KNOWN: Mapping[str, str] = {option_name(field.name): key_of(field) for field in attrs.fields(PlainAccessConfig)}
"""Key of RocketMQ -> key of an `[[account]]`."""
_OF_USERS: Mapping[str, str] = {
    "initAuthenticationUser": "username",
    "innerClientAuthenticationCredentials": "accessKey",
}
"""Option -> the key in its JSON text that names the user."""
USER_OPTIONS = tuple(_OF_USERS)
_NOT_COPIED = "its secret is not copied; set the environment variable that stands for it"
_LISTS = ("topicPerms", "groupPerms")
_SHOWN_MAX = 60


@attrs.frozen
class ImportedAccount:
    """An account, and what a reader should know about it."""

    table: Mapping[str, Any]
    """Keys of its table; a reference stands for the secret."""
    notes: tuple[str, ...]


def is_plain_acl(document: YamlValue) -> bool:
    """Whether a document of a YAML file is one of accounts."""
    names = [name for name, _ in document.pairs()]
    return bool(names) and all(name in (_ACCOUNTS, _WHITE, _DATA_VERSION) for name in names)


def accounts_of(documents: Sequence[YamlValue]) -> tuple[ImportedAccount, ...]:
    """The accounts of files, in their order; of several with one access key the first counts, as in RocketMQ.

    Raises:
        ConfigurationError: RocketMQ would not read one of them, or no `[[account]]` can have its values.
    """
    found: dict[str, ImportedAccount] = {}
    for document in documents:
        for value in document.get(_ACCOUNTS).items():
            access_key = value.get("accessKey").text
            if access_key not in found:
                found[access_key] = _account(value, len(found) + 1)
    return tuple(found.values())


def access_key_of(setting: Setting) -> str | None:
    """The name in an option with the name and the secret of a user; None: it is another option, or has none of ours."""
    key = _OF_USERS.get(setting.name)
    if key is None:
        return None
    try:
        read = json.loads(setting.value)
    except ValueError:
        return None
    name = read.get(key) if isinstance(read, Mapping) else None
    return name if isinstance(name, str) and rule_of(attrs.fields(PlainAccessConfig).access_key).holds(name) else None


def with_users(accounts: Sequence[ImportedAccount], access_keys: Iterable[str]) -> tuple[ImportedAccount, ...]:
    """The accounts, and those of users that options name."""
    made = {account.table["access_key"]: account for account in accounts}
    for access_key in access_keys:
        if access_key not in made:
            made[access_key] = ImportedAccount({"access_key": access_key, **_secret(len(made) + 1)}, (_NOT_COPIED,))
    return tuple(made.values())


def white_addresses_of(documents: Sequence[YamlValue]) -> tuple[str, ...]:
    """The addresses that need no account; the migration of 5.3.3 leaves them out."""
    every = (item.text for document in documents for item in document.get(_WHITE).items())
    return tuple(dict.fromkeys(filter(None, every)))


def _account(value: YamlValue, number: int) -> ImportedAccount:
    table: dict[str, Any] = {}
    for name, item in value.pairs():
        if name not in _KNOWN:
            problem = f"RocketMQ does not read accounts with the key {shown(name, _SHOWN_MAX)}"
            raise ConfigurationError(value.source, item.line, problem)
        if not item.is_null:
            table[_KNOWN[name]] = _read(name, item)
    table = {"access_key": "", **table, **_secret(number)}
    try:
        PlainAccessConfig(**{**table, **{name: tuple(item) for name, item in table.items() if isinstance(item, list)}})
    except FieldError as error:
        raise ConfigurationError(value.source, value.line, f"{error.field}: {error.problem}") from None
    return ImportedAccount(table, tuple(_notes(value, table)))


def _secret(number: int) -> dict[str, Any]:
    return {"secret_key": {"env": f"SECRET_OF_ACCOUNT_{number}"}}


def _read(name: str, item: YamlValue) -> Any:
    if name in _LISTS:
        return [perm.text for perm in item.items()]
    return item.text.lower() == "true" if name == "admin" else item.text


def _notes(value: YamlValue, table: Mapping[str, Any]) -> Iterator[str]:
    yield f"{value.source}:{value.line}: {_NOT_COPIED}"
    if table.get("white_remote_address"):
        yield "5.3.3 does not migrate white_remote_address: requests from there need a signature, too"
