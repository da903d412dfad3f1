"""What AWS' own client does with the fake: actions of Auto Scaling and EKS, one after the other. Prints what each came to, as
JSON."""
import json
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

given = json.loads(sys.argv[1])
config = Config(retries={"total_max_attempts": given.get("attempts", 1)}, parameter_validation=True)
clients = {name: boto3.client(name, region_name=given["region"], endpoint_url=given["url"], config=config,
                              aws_access_key_id=given["key"], aws_secret_access_key=given["secret"])
           for name in ("autoscaling", "eks")}


def carry_out(service, call, options):
    try:
        answer = getattr(clients[service], call)(**options)
    except ClientError as error:
        answer = {**error.response["Error"], "ResponseMetadata": error.response["ResponseMetadata"]}
    metadata = answer.pop("ResponseMetadata")
    return [metadata["HTTPStatusCode"], metadata["RequestId"], metadata["RetryAttempts"], answer]


print(json.dumps([carry_out(*action) for action in given["actions"]], default=str))
