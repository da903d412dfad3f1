"""What Alibaba Cloud's own client does with the fake: the actions of a scaling group, one after the other. Prints what each
came to, as JSON."""
import json
import sys

from alibabacloud_ess20220222 import models
from alibabacloud_ess20220222.client import Client
from alibabacloud_tea_openapi.utils_models import Config
from darabonba.exceptions import DaraException

given = json.loads(sys.argv[1])
client = Client(Config(region_id=given["region"], endpoint=given["url"].removeprefix("http://"), protocol="http",
                       access_key_id=given["key"], access_key_secret=given["secret"]))
calls = {
    "groups": (client.describe_scaling_groups, models.DescribeScalingGroupsRequest),
    "instances": (client.describe_scaling_instances, models.DescribeScalingInstancesRequest),
    "activities": (client.describe_scaling_activities, models.DescribeScalingActivitiesRequest),
    "scale": (client.scale_with_adjustment, models.ScaleWithAdjustmentRequest),
    "remove": (client.remove_instances, models.RemoveInstancesRequest),
}


def carry_out(what, arguments):
    call, request = calls[what]
    try:
        answer = call(request(**arguments))
        return [answer.status_code, answer.body.to_map()]
    except DaraException as error:
        return [error.code, error.message]


print(json.dumps([carry_out(one["do"], one["with"]) for one in given["actions"]]))
