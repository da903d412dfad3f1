// What the official client for Azure does with the fake: the actions of a node group, one after the other. Prints what each
// came to, as JSON. PACKAGES is the folder that holds node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.env.PACKAGES + "/x.js"));
const { ClientSecretCredential, WorkloadIdentityCredential, ManagedIdentityCredential } = require("@azure/identity");
const { ComputeManagementClient } = require("@azure/arm-compute");
const { ContainerServiceClient } = require("@azure/arm-containerservice");

const given = JSON.parse(process.argv[2]);
const identity = { authorityHost: given.url, disableInstanceDiscovery: true, retryOptions: { maxRetries: 0 } };
const credential = {
  secret: () => new ClientSecretCredential(given.tenant, given.client, given.secret, identity),
  workload: () =>
    new WorkloadIdentityCredential({ tenantId: given.tenant, clientId: given.client, tokenFilePath: given.file, ...identity }),
  managed: () => new ManagedIdentityCredential({ clientId: given.client }),
}[given.credential]();
const options = { endpoint: given.url, retryOptions: { maxRetries: given.retries ?? 0 } };
const compute = new ComputeManagementClient(credential, given.subscription, options);
const containers = new ContainerServiceClient(credential, given.subscription, options);
const sets = compute.virtualMachineScaleSets, pools = containers.agentPools;
const patient = { updateIntervalInMs: 50 };

async function all(pages) {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
}

const actions = {
  token: async () => (await credential.getToken("https://management.azure.com/.default")).token,
  getSet: ({ group, name }) => sets.get(group, name),
  listSet: ({ group, name }) => all(compute.virtualMachineScaleSetVMs.list(group, name, { expand: "instanceView" })),
  listFlexible: ({ group, id }) =>
    all(compute.virtualMachines.list(group, { filter: `'virtualMachineScaleSet/id' eq '${id}'`, expand: "instanceView" })),
  setCapacity: ({ group, name, capacity, etag }) =>
    sets.update(group, name, { sku: { capacity } }, { ifMatch: etag, ...patient }),
  deleteInstances: ({ group, name, ids, force }) =>
    sets.deleteInstances(group, name, { instanceIds: ids }, { forceDeletion: force, ...patient }),
  getPool: ({ group, cluster, name }) => pools.get(group, cluster, name),
  listMachines: ({ group, cluster, name }) => all(containers.machines.list(group, cluster, name)),
  setPool: async ({ group, cluster, name, count, etag }) => {
    const pool = await pools.get(group, cluster, name);
    return pools.createOrUpdate(group, cluster, name, { ...pool, count }, { ifMatch: etag, ...patient });
  },
  deleteMachines: ({ group, cluster, name, names }) =>
    pools.deleteMachines(group, cluster, name, { machineNames: names }, patient),
};

const results = [];
for (const action of given.actions) {
  try {
    results.push({ result: (await actions[action.do](action)) ?? null });
  } catch (error) {
    results.push({ error: { code: error.code, status: error.statusCode, message: error.message } });
  }
}
console.log(JSON.stringify(results));
