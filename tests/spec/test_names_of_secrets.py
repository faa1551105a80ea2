"""Options whose values are secrets are known by their names."""

from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import known_options
from nodes.secret import is_secret_name
from support.every_case import each_case


def test_these_options_of_rocketmq_are_secrets():
    found = {option.name for kind in FileKind for option in known_options(kind) if is_secret_name(option.name)}

    assert found == {
        "initAuthenticationUser",
        "innerClientAuthenticationCredentials",
        "metricsGrpcExporterHeader",
    }


@each_case(
    "name",
    [
        "accessKey",
        "access_key",
        "secretKey",
        "myPassword",
        "db.pwd",
        "ak",
        "aliyun.sk",
        "SK",
        "apiKey",
        "securityToken",
    ],
)
def test_a_name_that_no_release_knows_may_be_that_of_a_secret(name):
    assert is_secret_name(name)


@each_case("name", ["brokerName", "taskNum", "ackMessageThreadPoolNums", "diskMaxUsedSpaceRatio", "skipPreOnline"])
def test_other_names_are_not(name):
    assert not is_secret_name(name)
