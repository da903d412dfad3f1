/*
 * Makes alibaba.json beside it: requests as Alibaba Cloud's own client library signs them (ACS3-HMAC-SHA256).
 *
 *     npm install @alicloud/openapi-client@0.4.15 --prefix FOLDER
 *     NODE_PATH=FOLDER/node_modules node make_alibaba.mjs > alibaba.json
 *
 * The client makes the requests; what it would send is kept, and sent nowhere.
 */
import {createRequire} from 'node:module';

const require = createRequire(process.env.NODE_PATH + '/');
const $tea = require('@alicloud/tea-typescript');
const util = require('@alicloud/openapi-util').default;
const {default: Client, Config, Params, OpenApiRequest} = require('@alicloud/openapi-client');
const {RuntimeOptions} = require('@alicloud/tea-util');

const NOW = '2024-05-17T10:20:30Z', NONCE = '3156853299f313e23d1673dc12e1703d';
util.getTimestamp = () => NOW;
require('@alicloud/tea-util').default.getNonce = () => NONCE;

let sent;
$tea.doAction = async (request) => {
    sent = request;
    throw new Error('not sent');
};

async function record(name, action, version, endpoint, query, key, more = {}) {
    const client = new Client(new Config({endpoint, accessKeyId: key[0], accessKeySecret: key[1], securityToken: key[2],
        type: key[2] ? 'sts' : 'access_key'}));
    const params = new Params({action, version, protocol: 'HTTPS', pathname: '/', method: 'POST', authType: 'AK', style: 'RPC',
        reqBodyType: more.body ? more.type : 'formData', bodyType: 'json'});
    const request = new OpenApiRequest({query: util.query(query), body: more.body});
    await client.callApi(params, request, new RuntimeOptions({autoretry: false})).catch((problem) => {
        if (problem.message !== 'not sent')
            throw problem;
    });
    const pairs = Object.entries(sent.query).map(([k, v]) => `${encodeURIComponent(k)}=${escape3986(v)}`);
    let body = '';
    for await (const chunk of sent.body ?? [])
        body += chunk;
    return {name, method: sent.method, url: `https://${endpoint}/${pairs.length ? '?' : ''}${pairs.join('&')}`,
        action, version, content_type: sent.headers['content-type'] ?? null, provider: sent.headers['x-acs-credentials-provider'] ?? null,
        body, key_id: key[0], secret: key[1], token: key[2] ?? null, now: NOW, nonce: NONCE,
        authorization: sent.headers.Authorization};
}

function escape3986(text) {
    return encodeURIComponent(text).replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
}

const ESS = '2022-02-22', key = ['ak', 'sk'], session = ['STS.ak', 'sk/+', 'CAIS+/==tok'];
const vectors = [
    await record('describe groups', 'DescribeScalingGroups', ESS, 'ess.aliyuncs.com',
        {RegionId: 'cn-hangzhou', ScalingGroupIds: ['asg-bp18p2yfxow2dloq****'], PageSize: 50}, key),
    await record('name beyond ASCII', 'DescribeScalingGroups', ESS, 'ess.eu-central-1.aliyuncs.com',
        {RegionId: 'eu-central-1', ScalingGroupName: '工作 node~pool/1', PageSize: 50}, key),
    await record('scale', 'ScaleWithAdjustment', ESS, 'ess.aliyuncs.com',
        {ScalingGroupId: 'asg-1', AdjustmentType: 'TotalCapacity', AdjustmentValue: 7, SyncActivity: true,
            ClientToken: '01J3ZQ0000000000000000000A-7'}, key),
    await record('remove, of a session', 'RemoveInstances', ESS, 'ess.eu-central-1.aliyuncs.com',
        {RegionId: 'eu-central-1', ScalingGroupId: 'asg-1', InstanceIds: Array.from({length: 20}, (_, i) => `i-${i}`),
            DecreaseDesiredCapacity: true}, session),
    await record('what has to be escaped', 'X', ESS, 'ess.aliyuncs.com:8443', {a: "a*b ~c/(d)'!", b: '', 'B': '+&=%'}, session),
    await record('nothing asked', 'DescribeRegions', ESS, 'ess.aliyuncs.com', {}, key),
    await record('a form', 'X', '2015-04-01', 'sts.aliyuncs.com', {q: '1'}, key, {body: {RoleArn: 'acs:ram::1:role/x y'}, type: 'formData'}),
    await record('a document', 'X', '2015-04-01', 'sts.aliyuncs.com', {}, session, {body: {a: [1, 'ü']}, type: 'json'}),
];
console.log(JSON.stringify({source: '@alicloud/openapi-client 0.4.15, @alicloud/openapi-util', vectors}, null, 1));
