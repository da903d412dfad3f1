/*
 * Makes baidu.json beside it: requests as Baidu AI Cloud's own client library signs them (bce-auth-v1).
 *
 *     npm install @baiducloud/sdk@1.0.7 --prefix FOLDER
 *     NODE_PATH=FOLDER/node_modules node make_baidu.mjs > baidu.json
 *
 * The library's Auth signs; the headers it is told to sign are those that ours signs.
 */
import {createRequire} from 'node:module';

const require = createRequire(process.env.NODE_PATH + '/');
const {Auth} = require('@baiducloud/sdk');

const NOW = '2024-05-17T10:20:30Z';
const PREFIX = '/api/cce/service/v2';
const key = ['ALTAKexample', 's3cret/+='], session = ['ALTAKsession', 'sk', 'MTBlY2I4+/==tok'];

function sign(name, method, path, params, [ak, sk, token], body = null, host = 'cce.bj.baidubce.com', scheme = 'https') {
    const headers = {Host: host, 'x-bce-date': NOW};
    if (body)
        headers['Content-Type'] = 'application/json';
    if (token)
        headers['x-bce-security-token'] = token;
    const query = Object.entries(params).map(([k, v]) => v === null ? k : `${k}=${new Auth('', '').normalize(String(v))}`).join('&');
    return {name, method, url: `${scheme}://${host}${path}${query ? '?' : ''}${query}`, body: body ? JSON.stringify(body) : '',
        key_id: ak, secret: sk, token: token ?? null, now: NOW,
        authorization: new Auth(ak, sk).generateAuthorization(method, path, params, headers, Date.parse(NOW) / 1000, 1800,
            ['host', 'content-type'])};
}

const group = `${PREFIX}/cluster/cce-f7zeyx1u/instancegroup/cce-ig-dvej1d1y`;
const vectors = [
    sign('get group', 'GET', group, {}, key),
    sign('list instances', 'GET', `${group}/instances`, {pageNo: 1, pageSize: 100}, key),
    sign('scale up', 'PUT', `${group}/scaleup`, {upToReplicas: 12}, key),
    sign('scale down', 'PUT', `${group}/scaledown`, {}, key, {instancesToBeRemoved: ['cce-f7zeyx1u-n5kzhdfd']}),
    sign('get task, of a session', 'GET', `${PREFIX}/task/InstanceGroupReplicas/task-ig-1`, {}, session),
    sign('scale down, of a session', 'PUT', `${group}/scaledown`, {}, session, {instancesToBeRemoved: ['a', 'b']}, 'cce.gz.baidubce.com'),
    sign('a port', 'GET', group, {}, key, null, '127.0.0.1:8443', 'http'),
    sign('no value, and what has to be escaped', 'POST', '/v1/credential',
        {assumeRole: null, a1: '1', a: "x y*~(é)'!/", 'durationSeconds': 3600}, session, {x: 1}, 'sts.bj.baidubce.com'),
];
console.log(JSON.stringify({source: '@baiducloud/sdk 1.0.7', vectors}, null, 1));
