/*
 * Checks of the servers that a configuration names: whether the address of Prometheus is the
 * address for queries, and whether each login fits its address. A managed service says neither in
 * its answer.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/doc/schema.h>

#include "lint_run.h"

/* --- the path --- */

/* Paths that people copy from other settings, and the end of the address for queries. */
static const struct {
    const char *end, *instead;
} wrong_ends[] = {
    {"/api/v1/query", ""},           {"/api/v1/query_range", ""},  {"/api/v1", ""},
    {"/api/v1/write", ""},           {"/api/v1/remote_write", ""}, /* Amazon */
    {"/api/v1/push", "/prometheus"},                               /* Mimir, Cortex */
    {"/api/prom/push", "/api/prom"},                               /* Grafana Cloud */
};

static void check_url_path(struct lint_run *run, const struct as_yaml_node *url)
{
    static const char written[] = "/insert/", read[] = "/select/"; /* VictoriaMetrics' cluster */
    size_t size = strlen(url->text);
    if (strpbrk(url->text, "?#")) {
        lint_warn(run, run->settings_tree, url,
                  "alertscaler adds /api/v1/query to this URL: write %.*s",
                  (int)strcspn(url->text, "?#"), url->text);
        return;
    }
    while (size > 0 && url->text[size - 1] == '/')
        size--;
    for (size_t i = 0; i < AS_ARRAY_SIZE(wrong_ends); i++) {
        const size_t end = strlen(wrong_ends[i].end);
        if (size <= end || memcmp(url->text + size - end, wrong_ends[i].end, end) != 0)
            continue;
        AS_CLEANUP(as_free_p)
        char *right = as_xasprintf("%.*s%s", (int)(size - end), url->text, wrong_ends[i].instead);
        char *place = strstr(right, written);
        if (place)
            memcpy(place, read, strlen(read));
        lint_warn(run, run->settings_tree, url,
                  "alertscaler adds /api/v1/query to this URL: write %s", right);
        return;
    }
}

/* --- the login --- */

static const struct cloud_server {
    const char *host; /* a pattern */
    enum as_login_kind login;
    const char *cloud;   /* of azuread; NULL: any */
    const char *example; /* of the login */
} cloud_servers[] = {
    {"*aps-workspaces*.amazonaws.com*", AS_LOGIN_SIGV4, NULL, "sigv4: {}"},
    {"*.prometheus.monitor.azure.com", AS_LOGIN_AZUREAD, "AzurePublic",
     "azuread: {workload_identity: {}}"},
    {"*.prometheus.monitor.azure.cn", AS_LOGIN_AZUREAD, "AzureChina",
     "azuread: {cloud: AzureChina, workload_identity: {}}"},
    {"*.prometheus.monitor.azure.us", AS_LOGIN_AZUREAD, "AzureGovernment",
     "azuread: {cloud: AzureGovernment, workload_identity: {}}"},
    {"monitoring.googleapis.com", AS_LOGIN_GOOGLE_IAM, NULL, "google_iam: {}"},
};

/* The region in a host like aps-workspaces.eu-central-1.amazonaws.com; its size is 0 if the host
 * has none. */
static const char *find_amazon_region(const char *host, size_t *size_out)
{
    const char *name = strstr(host, "aps-workspaces");
    const char *dot = name ? strchr(name, '.') : NULL;
    *size_out = dot ? strcspn(dot + 1, ".") : 0;
    return dot ? dot + 1 : NULL;
}

static void check_cloud(struct lint_run *run, const struct cloud_server *cloud, const char *host,
                        const struct as_yaml_node *url, const struct as_yaml_node *node,
                        const struct as_http_settings *http)
{
    size_t size = 0;
    const char *region = find_amazon_region(host, &size);
    const bool is_other = http->login != AS_LOGIN_OAUTH2 && http->login != cloud->login;
    if (is_other && !http->authorization.credentials_file && size > 0)
        lint_warn(run, run->settings_tree, url,
                  "this server requires a login: write `http_config: {sigv4: {region: %.*s}}`",
                  (int)size, region);
    else if (is_other && !http->authorization.credentials_file)
        lint_warn(run, run->settings_tree, url,
                  "this server requires a login: write `http_config: {%s}`", cloud->example);
    else if (http->login == AS_LOGIN_SIGV4 && size > 0 && http->sigv4.region &&
             (strlen(http->sigv4.region) != size || memcmp(http->sigv4.region, region, size) != 0))
        lint_warn(run, run->settings_tree, as_yaml_find(as_yaml_find(node, "sigv4"), "region"),
                  "the URL is in the region %.*s: write `region: %.*s`", (int)size, region,
                  (int)size, region);
    else if (http->login == AS_LOGIN_AZUREAD && cloud->cloud &&
             strcmp(http->azuread.cloud, cloud->cloud) != 0)
        lint_warn(run, run->settings_tree, schema_find_key(node, "azuread"),
                  "the URL is in the cloud %s: write `cloud: %s`", cloud->cloud, cloud->cloud);
}

static void check_login(struct lint_run *run, const struct as_yaml_node *url,
                        const struct as_yaml_node *node, const struct as_http_settings *http)
{
    char host[AS_URL_HOST_SIZE];
    if (!url || !as_url_take_host(url->text, host))
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(cloud_servers); i++) {
        if (as_str_glob(cloud_servers[i].host, host))
            check_cloud(run, &cloud_servers[i], host, url, node, http);
    }
    if (http->login != AS_LOGIN_NONE && !as_url_is_private(url->text))
        lint_warn(run, run->settings_tree, url,
                  "the login is sent there in clear, and others can read it on the way: use "
                  "https://");
}

void lint_check_servers(struct lint_run *run)
{
    const struct as_settings *settings = &run->config->settings;
    const struct as_yaml_node *root =
        run->settings_tree ? as_yaml_get_root(run->settings_tree) : NULL;
    const struct as_yaml_node *prometheus = as_yaml_find(root, "prometheus");
    const struct as_yaml_node *alertmanager = as_yaml_find(root, "alertmanager");
    const struct as_yaml_node *urls = as_yaml_find(alertmanager, "urls");
    const struct as_yaml_node *replicas =
        as_yaml_find(as_yaml_find(root, "action_log"), "replicas");
    const struct as_yaml_node *replica_urls = as_yaml_find(replicas, "urls");
    const struct as_yaml_node *notify = as_yaml_find(root, "notify");
    const struct as_yaml_node *url = as_yaml_find(prometheus, "url");
    if (url) {
        check_url_path(run, url);
        check_login(run, url, as_yaml_find(prometheus, "http_config"), &settings->prometheus.http);
    }
    for (uint32_t i = 0; urls && i < urls->count; i++)
        check_login(run, urls->items[i], as_yaml_find(alertmanager, "http_config"),
                    &settings->alertmanager.http);
    for (uint32_t i = 0; replica_urls && i < replica_urls->count; i++)
        check_login(run, replica_urls->items[i], as_yaml_find(replicas, "http_config"),
                    &settings->action_log.replicas.http);
    for (uint32_t i = 0; notify && i < notify->count; i++) {
        const struct as_yaml_node *webhook = as_yaml_find(notify->items[i], "webhook");
        const struct as_yaml_node *peer = as_yaml_find(notify->items[i], "alertmanager");
        const struct as_http_settings *http = &settings->notify[i].http;
        const struct as_yaml_node *list = as_yaml_find(peer, "urls");
        check_login(run, as_yaml_find(webhook, "url"), as_yaml_find(webhook, "http_config"), http);
        for (uint32_t k = 0; list && k < list->count; k++)
            check_login(run, list->items[k], as_yaml_find(peer, "http_config"), http);
    }
}
