"""What DigitalOcean's own client does with the fake: the actions of a node pool, one after the other. Prints what each came
to, as JSON."""
import json
import sys

import pydo
from azure.core.exceptions import HttpResponseError

given = json.loads(sys.argv[1])
kubernetes = pydo.Client(token=given["token"], endpoint=given["url"], retry_total=given.get("retries", 0)).kubernetes


def carry_out(call, *arguments, **options):
    try:
        return getattr(kubernetes, call)(*arguments, **options, cls=lambda answer, body, _: [answer.http_response.status_code, body])
    except HttpResponseError as error:
        return [error.status_code, json.loads(error.response.text())]


print(json.dumps([carry_out(one["do"], *one["with"], **one.get("options", {})) for one in given["actions"]]))
