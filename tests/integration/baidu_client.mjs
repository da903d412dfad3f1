// What the official client for Baidu AI Cloud does with the fake: signed requests, one after the other. It has no calls for CCE
// of its own: those are written as Baidu's documentation has them. Prints what each came to, as JSON. PACKAGES is the folder
// that holds node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.env.PACKAGES + "/x.js"));
const { BceBaseClient } = require("@baiducloud/sdk");

const given = JSON.parse(process.argv[2]);
const client = new BceBaseClient(
  { endpoint: given.url, credentials: { ak: given.key, sk: given.secret }, sessionToken: given.session ?? undefined },
  "cce",
);

const results = [];
for (const { method, path, params, body } of given.requests) {
  try {
    const answer = await client.sendRequest(method, path, { params: params ?? {}, body: body ? JSON.stringify(body) : null });
    results.push({ result: answer.body, id: answer.http_headers["x-bce-request-id"] });
  } catch (error) {
    results.push({ error: { code: error.code, status: error.status_code, message: error.message, id: error.request_id } });
  }
}
console.log(JSON.stringify(results));
