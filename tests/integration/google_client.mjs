// What the official clients for Google do with the fake: the actions of a node group, one after the other. Prints what each
// came to, as JSON. PACKAGES is the folder that holds node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.env.PACKAGES + "/x.js"));
const compute = require("@google-cloud/compute").v1;
const { ClusterManagerClient } = require("@google-cloud/container").v1;
const { GoogleAuth } = require("google-auth-library");

const given = JSON.parse(process.argv[2]);
const where = new URL(given.url);
const scopes = ["https://www.googleapis.com/auth/cloud-platform"];
const auth = new GoogleAuth({ keyFile: given.file, scopes });
const options = { apiEndpoint: where.hostname, port: Number(where.port), protocol: "http", fallback: true, auth };
const once = { retry: { retryCodes: [] }, timeout: 20000 };

const zonal = new compute.InstanceGroupManagersClient(options);
const regional = new compute.RegionInstanceGroupManagersClient(options);
const clusters = new ClusterManagerClient(options);
const operations = { zone: new compute.ZoneOperationsClient(options), region: new compute.RegionOperationsClient(options) };

const client = (place) => (place.zone ? zonal : regional);
const address = ({ place, name }) => ({ project: given.project, ...place, instanceGroupManager: name });

// Starts an operation and follows it to its end.
async function finish(place, [started]) {
  const named = { project: given.project, ...place, operation: started.latestResponse.name };
  const service = operations[place.zone ? "zone" : "region"];
  for (;;) {
    const [operation] = await service.get(named, once);
    if (operation.status === "DONE") return { begun: started.latestResponse, operation };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const actions = {
  get: async (a) => (await client(a.place).get(address(a), once))[0],
  list: async (a) => {
    const found = [];
    for await (const one of client(a.place).listManagedInstancesAsync({ ...address(a), maxResults: 500 }, once)) found.push(one);
    return found;
  },
  resize: async (a) =>
    finish(a.place, await client(a.place).resize({ ...address(a), size: a.size, requestId: a.requestId }, once)),
  remove: async (a) => {
    const wanted = { instances: a.instances, skipInstancesOnValidationError: a.skip };
    const body = a.place.zone
      ? { instanceGroupManagersDeleteInstancesRequestResource: wanted }
      : { regionInstanceGroupManagersDeleteInstancesRequestResource: wanted };
    return finish(a.place, await client(a.place).deleteInstances({ ...address(a), ...body, requestId: a.requestId }, once));
  },
  getPool: async (a) => (await clusters.getNodePool({ name: a.name }, once))[0],
  // The address of tokens for keys is fixed in the client: it is the fake's here.
  token: async () => {
    const one = await auth.getClient();
    one.transporter.interceptors.request.add({
      resolved: async (config) => {
        if (config.url.hostname === "oauth2.googleapis.com") config.url = new URL(config.url.pathname, given.url);
        return config;
      },
    });
    return (await one.getAccessToken()).token;
  },
};

const results = [];
for (const action of given.actions) {
  try {
    results.push({ result: (await actions[action.do](action)) ?? null });
  } catch (error) {
    results.push({ error: { code: error.code, message: error.message, reason: error.reason, details: error.statusDetails } });
  }
}
console.log(JSON.stringify(results));
