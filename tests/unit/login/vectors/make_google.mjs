/*
 * Makes google.json beside it: what Google's own client library asks for when it looks for a token, by kind of
 * credentials.
 *
 *     npm install google-auth-library@11 --prefix FOLDER
 *     NODE_PATH=FOLDER/node_modules node make_google.mjs > google.json
 *
 * The key is made for this, and opens nothing.
 */
import {createRequire} from 'node:module';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const require = createRequire(process.env.NODE_PATH + '/');
const {GoogleAuth, JWT, UserRefreshClient, ExternalAccountClient} = require('google-auth-library');
const jws = require('jws');

const NOW = Date.parse('2024-05-17T10:20:30Z');
Date.prototype.getTime = function () { return NOW; };
Date.now = () => NOW;

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'vectors-'));
const {privateKey, publicKey} = crypto.generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: {type: 'pkcs8', format: 'pem'},
    publicKeyEncoding: {type: 'spki', format: 'pem'},
});

/* Answers what is asked, and keeps it. */
class Recorder {
    constructor(answers) {
        this.answers = answers;
        this.requests = [];
        this.defaults = {};
    }

    async request(options) {
        const headers = {};
        new Headers(options.headers).forEach((value, key) => {
            if (['authorization', 'metadata-flavor', 'x-subject'].includes(key)) headers[key] = value;
        });
        let body = options.data;
        if (body instanceof URLSearchParams) body = Object.fromEntries(body.entries());
        this.requests.push({method: options.method, url: String(options.url), headers, body: body ?? null});
        const data = structuredClone(this.answers.shift());
        return {data, status: 200, headers: new Headers(), config: options};
    }
}

function make(client, answers) {
    const recorder = new Recorder(answers);
    client.transporter = recorder;
    if (client.stsCredential) client.stsCredential.transporter = recorder;
    if (client.supplierContext) client.supplierContext.transporter = recorder;
    return recorder;
}

const TOKEN = {access_token: 'ya29.token', expires_in: 3599, token_type: 'Bearer'};
const IMPERSONATED = {accessToken: 'ya29.impersonated', expireTime: '2024-05-17T11:20:30Z'};
const rows = [];

async function record(name, file, answers, subject) {
    const auth = new GoogleAuth({scopes: [SCOPE]});
    const client = auth.fromJSON(file);
    client.scopes = [SCOPE];
    const recorder = make(client, [...answers]);
    const given = await client.getAccessToken();
    rows.push({name, file, subject: subject ?? null, answers, requests: recorder.requests, token: given.token});
}

const account = {
    type: 'service_account', project_id: 'shop', private_key_id: 'key-1', private_key: privateKey,
    client_email: 'scaler@shop.iam.gserviceaccount.com', client_id: '1',
    token_uri: 'https://oauth2.googleapis.com/token',
};
await record('service_account', account, [TOKEN]);
await record('authorized_user', {type: 'authorized_user', client_id: 'id.apps', client_secret: 's+/=',
                                 refresh_token: '1//refresh', quota_project_id: 'shop'}, [TOKEN]);

const external = {
    type: 'external_account',
    audience: '//iam.googleapis.com/projects/7/locations/global/workloadIdentityPools/p/providers/k',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: 'https://sts.googleapis.com/v1/token',
};
const acting = {
    service_account_impersonation_url: 'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/' +
        'scaler@shop.iam.gserviceaccount.com:generateAccessToken',
};

async function record_file(name, text, source, rest, answers) {
    const file = path.join(folder, 'token');
    fs.writeFileSync(file, text);
    await record(name, {...external, ...rest, credential_source: {...source, file}}, answers, text);
    rows.at(-1).file.credential_source.file = '/var/run/token';
}

await record_file('file', 'eyJ.subject', {}, {}, [TOKEN]);
await record_file('file_json', '{"a":1,"t":"eyJ.json"}', {format: {type: 'json', subject_token_field_name: 't'}}, {},
                  [TOKEN]);
await record_file('file_acting', 'eyJ.subject', {}, acting, [TOKEN, IMPERSONATED]);
await record_file('file_acting_shortly', 'eyJ.subject', {},
                  {...acting, service_account_impersonation: {token_lifetime_seconds: 600}}, [TOKEN, IMPERSONATED]);
await record_file('workforce', 'eyJ.subject', {},
                  {audience: '//iam.googleapis.com/locations/global/workforcePools/p/providers/k',
                   workforce_pool_user_project: 'shop"7'}, [TOKEN]);
await record_file('client', 'eyJ.subject', {}, {client_id: 'me', client_secret: 's:+/'}, [TOKEN]);
await record('url', {...external, credential_source: {url: 'http://169.254.169.254/token', headers: {'x-subject': 'yes'}}},
             ['eyJ.subject', TOKEN], 'eyJ.subject');
await record('url_json', {...external, credential_source: {url: 'http://169.254.169.254/token',
                                                           format: {type: 'json', subject_token_field_name: 't'}}},
             [{t: 'eyJ.json'}, TOKEN], '{"t":"eyJ.json"}');

/* The parts of a token as texts, signed: RSA signatures of this kind are always the same. */
const header = {alg: 'RS256', typ: 'JWT', kid: 'key-1'};
const claims = {iss: 'me', scope: SCOPE, aud: 'https://oauth2.googleapis.com/token', exp: 3600, iat: 0, x: 'ä/"'};
const signed = {
    header: JSON.stringify(header), claims: JSON.stringify(claims), key: privateKey, public_key: publicKey,
    token: jws.sign({header, payload: claims, secret: privateKey}),
};
fs.rmSync(folder, {recursive: true});
process.stdout.write(JSON.stringify({now: '2024-05-17T10:20:30Z', signed, rows}, null, 1) + '\n');
