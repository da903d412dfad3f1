/*
 * Loading: the content of files arrives where the program reads it, with every default.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/node_template.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/source.h>
#include <alertscaler/rules/config.h>

static char folder[] = "/tmp/[alertscaler]*-XXXXXX"; /* looks like a pattern, and is none */
static struct as_diagnostics diagnostics;
static struct as_config *config;

static void path_of(const char *name, char out[256])
{
    snprintf(out, 256, "%s/%s", folder, name);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    path_of(name, path);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void setup(void)
{
    cr_assert_not_null(mkdtemp(folder));
}

static void teardown(void)
{
    config = as_config_free(config);
    as_diagnostics_deinit(&diagnostics);
    static const char *const names[] = {"alertscaler.yaml", "a.yaml", "b.yaml", "rules.yaml"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        char path[256];
        path_of(names[i], path);
        unlink(path);
    }
    rmdir(folder);
}

TestSuite(config, .init = setup, .fini = teardown);

static int load(const char *text)
{
    char path[256];
    write_file("alertscaler.yaml", text);
    path_of("alertscaler.yaml", path);
    config = as_config_free(config);
    as_diagnostics_deinit(&diagnostics);
    int r = as_config_load(path, &config, &diagnostics);
    if (r == AS_CONFIG_OK && diagnostics.has_error)
        cr_assert_fail("loaded with an error");
    return r;
}

static void assert_loads(const char *text)
{
    int r = load(text);
    cr_assert_eq(r, AS_CONFIG_OK, "%d: %s", r,
                 diagnostics.count ? diagnostics.items[0].message : "");
}

static void assert_path(const char *path, const char *name)
{
    char expected[256];
    path_of(name, expected);
    cr_assert_str_eq(path, expected);
}

/* An empty configuration has every default of the reference. */
Test(config, defaults)
{
    assert_loads("{}\n");
    const struct as_settings *s = &config->settings;
    cr_assert_eq(s->rule_file_count, 0);
    cr_assert_eq(s->defaults.bounds.min, 1);
    cr_assert_eq(s->defaults.bounds.cooldown.up_us, 3 * AS_US_PER_MIN);
    cr_assert_eq(s->defaults.bounds.cooldown.down_us, 5 * AS_US_PER_MIN);
    cr_assert_eq(s->defaults.bounds.cooldown.up_after_down_us, 0);
    cr_assert_float_eq(s->defaults.bounds.tolerance_up, 0.1, 1e-12);
    cr_assert_float_eq(s->defaults.bounds.tolerance_down, 0.1, 1e-12);
    cr_assert_eq(s->defaults.bounds.cpu_initialization_us, 5 * AS_US_PER_MIN);
    cr_assert_eq(s->defaults.bounds.initial_readiness_delay_us, 30 * AS_US_PER_S);
    cr_assert_not(s->defaults.bounds.enforce_bounds);
    cr_assert_not(s->defaults.bounds.has_behavior);
    cr_assert_not(s->defaults.dry_run);
    cr_assert_eq(s->alertmanager.url_count, 0);
    cr_assert_eq(s->alertmanager.resync_interval_us, AS_US_PER_MIN);
    cr_assert_eq(s->alertmanager.receiver_count, 0);
    cr_assert_null(s->prometheus.url);
    cr_assert_eq(s->prometheus.timeout_us, 5 * AS_US_PER_S);
    cr_assert_eq(s->cluster_count, 1);
    cr_assert_str_eq(s->clusters[0].name, "default");
    cr_assert_null(s->clusters[0].kubeconfig);
    cr_assert_eq(s->provider_count, 0);
    cr_assert_eq(s->receiver.max_body, 16u << 20);
    cr_assert_eq(s->receiver.max_connections, 1000);
    cr_assert_eq(s->receiver.incident_expiry_us, AS_US_PER_DAY);
    cr_assert_eq(s->receiver.stale_window_us, 2 * AS_US_PER_MIN);
    cr_assert_eq(s->receiver.token_count, 0);
    cr_assert_eq(s->receiver.watchdog_count, 0);
    cr_assert_eq(s->limits.actions_max, 0);
    cr_assert_eq(s->limits.scale_down_milli_percent, 0);
    cr_assert_eq(s->state.store, AS_STORE_SQLITE);
    cr_assert_str_eq(s->state.path, "/var/lib/alertscaler/state.db");
    cr_assert_str_eq(s->action_log.path, "/var/lib/alertscaler/actions.jsonl");
    cr_assert_eq(s->action_log.max_size, 100u << 20);
    cr_assert_eq(s->action_log.keep, 10);
    cr_assert_not(s->dry_run);
    cr_assert_eq(config->ruleset->rule_count, 0);
    cr_assert_eq(strlen(config->digest), 64);
    /* sha256sum of nothing, and of "{}\n" */
    cr_assert_str_eq(config->ruleset->digest,
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    cr_assert_str_eq(config->digest,
                     "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356");
}

/* For people: where a rule is, and its text without comments. */
Test(config, a_rule_has_its_place_and_its_text)
{
    write_file("a.yaml",
               "targets:\n"
               "  web: {kubernetes: {kind: Deployment, namespace: shop, name: web}, max: 9}\n"
               "rules:\n"
               "  # the first\n"
               "  - {name: slow, match: ['a=\"b\"'], target: web, scale_up: {by: 2}}\n"
               "  - name: low\n"
               "    match: ['a=\"b\"']  # again\n"
               "    target: web\n"
               "    scale_down: {by: 10%}\n"
               "    guard: none\n");
    assert_loads("rule_files: [a.yaml]\n");
    const struct as_rule *rule = config->ruleset->rules[0];
    assert_path(rule->file, "a.yaml");
    cr_assert_eq(rule->line, 5);
    cr_assert_str_eq(rule->text,
                     "name: slow\nmatch:\n  - 'a=\"b\"'\ntarget: web\nscale_up:\n  by: 2\n");
    rule = config->ruleset->rules[1];
    cr_assert_eq(rule->line, 6);
    cr_assert_str_eq(rule->text, "name: low\nmatch:\n  - 'a=\"b\"'\ntarget: web\nscale_down:\n"
                                 "  by: 10%\nguard: none\n");
}

Test(config, a_very_long_rule_keeps_no_text)
{
    static char text[64 * 1024];
    size_t size =
        (size_t)snprintf(text, sizeof(text),
                         "targets:\n  web: {kubernetes: {kind: Deployment, namespace: shop, name: "
                         "web}, max: 9}\nrules:\n  - name: slow\n    target: web\n"
                         "    scale_up: {by: 2}\n    match:\n");
    while (size < AS_RULE_TEXT_MAX + 2000)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "      - 'a%zu=\"%0500d\"'\n",
                                 size, 0);
    write_file("a.yaml", text);
    assert_loads("rule_files: [a.yaml]\n");
    cr_assert_null(config->ruleset->rules[0]->text);
    cr_assert_eq(config->ruleset->rules[0]->line, 4);
}

Test(config, settings)
{
    assert_loads(
        "prometheus: {url: 'http://prometheus:9090', timeout: 7s, http_config: {proxy_url: "
        "'http://p'}}\n"
        "clusters: {edge: {kubeconfig: edge.conf, context: prod}}\n"
        "providers:\n"
        "  mine:\n"
        "    type: http\n"
        "    timeout: 3s\n"
        "    http_config:\n"
        "      authorization: {credentials_file: token}\n"
        "      tls_config: {ca_file: /ca.pem, cert_file: c, key_file: k, server_name: s, "
        "insecure_skip_verify: true}\n"
        "      http_headers: {X-A: {values: [a, b], files: [f]}}\n"
        "  cloud: {type: aws, region: eu-west-1, profile: x}\n"
        "  driver: {type: externalgrpc, endpoint: 'https://d', http_config: {basic_auth: "
        "{username: u, password_file: p}}}\n"
        "receiver:\n"
        "  max_body: 1MB\n"
        "  max_connections: 7\n"
        "  incident_expiry: 2d\n"
        "  stale_window: 0\n"
        "  tokens: [{name: am, file: token}, {name: other, file: /etc/token}]\n"
        "  watchdog: {match: ['alertname=\"Watchdog\"', a!=b], within: 1m}\n"
        "state: {path: state.db}\n"
        "action_log: {path: log/a.jsonl, max_size: 1KiB, keep: 3}\n"
        "dry_run: true\n");
    const struct as_settings *s = &config->settings;
    cr_assert_str_eq(s->prometheus.url, "http://prometheus:9090");
    cr_assert_eq(s->prometheus.timeout_us, 7 * AS_US_PER_S);
    cr_assert_str_eq(s->prometheus.http.proxy_url, "http://p");
    cr_assert_eq(s->cluster_count, 2);
    const struct as_cluster_settings *edge = as_settings_find_cluster(s, "edge");
    assert_path(edge->kubeconfig, "edge.conf");
    cr_assert_str_eq(edge->context, "prod");
    cr_assert_not_null(as_settings_find_cluster(s, "default"));
    cr_assert_null(as_settings_find_cluster(s, "edg"));
    const struct as_provider_settings *mine = as_settings_find_provider(s, "mine");
    cr_assert_str_eq(mine->type, "http");
    cr_assert_eq(mine->timeout_us, 3 * AS_US_PER_S);
    cr_assert_str_eq(mine->http.authorization.type, "Bearer");
    assert_path(mine->http.authorization.credentials_file, "token");
    cr_assert_str_eq(mine->http.tls.ca_file, "/ca.pem");
    assert_path(mine->http.tls.cert_file, "c");
    assert_path(mine->http.tls.key_file, "k");
    cr_assert_str_eq(mine->http.tls.server_name, "s");
    cr_assert(mine->http.tls.insecure_skip_verify);
    cr_assert_eq(mine->http.header_count, 1);
    cr_assert_str_eq(mine->http.headers[0].name, "X-A");
    cr_assert_eq(mine->http.headers[0].value_count, 2);
    cr_assert_str_eq(mine->http.headers[0].values[1], "b");
    cr_assert_eq(mine->http.headers[0].file_count, 1);
    assert_path(mine->http.headers[0].files[0], "f");
    const struct as_provider_settings *cloud = as_settings_find_provider(s, "cloud");
    cr_assert_eq(cloud->timeout_us, 10 * AS_US_PER_S);
    cr_assert_eq(cloud->option_count, 2);
    cr_assert_str_eq(cloud->options[0].key, "region");
    cr_assert_str_eq(cloud->options[0].value, "eu-west-1");
    const struct as_provider_settings *driver = as_settings_find_provider(s, "driver");
    cr_assert_str_eq(driver->http.basic_auth.username, "u");
    assert_path(driver->http.basic_auth.password_file, "p");
    cr_assert_eq(s->receiver.max_body, 1000000);
    cr_assert_eq(s->receiver.max_connections, 7);
    cr_assert_eq(s->receiver.incident_expiry_us, 2 * AS_US_PER_DAY);
    cr_assert_eq(s->receiver.stale_window_us, 0);
    cr_assert_eq(s->receiver.token_count, 2);
    cr_assert_str_eq(s->receiver.tokens[0].name, "am");
    assert_path(s->receiver.tokens[0].file, "token");
    cr_assert_str_eq(s->receiver.tokens[1].file, "/etc/token");
    cr_assert_eq(s->receiver.watchdog_count, 2);
    cr_assert_str_eq(s->receiver.watchdog[0].value, "Watchdog");
    cr_assert_eq(s->receiver.watchdog[1].op, AS_MATCHER_NOT_EQUAL);
    cr_assert_eq(s->receiver.watchdog_within_us, AS_US_PER_MIN);
    assert_path(s->state.path, "state.db");
    assert_path(s->action_log.path, "log/a.jsonl");
    cr_assert_eq(s->action_log.max_size, 1024);
    cr_assert_eq(s->action_log.keep, 3);
    cr_assert(s->dry_run);
}

/* Each login, with all its keys and with none of the optional ones. */
Test(config, logins)
{
    assert_loads(
        "prometheus:\n"
        "  url: https://a\n"
        "  http_config:\n"
        "    oauth2:\n"
        "      client_id: c\n"
        "      client_secret_file: secret\n"
        "      token_url: http://[::1]:1/token\n"
        "      scopes: [read, list]\n"
        "      endpoint_params: {audience: 'https://a', resource: b}\n"
        "      tls_config: {ca_file: ca, server_name: login}\n"
        "    tls_config: {ca_file: other, server_name: prometheus}\n"
        "alertmanager:\n"
        "  urls: ['https://a']\n"
        "  http_config: {sigv4: {region: r, profile: p, role_arn: 'arn:aws-cn:iam::1:role/a/b', "
        "external_id: e}}\n"
        "providers:\n"
        "  sigv4: {type: http, http_config: {sigv4: {}}}\n"
        "  oauth2: {type: externalgrpc, endpoint: 'https://d', http_config: {oauth2: {client_id: "
        "c, client_secret_file: /s, token_url: 'https://t'}}}\n"
        "  managed: {type: http, http_config: {azuread: {managed_identity: {}}}}\n"
        "  user: {type: http, http_config: {azuread: {managed_identity: {client_id: c}}}}\n"
        "  workload: {type: http, http_config: {azuread: {cloud: AzureChina, workload_identity: "
        "{}}}}\n"
        "  pod: {type: http, http_config: {azuread: {workload_identity: {client_id: c, tenant_id: "
        "t, token_file_path: f}}}}\n"
        "  app: {type: http, http_config: {azuread: {cloud: AzureGovernment, oauth: {client_id: c, "
        "tenant_id: t, client_secret_file: f}}}}\n"
        "  google: {type: http, http_config: {google_iam: {}}}\n"
        "  file: {type: http, http_config: {google_iam: {credentials_file: f}}}\n"
        "  none: {type: http}\n");
    const struct as_settings *s = &config->settings;
    const struct as_http_settings *http = &s->prometheus.http;
    cr_assert_eq(http->login, AS_LOGIN_OAUTH2);
    cr_assert_str_eq(http->oauth2.client_id, "c");
    assert_path(http->oauth2.client_secret_file, "secret");
    cr_assert_str_eq(http->oauth2.token_url, "http://[::1]:1/token");
    cr_assert_eq(http->oauth2.scope_count, 2);
    cr_assert_str_eq(http->oauth2.scopes[1], "list");
    cr_assert_eq(http->oauth2.endpoint_param_count, 2);
    cr_assert_str_eq(http->oauth2.endpoint_params[0].name, "audience");
    cr_assert_str_eq(http->oauth2.endpoint_params[0].value, "https://a");
    cr_assert_str_eq(http->oauth2.endpoint_params[1].name, "resource");
    assert_path(http->oauth2.tls.ca_file, "ca");
    cr_assert_str_eq(http->oauth2.tls.server_name, "login");
    assert_path(http->tls.ca_file, "other");
    cr_assert_str_eq(http->tls.server_name, "prometheus");
    http = &s->alertmanager.http;
    cr_assert_eq(http->login, AS_LOGIN_SIGV4);
    cr_assert_str_eq(http->sigv4.region, "r");
    cr_assert_str_eq(http->sigv4.profile, "p");
    cr_assert_str_eq(http->sigv4.role_arn, "arn:aws-cn:iam::1:role/a/b");
    cr_assert_str_eq(http->sigv4.external_id, "e");
    http = &as_settings_find_provider(s, "sigv4")->http;
    cr_assert_eq(http->login, AS_LOGIN_SIGV4);
    cr_assert_null(http->sigv4.region);
    cr_assert_null(http->sigv4.profile);
    cr_assert_null(http->sigv4.role_arn);
    cr_assert_null(http->sigv4.external_id);
    http = &as_settings_find_provider(s, "oauth2")->http;
    cr_assert_eq(http->login, AS_LOGIN_OAUTH2);
    cr_assert_eq(http->oauth2.scope_count, 0);
    cr_assert_eq(http->oauth2.endpoint_param_count, 0);
    cr_assert_null(http->oauth2.tls.ca_file);
    cr_assert_not(http->oauth2.tls.insecure_skip_verify);
    http = &as_settings_find_provider(s, "managed")->http;
    cr_assert_eq(http->login, AS_LOGIN_AZUREAD);
    cr_assert_str_eq(http->azuread.cloud, "AzurePublic");
    cr_assert(http->azuread.managed_identity.is_set);
    cr_assert_null(http->azuread.managed_identity.client_id);
    cr_assert_not(http->azuread.workload_identity.is_set);
    cr_assert_not(http->azuread.oauth.is_set);
    http = &as_settings_find_provider(s, "user")->http;
    cr_assert_str_eq(http->azuread.managed_identity.client_id, "c");
    http = &as_settings_find_provider(s, "workload")->http;
    cr_assert_str_eq(http->azuread.cloud, "AzureChina");
    cr_assert(http->azuread.workload_identity.is_set);
    cr_assert_null(http->azuread.workload_identity.client_id);
    cr_assert_null(http->azuread.workload_identity.tenant_id);
    cr_assert_null(http->azuread.workload_identity.token_file_path);
    http = &as_settings_find_provider(s, "pod")->http;
    cr_assert_str_eq(http->azuread.workload_identity.client_id, "c");
    cr_assert_str_eq(http->azuread.workload_identity.tenant_id, "t");
    assert_path(http->azuread.workload_identity.token_file_path, "f");
    http = &as_settings_find_provider(s, "app")->http;
    cr_assert_str_eq(http->azuread.cloud, "AzureGovernment");
    cr_assert(http->azuread.oauth.is_set);
    cr_assert_str_eq(http->azuread.oauth.client_id, "c");
    cr_assert_str_eq(http->azuread.oauth.tenant_id, "t");
    assert_path(http->azuread.oauth.client_secret_file, "f");
    http = &as_settings_find_provider(s, "google")->http;
    cr_assert_eq(http->login, AS_LOGIN_GOOGLE_IAM);
    cr_assert_null(http->google_iam.credentials_file);
    http = &as_settings_find_provider(s, "file")->http;
    assert_path(http->google_iam.credentials_file, "f");
    cr_assert_eq(as_settings_find_provider(s, "none")->http.login, AS_LOGIN_NONE);
}

static const char *field(const struct as_target_config *target, const char *key)
{
    for (size_t i = 0; i < target->address_count; i++) {
        if (strcmp(target->address[i].key, key) == 0)
            return as_template_get_text(target->address[i].value);
    }
    return NULL;
}

/* A target inherits key by key, and what it says itself counts. */
Test(config, targets)
{
    write_file("rules.yaml",
               "targets:\n"
               "  web:\n"
               "    kubernetes: {kind: Deployment, namespace: shop, name: web}\n"
               "    max: 20\n"
               "  any:\n"
               "    kubernetes: {apiVersion: a.b/v1, kind: Foo, namespace: '{{ .Labels.ns }}', "
               "name: x, cluster: default}\n"
               "    min: 0\n"
               "    max: 3\n"
               "    cooldown: {down: 9m}\n"
               "    tolerance: {down: 25%}\n"
               "    enforce_bounds: false\n"
               "    cpu_initialization: 1s\n"
               "    initial_readiness_delay: 2s\n"
               "    dry_run: false\n"
               "    allow: {namespaces: [a, 'b*'], names: [x]}\n"
               "    behavior:\n"
               "      scaleUp: {stabilizationWindowSeconds: 7, selectPolicy: Min, policies: "
               "[{type: Percent, value: 3, periodSeconds: 60}]}\n"
               "    after: [web]\n"
               "  group:\n"
               "    node_group: {name: n, url: 'http://h/g', provider: mine}\n"
               "    max: 2\n");
    assert_loads("rule_files: [rules.yaml]\n"
                 "providers: {mine: {type: http}}\n"
                 "defaults: {min: 2, cooldown: {up: 1m}, tolerance: 5%, enforce_bounds: true, "
                 "cpu_initialization: 1m, initial_readiness_delay: 1m, dry_run: true}\n");
    const struct as_ruleset *set = config->ruleset;
    cr_assert_eq(set->target_count, 3);
    const struct as_target_config *web = set->targets[0], *any = set->targets[1];
    cr_assert_str_eq(web->name, "web");
    cr_assert_eq(web->kind, &as_target_kind_kubernetes);
    static const char *const keys[] = {"cluster", "apiVersion", "kind", "namespace", "name"};
    static const char *const values[] = {"default", "apps/v1", "Deployment", "shop", "web"};
    cr_assert_eq(web->address_count, 5);
    for (size_t i = 0; i < 5; i++) {
        cr_assert_str_eq(web->address[i].key, keys[i]);
        cr_assert_str_eq(as_template_get_text(web->address[i].value), values[i]);
    }
    cr_assert_not(web->is_templated);
    cr_assert_eq(web->bounds.min, 2);
    cr_assert_eq(web->bounds.max, 20);
    cr_assert_eq(web->bounds.cooldown.up_us, AS_US_PER_MIN);
    cr_assert_eq(web->bounds.cooldown.down_us, 5 * AS_US_PER_MIN);
    cr_assert_float_eq(web->bounds.tolerance_up, 0.05, 1e-12);
    cr_assert(web->bounds.enforce_bounds && web->dry_run);
    cr_assert_eq(web->bounds.cpu_initialization_us, AS_US_PER_MIN);
    cr_assert_not(web->bounds.has_behavior);
    cr_assert_eq(web->after_count, 0);

    cr_assert_eq(any->bounds.min, 0);
    cr_assert_eq(any->bounds.cooldown.up_us, AS_US_PER_MIN);
    cr_assert_eq(any->bounds.cooldown.down_us, 9 * AS_US_PER_MIN);
    cr_assert_float_eq(any->bounds.tolerance_up, 0.05, 1e-12);
    cr_assert_float_eq(any->bounds.tolerance_down, 0.25, 1e-12);
    cr_assert(!any->bounds.enforce_bounds && !any->dry_run);
    cr_assert_eq(any->bounds.cpu_initialization_us, AS_US_PER_S);
    cr_assert_eq(any->bounds.initial_readiness_delay_us, 2 * AS_US_PER_S);
    cr_assert(any->is_templated);
    cr_assert_eq(any->allowed[AS_ALLOW_NAMESPACES].count, 2);
    cr_assert_str_eq(any->allowed[AS_ALLOW_NAMESPACES].items[1], "b*");
    cr_assert_eq(any->allowed[AS_ALLOW_NAMES].count, 1);
    cr_assert(any->bounds.has_behavior);
    const struct as_scaling_rules *up = &any->bounds.behavior.up;
    cr_assert_eq(up->window_us, 7 * AS_US_PER_S);
    cr_assert_eq(up->select, AS_SELECT_MIN);
    cr_assert_eq(up->policy_count, 1);
    cr_assert_eq(up->policies[0].type, AS_POLICY_PERCENT);
    cr_assert_eq(up->policies[0].value, 3);
    cr_assert_eq(up->policies[0].period_us, AS_US_PER_MIN);
    const struct as_scaling_rules *down = &any->bounds.behavior.down;
    const struct as_scaling_rules *hpa = &as_behavior_default.down;
    cr_assert_eq(down->window_us, hpa->window_us);
    cr_assert_eq(down->select, hpa->select);
    cr_assert_eq(down->policy_count, hpa->policy_count);
    cr_assert_eq(any->after_count, 1);
    cr_assert_eq(any->after[0], 0);

    const struct as_target_config *group = set->targets[2];
    cr_assert_eq(group->kind, &as_target_kind_node_group);
    cr_assert_str_eq(group->address[0].key, "provider");
    cr_assert_str_eq(field(group, "url"), "http://h/g");
    cr_assert_str_eq(field(group, "name"), "n");
}

Test(config, rules)
{
    write_file("a.yaml",
               "targets:\n"
               "  web: {kubernetes: {kind: Deployment, namespace: s, name: w}, max: 5}\n"
               "  db: {kubernetes: {kind: StatefulSet, namespace: s, name: d}, max: 5}\n");
    write_file("b.yaml",
               "rules:\n"
               "  - name: one\n"
               "    match: ['alertname=\"A\"', 'b=~\"x|y\"']\n"
               "    receivers: [r1, r2]\n"
               "    target: db\n"
               "    scale_up: {by: 12.5%, at_least: 2}\n"
               "    every: 30s\n"
               "    max_steps: 3\n"
               "    dry_run: true\n"
               "  - {name: two, match: ['a=\"b\"'], target: web, scale_down: {by: 3}, once: true,\n"
               "     enabled: false}\n"
               "  - {name: three, match: ['a=\"b\"'], target: web, scale_to: 4}\n"
               "  - {name: four, match: ['a=\"b\"'], target: web, scale_up: {by: 10%}}\n");
    assert_loads("rule_files: ['?.yaml', a.yaml]\n");
    const struct as_ruleset *set = config->ruleset;
    cr_assert_eq(config->rule_file_count, 2, "a file named twice is read once");
    cr_assert_eq(set->rule_count, 4);
    const struct as_rule *one = set->rules[0], *two = set->rules[1], *three = set->rules[2];
    cr_assert_str_eq(one->name, "one");
    cr_assert_eq(one->matcher_count, 2);
    cr_assert_eq(one->matchers[1].op, AS_MATCHER_REGEX);
    cr_assert_eq(one->receiver_count, 2);
    cr_assert_str_eq(one->receivers[1], "r2");
    cr_assert_str_eq(one->target->name, "db");
    cr_assert_eq(one->action.kind, AS_ACTION_SCALE_UP);
    cr_assert(one->action.amount.is_percent);
    cr_assert_eq(one->action.amount.milli_percent, 12500);
    cr_assert_eq(one->action.amount.at_least, 2);
    cr_assert_eq(one->every_us, 30 * AS_US_PER_S);
    cr_assert_eq(one->max_steps, 3);
    cr_assert(one->dry_run && one->enabled);
    cr_assert_str_eq(two->target->name, "web");
    cr_assert_eq(two->action.kind, AS_ACTION_SCALE_DOWN);
    cr_assert_not(two->action.amount.is_percent);
    cr_assert_eq(two->action.amount.size, 3);
    cr_assert_eq(two->max_steps, 1);
    cr_assert_eq(two->every_us, 0);
    cr_assert(!two->dry_run && !two->enabled);
    cr_assert_eq(three->action.kind, AS_ACTION_SCALE_TO);
    cr_assert_eq(three->action.size, 4);
    cr_assert_eq(set->rules[3]->action.amount.at_least, 1);
    cr_assert_eq(three->max_steps, 0);
}

static const struct as_rule *find_rule(const char *name)
{
    for (size_t i = 0; i < config->ruleset->rule_count; i++) {
        if (strcmp(config->ruleset->rules[i]->name, name) == 0)
            return config->ruleset->rules[i];
    }
    cr_assert_fail("no rule %s", name);
    return NULL;
}

static void load_rules(const char *rules)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(16 << 20);
    as_buf_append_str(&text, "targets:\n  web: {kubernetes: {kind: Deployment, namespace: s, "
                             "name: w}, max: 5}\nrules:\n");
    as_buf_append_str(&text, rules);
    cr_assert_eq(as_buf_check(&text), 0);
    write_file("rules.yaml", text.data);
    assert_loads("rule_files: [rules.yaml]\nprometheus: {url: 'http://p:9090'}\n");
}

static void assert_query(const struct as_source *source, const char *text, const char *pod_label)
{
    cr_assert_eq(source->kind, AS_SOURCE_QUERY);
    cr_assert_str_eq(as_template_get_text(source->query), text);
    cr_assert_eq(source->per_pod, pod_label != NULL);
    if (pod_label)
        cr_assert_str_eq(source->pod_label, pod_label);
    else
        cr_assert_null(source->pod_label);
    cr_assert_null(source->name);
}

static void assert_track(const struct as_rule *rule, enum as_goal goal, double value)
{
    cr_assert_eq(rule->action.kind, AS_ACTION_TRACK);
    cr_assert_eq(rule->action.track.goal, goal);
    cr_assert_float_eq(rule->action.track.value, value, 1e-9);
    cr_assert_eq(rule->action.track.is_resource, goal == AS_GOAL_UTILIZATION);
}

/* The unit of a target in a later file, and after the sizes. */
Test(config, sizes_in_units)
{
    write_file("a.yaml",
               "rules:\n"
               "  - {name: to, match: [a=b], target: m, scale_to: 320Mi}\n"
               "  - {name: by, match: [a=b], target: m, scale_up: {by: 128Mi}}\n"
               "  - {name: percent, match: [a=b], target: m,\n"
               "     scale_up: {by: 50%, at_least: 192Mi}, on_resolved: {scale_to: 2}}\n");
    write_file("b.yaml", "targets:\n"
                         "  m:\n"
                         "    min: 256Mi\n"
                         "    max: 1Gi\n"
                         "    schedules: [{name: d, timezone: UTC, from: '01:00', to: '02:00',\n"
                         "                 min: 384Mi}]\n"
                         "    kubernetes: {kind: Deployment, namespace: s, name: w, container: c,\n"
                         "                 resource: memory, unit: 64Mi}\n");
    assert_loads("rule_files: [a.yaml, b.yaml]\nreceiver: {watchdog: {match: [a=w]}}\n");
    const struct as_target_config *target = config->ruleset->targets[0];
    cr_assert_eq(target->bounds.min, 4);
    cr_assert_eq(target->bounds.max, 16);
    cr_assert_eq(target->schedules[0].min, 6);
    cr_assert_eq(find_rule("to")->action.size, 5);
    cr_assert_eq(find_rule("by")->action.amount.size, 2);
    cr_assert_eq(find_rule("percent")->action.amount.at_least, 3);
    cr_assert_eq(find_rule("percent")->on_resolved.action.size, 2);
}

/* What `track` and its source say, and that it is looked at every 15 s unless the rule says so. */
Test(config, track)
{
    load_rules(
        "  - {name: a, match: ['a=\"b\"'], target: web, track: {value: 0.5, annotation: load}}\n"
        "  - name: b\n"
        "    match: [a=b]\n"
        "    target: web\n"
        "    every: 1m\n"
        "    track:\n"
        "      average_value: 100\n"
        "      query: |\n"
        "        sum(x{ns=\"{{ .Labels.ns }}\"})\n"
        "  - {name: c, match: ['a=\"b\"'], target: web, track: {average_value: 2, query: x,\n"
        "     per_pod: true, pod_label: pod_name}}\n"
        "  - {name: d, match: ['a=\"b\"'], target: web, track: {utilization: 62.5%, of: "
        "cpu_limits,\n"
        "     query: x, per_pod: true}}\n"
        "  - {name: e, match: ['a=\"b\"'], target: web, track: {utilization: 80%,\n"
        "     of: memory_requests, query: x, per_pod: true}}\n"
        "  - {name: f, match: ['a=\"b\"'], target: web, track: {average_value: 0.5, resource: "
        "memory,\n"
        "     query: x, per_pod: true}}\n"
        "  - {name: g, match: ['a=\"b\"'], target: web, track: {utilization: 50%, of: cpu_limits,\n"
        "     container: app, query: x, per_pod: true}}\n"
        "  - {name: h, match: ['a=\"b\"'], target: web, track: {value: 3, pods: owned, query: x}}\n"
        "  - {name: i, match: ['a=\"b\"'], target: web, track: {value: 3, pods: labels, query: "
        "x}}\n");
    const struct as_rule *a = find_rule("a"), *b = find_rule("b"), *c = find_rule("c");
    const struct as_rule *d = find_rule("d"), *e = find_rule("e"), *f = find_rule("f");
    assert_track(a, AS_GOAL_VALUE, 0.5);
    cr_assert_eq(a->source.kind, AS_SOURCE_ANNOTATION);
    cr_assert_str_eq(a->source.name, "load");
    cr_assert_eq(a->every_us, 15 * AS_US_PER_S);
    assert_track(b, AS_GOAL_AVERAGE_VALUE, 100);
    assert_query(&b->source, "sum(x{ns=\"{{ .Labels.ns }}\"})\n", NULL);
    cr_assert_eq(b->every_us, AS_US_PER_MIN);
    assert_track(c, AS_GOAL_AVERAGE_VALUE, 2);
    assert_query(&c->source, "x", "pod_name");
    assert_track(d, AS_GOAL_UTILIZATION, 62.5);
    assert_query(&d->source, "x", "pod");
    cr_assert(d->action.track.of_limits && d->action.track.resource == AS_RESOURCE_CPU);
    assert_track(e, AS_GOAL_UTILIZATION, 80);
    cr_assert(!e->action.track.of_limits && e->action.track.resource == AS_RESOURCE_MEMORY);
    cr_assert_eq(f->action.track.goal, AS_GOAL_AVERAGE_VALUE);
    cr_assert(f->action.track.is_resource && f->action.track.resource == AS_RESOURCE_MEMORY);
    cr_assert_null(d->action.track.container);
    cr_assert_str_eq(find_rule("g")->action.track.container, "app");
    cr_assert(find_rule("h")->action.track.by_owner);
    cr_assert(!find_rule("g")->action.track.by_owner && !find_rule("i")->action.track.by_owner);
}

static void assert_step(const struct as_step *step, bool is_above, double bound, int64_t size,
                        int64_t milli_percent)
{
    cr_assert_eq(step->is_above, is_above);
    cr_assert_float_eq(step->bound, bound, 1e-9);
    cr_assert_eq(step->amount.is_percent, milli_percent > 0);
    cr_assert_eq(milli_percent > 0 ? step->amount.milli_percent : step->amount.size,
                 milli_percent > 0 ? milli_percent : size);
}

/* Step tables belong to the rule; those that ask Prometheus are looked at again as `track` is. */
Test(config, sources_and_steps)
{
    load_rules(
        "  - {name: a, match: ['a=\"b\"'], target: web, pass_through: {label: size}}\n"
        "  - {name: b, match: ['a=\"b\"'], target: web, pass_through: {query: x}}\n"
        "  - name: c\n"
        "    match: [a=b]\n"
        "    target: web\n"
        "    scale_up:\n"
        "      value: {query: x}\n"
        "      steps: [{above: -1.5, by: 1}, {above: 2, by: 50%, at_least: 3}]\n"
        "  - {name: d, match: ['a=\"b\"'], target: web, scale_down: {value: {annotation: v},\n"
        "     steps: [{below: 7, by: 2}]}}\n"
        "  - {name: e, match: ['a=\"b\"'], target: web, scale_up: {by: 1}}\n");
    const struct as_rule *a = find_rule("a"), *b = find_rule("b"), *c = find_rule("c");
    const struct as_rule *d = find_rule("d"), *e = find_rule("e");
    cr_assert_eq(a->action.kind, AS_ACTION_PASS_THROUGH);
    cr_assert_eq(a->source.kind, AS_SOURCE_LABEL);
    cr_assert_str_eq(a->source.name, "size");
    cr_assert_eq(a->every_us, 0);
    assert_query(&b->source, "x", NULL);
    cr_assert_eq(b->every_us, 15 * AS_US_PER_S);
    cr_assert_eq(c->action.kind, AS_ACTION_SCALE_UP);
    cr_assert_eq(c->action.step_count, 2);
    cr_assert_eq(c->action.steps, c->steps);
    assert_step(&c->steps[0], true, -1.5, 1, 0);
    assert_step(&c->steps[1], true, 2, 0, 50000);
    cr_assert_eq(c->steps[0].amount.at_least, 1);
    cr_assert_eq(c->steps[1].amount.at_least, 3);
    assert_query(&c->source, "x", NULL);
    cr_assert_eq(c->every_us, 15 * AS_US_PER_S);
    cr_assert_eq(d->action.kind, AS_ACTION_SCALE_DOWN);
    assert_step(&d->steps[0], false, 7, 2, 0);
    cr_assert_eq(d->every_us, 0);
    cr_assert_eq(e->source.kind, AS_SOURCE_NONE);
    cr_assert(!e->action.steps && e->action.step_count == 0);
}

Test(config, steps_to_a_value_and_tables_of_sizes)
{
    load_rules(
        "  - name: a\n"
        "    match: [a=b]\n"
        "    target: web\n"
        "    scale_up: {value: {query: x}, steps: [{above: 80, to: 70.5}, {above: 90, by: 2}]}\n"
        "  - {name: b, match: ['a=\"b\"'], target: web, scale_down: {value: {label: v},\n"
        "     steps: [{below: 40, to: 40}]}}\n"
        "  - {name: c, match: ['a=\"b\"'], target: web, scale_to: {value: {query: x},\n"
        "     steps: [{from: -1, size: 0}, {from: 64.5, size: 3}]}}\n"
        "  - {name: d, match: ['a=\"b\"'], target: web, scale_up: {by: 1}}\n");
    const struct as_rule *a = find_rule("a"), *b = find_rule("b"), *c = find_rule("c");
    cr_assert(a->steps[0].is_above && a->steps[0].bound == 80 && a->steps[0].to == 70.5);
    cr_assert_eq(a->steps[1].to, 0);
    cr_assert(as_action_has_goal(&a->action) && as_action_has_goal(&b->action));
    cr_assert(!b->steps[0].is_above && b->steps[0].bound == 40 && b->steps[0].to == 40);
    cr_assert(c->action.kind == AS_ACTION_SCALE_TO && c->action.steps == c->steps);
    cr_assert_eq(c->action.step_count, 2);
    assert_step(&c->steps[0], false, -1, 0, 0);
    assert_step(&c->steps[1], false, 64.5, 3, 0);
    assert_query(&c->source, "x", NULL);
    cr_assert_eq(c->every_us, 15 * AS_US_PER_S);
    cr_assert(!as_action_has_goal(&c->action) && !as_action_has_goal(&find_rule("d")->action));
}

Test(config, one_way_to_a_size)
{
    load_rules("  - {name: a, match: ['a=\"b\"'], target: web, scale_up: {to: 8}}\n"
               "  - {name: b, match: ['a=\"b\"'], target: web, scale_down: {to: 0}, guard: none}\n"
               "  - {name: c, match: ['a=\"b\"'], target: web, scale_down: {by: 1}}\n");
    const struct as_action *a = &find_rule("a")->action, *b = &find_rule("b")->action;
    cr_assert(a->kind == AS_ACTION_SCALE_UP && a->is_to && a->size == 8);
    cr_assert(b->kind == AS_ACTION_SCALE_DOWN && b->is_to && b->size == 0);
    cr_assert(!find_rule("c")->action.is_to);
}

Test(config, endings_and_guards)
{
    load_rules(
        "  - {name: a, match: ['a=\"b\"'], target: web, scale_up: {by: 1}, guard: none,\n"
        "     on_resolved: give_back}\n"
        "  - {name: b, match: ['a=\"b\"'], target: web, scale_up: {by: 1}, guard: {query: up},\n"
        "     on_resolved: {give_back: {after: 10m, step: 25%}}}\n"
        "  - {name: c, match: ['a=\"b\"'], target: web, scale_up: {by: 1}, guard: none,\n"
        "     on_resolved: {scale_down: {by: 50%, at_least: 2}}}\n"
        "  - {name: d, match: ['a=\"b\"'], target: web, scale_up: {by: 1}, guard: none,\n"
        "     on_resolved: {scale_down: {by: 3}}}\n"
        "  - {name: e, match: ['a=\"b\"'], target: web, scale_to: 5, guard: none,\n"
        "     on_resolved: {scale_to: 2}}\n"
        "  - {name: f, match: ['a=\"b\"'], target: web, scale_down: {by: 1}}\n");
    const struct as_rule *a = find_rule("a"), *b = find_rule("b"), *f = find_rule("f");
    const struct as_action *c = &find_rule("c")->on_resolved.action;
    const struct as_action *d = &find_rule("d")->on_resolved.action;
    const struct as_rule *e = find_rule("e");
    cr_assert_eq(a->on_resolved.kind, AS_ENDING_GIVE_BACK);
    cr_assert_eq(a->on_resolved.after_us, 0);
    cr_assert_eq(a->on_resolved.step_milli_percent, 100000);
    cr_assert(a->guard_kind == AS_GUARD_WAIVED && !a->guard);
    cr_assert_eq(b->on_resolved.kind, AS_ENDING_GIVE_BACK);
    cr_assert_eq(b->on_resolved.after_us, 10 * AS_US_PER_MIN);
    cr_assert_eq(b->on_resolved.step_milli_percent, 25000);
    cr_assert_eq(b->guard_kind, AS_GUARD_QUERY);
    cr_assert_str_eq(as_template_get_text(b->guard), "up");
    cr_assert_eq(b->source.kind, AS_SOURCE_NONE);
    cr_assert_eq(b->every_us, 0);
    cr_assert_eq(find_rule("c")->on_resolved.kind, AS_ENDING_SCALE);
    cr_assert(c->kind == AS_ACTION_SCALE_DOWN && c->amount.is_percent);
    cr_assert(c->amount.milli_percent == 50000 && c->amount.at_least == 2);
    cr_assert(d->kind == AS_ACTION_SCALE_DOWN && !d->amount.is_percent && d->amount.size == 3);
    cr_assert_eq(e->on_resolved.kind, AS_ENDING_SCALE);
    cr_assert_eq(e->on_resolved.action.kind, AS_ACTION_SCALE_TO);
    cr_assert_eq(e->on_resolved.action.size, 2);
    cr_assert_eq(e->action.size, 5);
    cr_assert(f->on_resolved.kind == AS_ENDING_NOTHING && f->guard_kind == AS_GUARD_ABSENT);
}

static void assert_error(const char *text, const char *message, uint32_t line, uint32_t column)
{
    write_file("rules.yaml", text);
    cr_assert_eq(load("rule_files: [rules.yaml]\nprometheus: {url: 'http://p:9090'}\n"),
                 AS_CONFIG_INVALID);
    const struct as_diagnostic *first = &diagnostics.items[0];
    cr_assert_eq(diagnostics.count, 1, "%s", first->message);
    cr_assert(strstr(first->message, message), "%s", first->message);
    cr_assert_eq(first->line, line, "%s at %u:%u", text, first->line, first->column);
    cr_assert_eq(first->column, column, "%s at %u:%u", text, first->line, first->column);
}

/* Groups of one name in two places are two targets. */
Test(config, the_id_of_a_group_says_where_it_is)
{
    static const char *const ids[] = {"node_group/cloud/pool", "node_group/cloud/prod/pool",
                                      "node_group/cloud/test/pool"};
    write_file("rules.yaml",
               "targets:\n"
               "  a: {node_group: {provider: cloud, name: pool}, max: 2}\n"
               "  b: {node_group: {name: pool, cluster: prod, provider: cloud}, max: 2}\n"
               "  c: {node_group: {provider: cloud, cluster: test, name: pool}, max: 2}\n");
    assert_loads("rule_files: [rules.yaml]\nproviders: {cloud: {type: aws}}\n");
    for (size_t i = 0; i < AS_ARRAY_SIZE(ids); i++) {
        const struct as_target_config *target = config->ruleset->targets[i];
        struct as_target_ref *ref;
        cr_assert_eq(as_target_ref_new(target, NULL, NULL, &ref, NULL), 0);
        cr_expect_str_eq(ref->id, ids[i]);
        cr_expect(as_target_may_have_id(target, ids[i]));
        cr_expect_not(as_target_may_have_id(target, ids[(i + 1) % AS_ARRAY_SIZE(ids)]));
        as_target_ref_free(ref);
    }
}

/* Targets of one family may be one node group. */
Test(config, families_of_targets)
{
    static const char *const families[] = {"aws", "gce", "gce", NULL, "clusterapi", NULL, NULL};
    write_file("rules.yaml",
               "targets:\n"
               "  a: {node_group: {provider: aws, name: a}, max: 2}\n"
               "  b: {node_group: {provider: gce, name: b, zone: z}, max: 2}\n"
               "  c: {node_group: {provider: gke, name: c, cluster: p, location: l}, max: 2}\n"
               "  d: {node_group: {provider: http, url: 'http://pool/d'}, max: 2}\n"
               "  e: {kubernetes: {apiVersion: cluster.x-k8s.io/v1beta1, kind: MachineDeployment,\n"
               "      namespace: s, name: e}, max: 2}\n"
               "  f: {kubernetes: {apiVersion: cluster.x-k8s.io/v1beta1, kind: MachineDeployment,\n"
               "      namespace: s, name: e, field: spec.minReadySeconds}, max: 2}\n"
               "  g: {kubernetes: {kind: Deployment, namespace: s, name: g}, max: 2}\n");
    assert_loads("rule_files: [rules.yaml]\n"
                 "providers: {aws: {type: aws}, gce: {type: gce}, gke: {type: gke},\n"
                 "  http: {type: http}}\n");
    for (size_t i = 0; i < AS_ARRAY_SIZE(families); i++)
        cr_expect(as_str_equal(config->ruleset->targets[i]->family, families[i]), "%zu", i);
}

/* How instances are nodes, and which of them leave. */
Test(config, nodes_of_a_group)
{
    static const char settings[] = "rule_files: [rules.yaml]\n"
                                   "clusters: {edge: {context: e}}\n"
                                   "providers: {cloud: {type: aws}}\n";
    write_file(
        "rules.yaml",
        "targets:\n"
        "  plain: {node_group: {provider: cloud, name: a}, max: 2}\n"
        "  machines: {node_group: {provider: cloud, name: b}, max: 2, nodes: {cluster: none, "
        "choose: newest}}\n"
        "  workers:\n"
        "    node_group: {provider: cloud, name: c}\n"
        "    max: 2\n"
        "    nodes: {cluster: edge, choose: least_utilized, drain: false, drain_timeout: 3m, "
        "grace_period: 0s, ready_timeout: 7m}\n"
        "  web: {kubernetes: {kind: Deployment, namespace: s, name: w}, max: 2}\n");
    assert_loads(settings);
    struct as_target_config *const *targets = config->ruleset->targets;
    const struct as_nodes_config *plain = &targets[0]->nodes, *machines = &targets[1]->nodes,
                                 *workers = &targets[2]->nodes;
    cr_expect_str_eq(plain->cluster, "default");
    cr_expect_eq(plain->choose, AS_CHOOSE_EMPTY_FIRST);
    cr_expect(plain->drain);
    cr_expect_eq(plain->drain_timeout_us, 10 * AS_US_PER_MIN);
    cr_expect_eq(plain->grace_us, -1);
    cr_expect_eq(plain->ready_timeout_us, 15 * AS_US_PER_MIN);
    cr_expect_null(machines->cluster);
    cr_expect_eq(machines->choose, AS_CHOOSE_NEWEST);
    cr_expect_not(machines->drain);
    cr_expect_str_eq(workers->cluster, "edge");
    cr_expect_eq(workers->choose, AS_CHOOSE_LEAST_UTILIZED);
    cr_expect_not(workers->drain);
    cr_expect_eq(workers->drain_timeout_us, 3 * AS_US_PER_MIN);
    cr_expect_eq(workers->grace_us, 0);
    cr_expect_eq(workers->ready_timeout_us, 7 * AS_US_PER_MIN);
    cr_expect_null(targets[3]->nodes.cluster, "no node group");
    cr_expect_null(plain->template_);
    cr_expect_eq(plain->startup_taint_count, 0);
    cr_expect_eq(plain->pending, AS_NODES_PENDING_SELECTING);
}

/* What a new node is like, and what counts while it starts; also in a copy of it. */
Test(config, nodes_template_of_a_group)
{
    static const int64_t amounts[AS_RES_NAMED] = {
        [AS_RES_CPU] = 7901, [AS_RES_MEMORY] = 32212254720, [AS_RES_PODS] = 110};
    write_file(
        "rules.yaml",
        "targets:\n"
        "  spot:\n"
        "    node_group: {provider: cloud, name: c}\n"
        "    max: 2\n"
        "    nodes:\n"
        "      template: {cpu: 7.9019, memory: 30Gi, nvidia.com/gpu: 2, hugepages-2Mi: 4Mi,\n"
        "        labels: {life: spot, a: ''}, taints: [{key: b, effect: NoExecute}, {key: a,\n"
        "        value: v, effect: PreferNoSchedule}, {key: c, effect: NoSchedule}]}\n"
        "      startup_taints: [x, y/z]\n"
        "      pending: any\n"
        "  cores: {node_group: {provider: cloud, name: d}, max: 2, nodes: {template: {cpu: "
        "1.001, memory: 1.5Mi, ephemeral-storage: 1k, pods: 7}}}\n");
    assert_loads("rule_files: [rules.yaml]\nproviders: {cloud: {type: aws}}\n");
    struct as_nodes_config copy;
    as_nodes_config_copy(&config->ruleset->targets[0]->nodes, &copy);
    const struct as_node_template_config *template = copy.template_;
    cr_assert_not_null(template);
    cr_expect_neq(template, config->ruleset->targets[0]->nodes.template_);
    cr_expect_arr_eq(template->amount, amounts, sizeof(amounts));
    cr_assert_eq(template->named_count, 2);
    cr_expect_str_eq(template->named[0].name, "nvidia.com/gpu");
    cr_expect_eq(template->named[0].amount, 2);
    cr_expect_str_eq(template->named[1].name, "hugepages-2Mi");
    cr_expect_eq(template->named[1].amount, 4 << 20);
    cr_expect_eq(template->labels->count, 2);
    cr_expect_str_eq(as_labels_get(template->labels, "life"), "spot");
    cr_expect_str_eq(as_labels_find(template->labels, "a"), "");
    cr_assert_eq(template->taint_count, 3);
    cr_expect_str_eq(template->taints[0].value, "");
    cr_expect_eq(template->taints[0].effect, AS_TAINT_NO_EXECUTE);
    cr_expect_str_eq(template->taints[1].key, "a");
    cr_expect_str_eq(template->taints[1].value, "v");
    cr_expect_eq(template->taints[1].effect, AS_TAINT_PREFER_NO_SCHEDULE);
    cr_expect_eq(template->taints[2].effect, AS_TAINT_NO_SCHEDULE);
    cr_assert_eq(copy.startup_taint_count, 2);
    cr_expect_str_eq(copy.startup_taints[1], "y/z");
    cr_expect_eq(copy.pending, AS_NODES_PENDING_ANY);
    as_nodes_config_deinit(&copy);
    cr_expect_null(copy.template_);

    template = config->ruleset->targets[1]->nodes.template_;
    cr_expect_eq(template->amount[AS_RES_CPU], 1001);
    cr_expect_eq(template->amount[AS_RES_MEMORY], 1572864);
    cr_expect_eq(template->amount[AS_RES_EPHEMERAL], 1000);
    cr_expect_eq(template->amount[AS_RES_PODS], 7);
    cr_expect_eq(template->labels->count, 0);
}

Test(config, nodes_of_a_group_are_checked)
{
    static const struct {
        const char *target, *message;
        uint32_t column;
    } rows[] = {
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {choose: oldset}", "oldset", 65},
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {cluster: egde}",
         "there is no cluster `egde`", 66},
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {cluster: '{{ .Labels.c }}'}",
         "cannot come from a template", 66},
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {cluster: none, drain: true}",
         "there is nothing to drain", 79},
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {drain_timeout: 0s}", "1s", 72},
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {drian: true}", "drian", 57},
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {template: {memory: 1Gi}}",
         "key `cpu` is missing", 67},
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {cluster: none, pending: any}",
         "`pending` is for nodes, but with `cluster: none`", 72},
        {"node_group: {provider: cloud, name: a}, max: 2, nodes: {startup_taints: ['a b']}",
         "expected a Kubernetes key", 74},
        {"kubernetes: {kind: Deployment, namespace: s, name: w}, max: 2, nodes: {drain: true}",
         "for node groups only", 64},
        {"node_group: {provider: mine, url: 'http://h/g'}, max: 2, nodes: {drain: true}",
         "knows no instances", 58},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *text = as_xasprintf("targets:\n  x:\n    %s\n", "");
        AS_CLEANUP(as_free_p)
        char *rules = as_xasprintf("targets: {x: {\n%s}}\n", rows[i].target);
        write_file("rules.yaml", rules);
        cr_assert_eq(load("rule_files: [rules.yaml]\n"
                          "clusters: {edge: {context: e}}\n"
                          "providers: {cloud: {type: aws}, mine: {type: http}}\n"),
                     AS_CONFIG_INVALID, "row %zu", i);
        const struct as_diagnostic *first = &diagnostics.items[0];
        cr_expect_eq(diagnostics.count, 1, "row %zu: %s", i, diagnostics.items[1].message);
        cr_expect(strstr(first->message, rows[i].message), "row %zu: %s", i, first->message);
        cr_expect_eq(first->line, 2, "row %zu", i);
        cr_expect_eq(first->column, rows[i].column, "row %zu: %u", i, first->column);
    }
}

#define HEAD                                                                                       \
    "targets: {web: {kubernetes: {kind: Deployment, namespace: s, name: w}, max: 5}}\n"            \
    "rules:\n- name: a\n  match: [a=b]\n  target: web\n  pass_through:\n    query: "

/* An error inside of a text is shown at its very place, as far as the file says it as it is. */
Test(config, places_inside_texts)
{
    static const char escape[] = "cannot be a part of an escape";
    static const char outside[] = "a template stands inside a string";
    assert_error(HEAD "'x + {{ .Labels.a }}'\n", outside, 7, 17);
    assert_error(HEAD "x + '{{ .Labels.a }}' + {{ .Labels.b }}\n", outside, 7, 36);
    assert_error(HEAD "|\n      sum(\n        \xC3\xA4{{ .Labels.a }}\n      )\n", outside, 9, 10);
    assert_error(HEAD "|\r\n      sum(\r\n\r\n       {{ .Labels.a }}\r\n      )\r\n", outside, 10,
                 8);
    assert_error(HEAD "|2-\n      x\n        {{ .Labels.a }}", outside, 9, 9);
    assert_error(HEAD "|\n      x{a=\"{{ .Labels.a\n         }}\\{{ .Labels.a }}\"}\n", escape, 9,
                 13);
    /* Folded, or with an escape: only the text as a whole. */
    assert_error(HEAD ">\n      x\n      + {{ .Labels.a }}\n", "offset 4: a template", 7, 12);
    assert_error(HEAD "\"x\\t{{ .Labels.a }}\"\n", "offset 2: a template", 7, 12);
    assert_error(HEAD "x\n     + {{ .Labels.a }}\n", "offset 4: a template", 7, 12);
}

/* A query may be as long as one that is sent, and no longer. */
Test(config, long_query)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(1 << 20);
    as_buf_append_str(&text,
                      "  - {name: a, match: ['a=\"b\"'], target: web, pass_through: {query: ");
    for (int i = 0; i < AS_QUERY_MAX; i++)
        as_buf_append_char(&text, 'x');
    as_buf_append_str(&text, "}}\n");
    cr_assert_eq(as_buf_check(&text), 0);
    load_rules(text.data);
    as_buf_clear(&text);
    as_buf_append_str(&text, HEAD);
    for (int i = 0; i <= AS_QUERY_MAX; i++)
        as_buf_append_char(&text, 'x');
    cr_assert_eq(as_buf_check(&text), 0);
    assert_error(text.data, "a query has at most 16384 bytes", 7, 12);
}

/* The digest of the rules covers the files in order of their names. */
Test(config, digest)
{
    write_file("b.yaml", "rules: []\n");
    write_file("a.yaml", "targets: {}\n");
    assert_loads("rule_files: [b.yaml, a.yaml]\n");
    /* printf 'targets: {}\nrules: []\n' | sha256sum */
    cr_assert_str_eq(config->ruleset->digest,
                     "bd4c7eec07feea16038f09ac70546bdd6e3403cc0a70b6575b9254b46e76358a");
}

/* What a person approves is a rule with its `above` and `for`, wherever these stand. */
Test(config, digest_of_what_is_approved)
{
    write_file("rules.yaml",
               "targets:\n"
               "  web: {kubernetes: {kind: Deployment, namespace: shop, name: web}, max: 20}\n"
               "rules:\n"
               "  - {name: up, match: ['a=\"b\"'], target: web, scale_up: {by: 1}}\n");
    static const struct {
        int above, for_min;
        bool is_same;
    } cases[] = {{5, 15, true}, {6, 15, false}, {5, 16, false}};
    struct as_digest first = {0};
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "rule_files: [rules.yaml]\ndefaults: {approval: {above: %d, for: %dm}}\n",
                 cases[i].above, cases[i].for_min);
        assert_loads(text);
        const struct as_rule *rule = config->ruleset->rules[0];
        cr_assert(rule->approval.is_set);
        first = i == 0 ? rule->digest : first;
        cr_assert_eq(as_digest_compare(&rule->digest, &first) == 0, cases[i].is_same, "case %zu",
                     i);
    }
}

/* The digest of the entry `web`, or `pool`. */
static struct as_digest load_entry(const char *settings, const char *rules, size_t number)
{
    char text[512];
    write_file("rules.yaml", rules);
    snprintf(text, sizeof(text), "rule_files: [rules.yaml]\n%s", settings);
    assert_loads(text);
    return config->ruleset->targets[number]->digest;
}

#define PROVIDER "providers: {mine: {type: http}}\n"
#define GROUP(url, max)                                                                            \
    "{node_group: {provider: mine, url: 'http://127.0.0.1/" url "'}, max: " max "}"
#define ENTRY(url, max, other)                                                                     \
    "targets:\n  web: " GROUP(url, max) "\n  other: " GROUP("other", other) "\n"

Test(config, digest_of_what_an_observation_depends_on)
{
    static const struct {
        const char *settings, *rules;
        bool is_same;
    } rows[] = {
        {PROVIDER, "# a comment\n" ENTRY("web", "5", "5"), true},
        {PROVIDER, ENTRY("web", "5", "6"), true},
        {PROVIDER,
         ENTRY("web", "5",
               "5") "rules: [{name: r, match: ['a=\"b\"'], target: web, scale_to: 2}]\n",
         true},
        {PROVIDER "dry_run: true\n", ENTRY("web", "5", "5"), true},
        {PROVIDER, ENTRY("web", "6", "5"), false},
        {PROVIDER, ENTRY("beb", "5", "5"), false},
        {"providers: {mine: {type: http, timeout: 3s}}\n", ENTRY("web", "5", "5"), false},
        {PROVIDER "clusters: {other: {}}\n", ENTRY("web", "5", "5"), false},
        {PROVIDER "prometheus: {url: 'http://127.0.0.1:9090'}\n", ENTRY("web", "5", "5"), false},
    };
    const struct as_digest digest = load_entry(PROVIDER, ENTRY("web", "5", "5"), 0);
    static const struct as_digest unknown;
    cr_assert_neq(as_digest_compare(&digest, &unknown), 0);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_digest now = load_entry(rows[i].settings, rows[i].rules, 0);
        cr_expect_eq(as_digest_compare(&now, &digest) == 0, rows[i].is_same, "row %zu", i);
    }
}

Test(config, unreadable)
{
    config = NULL;
    cr_assert_eq(as_config_load("/nowhere/a.yaml", &config, &diagnostics), -ENOENT);
    cr_assert_eq(as_config_load("/", &config, &diagnostics), -EISDIR);
    cr_assert_eq(diagnostics.count, 2);
    cr_assert_null(config);
    const char *const rules[] = {"/nowhere/a.yaml"};
    cr_assert_eq(as_config_load_rules(rules, 1, &config, &diagnostics), AS_CONFIG_INVALID);
    cr_assert_null(config);
}

/* What cannot be used leaves nothing behind, and what a configuration does not match is only
 * told. */
Test(config, outcomes)
{
    cr_assert_eq(load("rule_files: ['*.rules']\n"), AS_CONFIG_INVALID);
    cr_assert_null(config);
    cr_assert_eq(load("rule_files: []\n"), AS_CONFIG_OK);
    cr_assert_eq(load("rule_files: ['*.rules']\nallow_empty_rules: true\n"), AS_CONFIG_OK);
    cr_assert_eq(diagnostics.count, 1);
    cr_assert_eq(diagnostics.items[0].severity, AS_SEVERITY_WARNING);
    cr_assert_eq(load("rule_files: [none.yaml]\n"), AS_CONFIG_INVALID);
    cr_assert_null(config);
    cr_assert_eq(load("a: [\n"), AS_CONFIG_INVALID);
    cr_assert_null(config);
}

Test(config, kinds)
{
    char path[256];
    path_of("a.yaml", path);
    write_file("a.yaml", "rules: []\n");
    cr_assert_eq(as_config_find_kind(path), AS_CONFIG_RULES);
    write_file("a.yaml", "targets: {}\n");
    cr_assert_eq(as_config_find_kind(path), AS_CONFIG_RULES);
    write_file("a.yaml", "rule_files: []\n");
    cr_assert_eq(as_config_find_kind(path), AS_CONFIG_SETTINGS);
    cr_assert_eq(as_config_find_kind("/nowhere"), AS_CONFIG_SETTINGS);
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_to_refuse(const char *rules)
{
    write_file("rules.yaml", rules);
    const double start = processor_seconds();
    cr_assert_eq(load("rule_files: [rules.yaml]\n"), AS_CONFIG_INVALID);
    as_diagnostics_sort(&diagnostics);
    return processor_seconds() - start;
}

/* Four times as much takes four times as long, not sixteen times; a small one is not measured
 * alone, as what is done once would count too much. */
#define IN_PROPORTION (4 * 2)

static double refuse_wrong_names(int count)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(16 << 20);
    as_buf_append_str(&text, "targets:\n");
    for (int i = 0; i < count; i++)
        as_buf_printf(&text,
                      "  target-number-%d: {kubernetes: {kind: Deployment, namespace: s, name: "
                      "n%d}, max: 5}\n",
                      i, i);
    as_buf_append_str(&text, "rules:\n");
    for (int i = 0; i < count; i++)
        as_buf_printf(
            &text, "  - {name: r%d, match: [a=b], target: targt-number-%d, scale_to: 1}\n", i, i);
    cr_assert_eq(as_buf_check(&text), 0);
    return seconds_to_refuse(text.data);
}

/* A file with 10,000 errors and as many targets to confuse: a thousand are told, at once. */
Test(config, many_errors)
{
    const double few = refuse_wrong_names(2500);
    cr_assert_lt(refuse_wrong_names(10000), IN_PROPORTION * few);
    cr_assert_eq(diagnostics.count, AS_DIAGNOSTICS_MAX);
    cr_assert_eq(diagnostics.more, 10000 - AS_DIAGNOSTICS_MAX);
    cr_assert_not_null(strstr(diagnostics.items[0].message, "did you mean `target-number-0`?"));
}

/* Lists and maps have an end, whatever the file's size. */
Test(config, many_elements)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(16 << 20);
    as_buf_append_str(&text, "providers: {");
    for (int i = 0; i < 1001; i++)
        as_buf_printf(&text, "p%d: {type: http}, ", i);
    as_buf_append_str(&text, "}\n");
    cr_assert_eq(load(text.data), AS_CONFIG_INVALID);
    cr_assert_str_eq(diagnostics.items[0].message, "at most 1000 are possible here");
    as_buf_clear(&text);
    as_buf_append_str(&text, "rules: [");
    for (int i = 0; i < AS_RULES_MAX; i++)
        as_buf_append_str(&text, "{}, ");
    as_buf_append_str(&text, "a]\n");
    write_file("rules.yaml", text.data);
    cr_assert_eq(load("rule_files: [rules.yaml]\n"), AS_CONFIG_INVALID);
    cr_assert_eq(diagnostics.count, 1);
}

static double refuse_circles(int count)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(16 << 20);
    as_buf_append_str(&text, "targets:\n");
    for (int i = 0; i < count; i++)
        as_buf_printf(&text,
                      "  t%d: {kubernetes: {kind: Deployment, namespace: s, name: n%d}, max: 5, "
                      "after: [%st%d]}\n",
                      i, i, i == 7 ? "t3, " : "", (i + 1) % count);
    cr_assert_eq(as_buf_check(&text), 0);
    return seconds_to_refuse(text.data);
}

/* Long chains and large circles of `after` end. */
Test(config, long_order)
{
    const double few = refuse_circles(5000);
    cr_assert_lt(refuse_circles(20000), IN_PROPORTION * few);
    cr_assert_eq(diagnostics.count, 1);
    cr_assert_not_null(strstr(diagnostics.items[0].message, "circle: `t"));
}
