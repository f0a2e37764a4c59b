"""The environment in which programs find the service instead of AWS."""

import os

import harness


def environ(server, **more):
    """Nothing of the caller's own AWS, every service at the endpoint, all else at a port where nobody listens."""
    nowhere = "http://127.0.0.1:9"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "KURABE_", "ANSIBLE_"))} | {
        "AWS_ACCESS_KEY_ID": harness.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": harness.SECRET_KEY, "AWS_DEFAULT_REGION": harness.REGION,
        "AWS_REGION": harness.REGION, "AWS_ENDPOINT_URL": server.url, "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_MAX_ATTEMPTS": "2",
        "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    for lower in ("http_proxy", "https_proxy", "no_proxy"):
        env[lower] = env[lower.upper()]
    return env | more
