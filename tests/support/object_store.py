"""An object store on this machine, with a bucket, for tests of datasets at s3a: URIs."""

import json
import urllib.request
from contextlib import contextmanager

from pyarrow import fs

BUCKET = "traces"
READ = ["s3:GetObject", "s3:ListBucket"]


@contextmanager
def object_store():
    """A store; yields the variables of the environment by which its clients find it."""
    from moto.server import ThreadedMotoServer  # takes half a second, in each worker that only collects its tests

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        fs.S3FileSystem(
            endpoint_override=f"{host}:{port}",
            scheme="http",
            region="us-east-1",
            access_key="key",
            secret_key="secret",
            allow_bucket_creation=True,
        ).create_dir(BUCKET)
        yield {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()


@contextmanager
def rights_are_checked(environment, allowed):
    """Inside the `with` block the store checks rights; yields the variables of a user with some of them.

    Args:
        environment: of the store.
        allowed: actions that the user may do.
    """
    import boto3

    options = {
        "endpoint_url": environment["AWS_ENDPOINT_URL"],
        "region_name": "us-east-1",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
    }
    iam = boto3.client("iam", **options)
    iam.create_user(UserName="user")
    key = iam.create_access_key(UserName="user")["AccessKey"]
    if allowed:
        statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName="user", PolicyName="policy", PolicyDocument=document)
    _check_after(environment, 0)
    try:
        yield {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    finally:
        _check_after(environment, 10**9)
        iam.delete_access_key(UserName="user", AccessKeyId=key["AccessKeyId"])
        if allowed:
            iam.delete_user_policy(UserName="user", PolicyName="policy")
        iam.delete_user(UserName="user")


def _check_after(environment, requests):
    """The store checks rights after so many requests."""
    url = f"{environment['AWS_ENDPOINT_URL']}/moto-api/reset-auth"
    head = {"Content-Type": "text/plain"}
    urllib.request.urlopen(
        urllib.request.Request(url, data=str(requests).encode(), method="POST", headers=head)
    ).close()
