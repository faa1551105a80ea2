"""Files with accounts of ACL 1.0 become `[[account]]` tables, without their secrets."""

import pytest

from emulator.importing.files import ConfigurationFile, read_configuration
from emulator.importing.scenario_text import scenario_text
from emulator.importing.settings import ConfigurationError
from emulator.spec import loads

BROKER = """brokerName=broker-a
authenticationEnabled=true
authenticationMetadataProvider=org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider
migrateAuthFromV1Enabled=true
"""
ACCOUNTS = """globalWhiteRemoteAddresses:
- 10.10.103.*

accounts:
- accessKey: RocketMQ
  secretKey: canary-12345678
  whiteRemoteAddress:
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - topicA=DENY
  - topicB=PUB|SUB
- accessKey: rocketmq2
  secretKey: canary-87654321
  whiteRemoteAddress: 192.168.1.*
  admin: true
- accessKey: rocketmq2
  secretKey: canary-2
"""


def text_of(accounts):
    files = [ConfigurationFile("broker.conf", BROKER.encode()), ConfigurationFile("plain_acl.yml", accounts.encode())]
    return scenario_text(read_configuration(files, None, lambda *_: None), "imported", ["broker.conf", "plain_acl.yml"])


def test_the_first_account_of_each_access_key_is_a_table_and_no_secret_is_copied():
    text = text_of(ACCOUNTS)
    read = loads(text, "imported")
    assert "canary" not in text
    assert [account.access_key for account in read.accounts] == ["RocketMQ", "rocketmq2"]
    assert [account.secret_key.env for account in read.accounts] == ["SECRET_OF_ACCOUNT_1", "SECRET_OF_ACCOUNT_2"]
    assert read.accounts[0].topic_perms == ("topicA=DENY", "topicB=PUB|SUB")
    assert (read.accounts[0].default_topic_perm, read.accounts[0].default_group_perm) == ("DENY", "SUB")
    assert read.accounts[1].admin
    assert read.global_white_remote_addresses == ("10.10.103.*",)
    assert "5.3.3 does not migrate white_remote_address" in text
    assert read.brokers[0].config.migrate_auth_from_v1_enabled


USERS = """initAuthenticationUser={"username":"rocketmq2","password":"canary-1"}
innerClientAuthenticationCredentials={"accessKey":"inner-client","secretKey":"canary-2"}
"""


def test_users_that_options_of_a_broker_name_become_accounts_without_their_secrets():
    files = [ConfigurationFile("broker.conf", (BROKER + USERS).encode())]
    text = scenario_text(read_configuration(files, None, lambda *_: None), "imported", ["broker.conf"])
    read = loads(text, "imported")
    config = read.brokers[0].config
    assert "canary" not in text
    assert (config.init_authentication_user, config.inner_client_authentication_credentials) == (
        "rocketmq2",
        "inner-client",
    )
    assert [account.access_key for account in read.accounts] == ["rocketmq2", "inner-client"]
    assert all(account.secret_key.env for account in read.accounts)


@pytest.mark.parametrize("user", ['{"username":"root","password":"canary"}', "root:canary", '["canary"]', "{}"])
def test_a_user_that_no_account_can_be_is_left_out_with_a_warning(user):
    files = [ConfigurationFile("broker.conf", f"{BROKER}initAuthenticationUser={user}\n".encode())]
    cluster = read_configuration(files, None, lambda *_: None)
    assert cluster.accounts == ()
    assert [verdict.note for verdict in cluster.nodes[0].verdicts if verdict.is_warning] == [
        "a secret, which is not copied; name an [[account]] that has it"
    ]


@pytest.mark.parametrize(
    ("accounts", "problem"),
    [
        (
            "accounts:\n- accessKey: rocketmq2\n  nonsense: 1\n",
            "plain_acl.yml:3: RocketMQ does not read accounts with the key nonsense",
        ),
        ("accounts:\n- secretKey: canary-12345678\n", "plain_acl.yml:2: access_key: expected a text of 7 characters"),
        (
            "accounts:\n- accessKey: rocketmq2\n  topicPerms:\n  - orders\n",
            "plain_acl.yml:2: topic_perms: expected a list of texts such as",
        ),
    ],
)
def test_an_account_that_cannot_be_taken_is_one_line_with_its_place(accounts, problem):
    with pytest.raises(ConfigurationError) as caught:
        text_of(accounts)
    assert str(caught.value).startswith(problem)
    assert "canary" not in str(caught.value)
