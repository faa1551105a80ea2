"""Users and policies that a broker has when a client starts: its own, and those that acts have made by then."""

from collections.abc import Mapping
from contextlib import suppress

from emulator.acts.access import CreateAcl, CreateUser, DeleteAcl, DeleteUser, UpdateUser
from emulator.acts.act import Act
from emulator.spec.model.scenario import BrokerSpec, Scenario
from nodes.broker.tables.auth.auth_tables import AuthTables, auth_tables
from nodes.broker.tables.auth.errors import AuthError
from nodes.secret import Secret


def tables_at(broker: BrokerSpec, scenario: Scenario, at_ms: int) -> AuthTables:
    """The tables of a broker at an instant, if all acts before have succeeded.

    Args:
        broker: with ACL 2.0.
        scenario: with a value for each secret.
        at_ms: the instant, since the run began.
    """
    tables = auth_tables(broker.config, broker.cluster)
    for _ in tables.begin(scenario.accounts):
        pass
    secrets = {account.access_key: account.secret_key for account in scenario.accounts}
    for timed in sorted(scenario.acts, key=lambda timed: timed.at_ms):
        if timed.at_ms <= at_ms and getattr(timed.act, "on", None) in (None, broker.name, broker.cluster):
            with suppress(AuthError):  # the act fails, and changes nothing
                _apply(timed.act, tables, secrets)
    return tables


def _apply(act: Act, tables: AuthTables, secrets: Mapping[str, Secret]) -> None:
    match act:
        case CreateUser():
            tables.users.create(act.info(secrets))
        case UpdateUser():
            tables.users.update(act.info(secrets))
        case DeleteUser():
            tables.delete_user(act.user)
        case CreateAcl():
            tables.acls.update(act.info())
        case DeleteAcl():
            tables.acls.delete(f"User:{act.user}", None, act.resource or None)
        case _:
            pass
