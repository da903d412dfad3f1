"""What Equinix Metal's own client does with the fake: calls of its devices' API, one after the other. Prints what each came
to, as JSON."""
import json
import sys

import equinix_metal

given = json.loads(sys.argv[1])
client = equinix_metal.ApiClient(equinix_metal.Configuration(host=given["url"], api_key={"x_auth_token": given["token"]}))
devices = equinix_metal.DevicesApi(client)


def carry_out(call, *arguments, **options):
    if call == "create_device":
        options["create_device_request"] = equinix_metal.CreateDeviceRequest(
            equinix_metal.DeviceCreateInMetroInput(**options["create_device_request"]))
    try:
        answer = getattr(devices, f"{call}_with_http_info")(*arguments, **options)
        return [answer.status_code, answer.data and answer.data.to_dict()]
    except equinix_metal.ApiException as error:
        return [error.status, json.loads(error.body)]


print(json.dumps([carry_out(one["do"], *one["with"], **one.get("options", {})) for one in given["calls"]], default=str))
