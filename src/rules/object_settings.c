/*
 * The tables of `objects` in alertscaler.yaml: which scaling policies are used, and what they may
 * do in a namespace. A key's default is its `fallback` and nowhere else.
 */
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/bounds.h>
#include <alertscaler/rules/tables.h>

#define IN(type, member) offsetof(struct type, member)

static const struct schema_field object_kind_fields[] = {
    SCHEMA_FIELD("apiVersion", STRING, as_object_kind_settings, api_version, .is_required = true,
                 .about = "The version of the kind, like argoproj.io/v1alpha1."),
    SCHEMA_FIELD("kind", STRING, as_object_kind_settings, kind, .is_required = true,
                 .about = "The kind, like Rollout."),
    SCHEMA_FIELD("field", STRING, as_object_kind_settings, field,
                 .about =
                     "The only field that policies may set; without it, the scale subresource."),
    {0},
};

static const struct schema object_kind =
    SCHEMA("objects.kinds", as_object_kind_settings, object_kind_fields,
           .example = "{apiVersion: argoproj.io/v1alpha1, kind: Rollout}");

static const struct schema_field object_group_fields[] = {
    SCHEMA_FIELD("namespaces", STRINGS, as_object_group_settings, namespaces, .is_required = true,
                 .count_offset = IN(as_object_group_settings, namespace_count), .max = 1000,
                 .when_empty = "expected at least one namespace, or a pattern",
                 .about = "Patterns of namespaces."),
    SCHEMA_FIELD("provider", NAME, as_object_group_settings, provider, .is_required = true,
                 .about = "The name of a provider."),
    SCHEMA_FIELD("names", STRINGS, as_object_group_settings, names, .is_required = true,
                 .count_offset = IN(as_object_group_settings, name_count), .max = 1000,
                 .when_empty = "expected at least one name, or a pattern",
                 .about = "Patterns of names of node groups."),
    {0},
};

static const struct schema object_group =
    SCHEMA("objects.node_groups", as_object_group_settings, object_group_fields,
           .example = "{namespaces: [batch], provider: aws, names: ['batch-*']}");

static const struct schema_field object_limit_fields[] = {
    SCHEMA_FIELD("actions", INT, as_object_settings, actions_max, .is_required = true, .min = 1,
                 .max = AS_SIZE_MAX,
                 .about = "How many actions the policies of one namespace may cause in a period."),
    SCHEMA_FIELD("per", DURATION, as_object_settings, actions_per_us, .is_required = true,
                 .min = AS_US_PER_S, .about = "The length of the period."),
    {0},
};

static const struct schema object_limits = SCHEMA(
    "objects.limits", as_object_settings, object_limit_fields, .example = "{actions: 10, per: 1m}");

static const struct schema_field admission_fields[] = {
    SCHEMA_FIELD("address", STRING, as_admission_settings, address, .is_required = true,
                 .about = "Where the listener listens, like :9443."),
    SCHEMA_FIELD("cert_file", PATH, as_admission_settings, cert_file,
                 .about = "The certificate; without both files, the leader makes a certificate."),
    SCHEMA_FIELD("key_file", PATH, as_admission_settings, key_file,
                 .about = "The private key of the certificate."),
    {0},
};

static void finish_admission(struct loader *loader, const struct as_yaml_node *node,
                             const struct as_yaml_node *at, void *object)
{
    const struct as_admission_settings *admission = object;
    (void)node;
    if (!admission->cert_file != !admission->key_file)
        loader_report(loader, at,
                      "`cert_file` and `key_file` go together; without both, the leader makes a "
                      "certificate");
}

static const struct schema admission =
    SCHEMA("objects.admission", as_admission_settings, admission_fields,
           .example = "{address: ':9443'}", .finish = finish_admission);

/*
 * `prometheus` of policies: as `prometheus` of the file, with `{{ .Namespace }}` in the URL or in
 * headers.
 */

#define NAMESPACE_TEMPLATE "{{ .Namespace }}"

/* Checked as the URL that one namespace gets. */
static void parse_tenant_url(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    static const struct schema_field field = {.type = SCHEMA_URL};
    struct as_prometheus_settings *prometheus = object;
    struct as_yaml_node filled = *value;
    const char *found =
        value->kind == AS_YAML_SCALAR ? strstr(value->text, NAMESPACE_TEMPLATE) : NULL;
    const char *checked;
    if (found) {
        const size_t before = (size_t)(found - value->text);
        char *text = as_arena_strdup(loader->arena, value->text);
        memmove(text + before + 1, text + before + strlen(NAMESPACE_TEMPLATE),
                strlen(text + before + strlen(NAMESPACE_TEMPLATE)) + 1);
        text[before] = 'n';
        filled.text = text;
        filled.size = strlen(text);
    }
    if (schema_parse_value(loader, &field, &filled, &checked))
        prometheus->url = as_arena_strdup(loader->arena, value->text);
}

static const struct schema_field tenant_url_forms[] = {SCHEMA_FORM(STRING), {0}};

static const struct schema_field object_prometheus_fields[] = {
    {.key = "url",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_tenant_url,
     .forms = tenant_url_forms,
     .expected = "URL",
     .about = "The address of the server; may have the template {{ .Namespace }}."},
    SCHEMA_FIELD("timeout", DURATION, as_prometheus_settings, timeout_us, .min = AS_US_PER_MS,
                 .fallback = "5s", .about = "How long one query may take."),
    SCHEMA_FIELD("http_config", MAP, as_prometheus_settings, http, .map = &schema_http_config,
                 .about = "Credentials, TLS, headers and proxy."),
    {0},
};

static bool has_namespace_header(const struct as_http_settings *http)
{
    for (size_t i = 0; i < http->header_count; i++)
        for (size_t k = 0; k < http->headers[i].value_count; k++)
            if (strstr(http->headers[i].values[k], NAMESPACE_TEMPLATE))
                return true;
    return false;
}

static void finish_object_prometheus(struct loader *loader, const struct as_yaml_node *node,
                                     const struct as_yaml_node *at, void *object)
{
    const struct as_prometheus_settings *prometheus = object;
    (void)node;
    if (prometheus->url && !strstr(prometheus->url, NAMESPACE_TEMPLATE) &&
        !has_namespace_header(&prometheus->http))
        loader_report(
            loader, at,
            "`{{ .Namespace }}` is needed in `url` or in a header, so that a policy reads "
            "the series of its namespace only; `unrestricted_queries: true` lets policies "
            "read all series");
}

static const struct schema object_prometheus =
    SCHEMA("objects.prometheus", as_prometheus_settings, object_prometheus_fields,
           .example = "{url: 'http://prom-label-proxy:8080/{{ .Namespace }}'}",
           .refusals = schema_http_refusals, .finish = finish_object_prometheus);

/* Labels that select policies, and namespaces. */

static void parse_policy_selector(struct loader *loader, const struct as_yaml_node *value,
                                  void *object)
{
    ((struct as_object_settings *)object)->selector = parse_label_map(loader, value);
}

static void parse_namespace_selector(struct loader *loader, const struct as_yaml_node *value,
                                     void *object)
{
    ((struct as_object_settings *)object)->namespace_selector = parse_label_map(loader, value);
}

#define SELECTOR(word, parser, text)                                                               \
    {                                                                                              \
        .key = (word), .type = SCHEMA_CUSTOM, .parse = (parser), .forms = LABEL_MAP_FORMS,         \
        .expected = "map", .about = (text)                                                         \
    }

static const struct schema_field object_fields[] = {
    SCHEMA_FIELD("enabled", BOOL, as_object_settings, is_enabled, .fallback = "false",
                 .about = "The policies of the cluster `default` are read."),
    SCHEMA_FIELD("namespaces", STRINGS, as_object_settings, namespaces,
                 .count_offset = IN(as_object_settings, namespace_count), .max = 1000,
                 .about = "Only policies in these namespaces; without it, all."),
    SELECTOR("selector", parse_policy_selector, "Only policies with these labels."),
    SELECTOR("namespace_selector", parse_namespace_selector,
             "Only policies in namespaces with these labels."),
    SCHEMA_FIELD("max_policies", INT, as_object_settings, max_policies, .min = 1, .max = 100000,
                 .fallback = "10000", .about = "How many policies are in force."),
    SCHEMA_FIELD("rules_per_policy", INT, as_object_settings, rules_per_policy, .min = 1, .max = 50,
                 .fallback = "50", .about = "How many rules a policy may have."),
    SCHEMA_FIELD("kinds", MAPS, as_object_settings, kinds,
                 .count_offset = IN(as_object_settings, kind_count), .max = 100,
                 .map = &object_kind,
                 .about = "Kinds that policies may scale, besides the usual workloads."),
    SCHEMA_FIELD("node_groups", MAPS, as_object_settings, node_groups,
                 .count_offset = IN(as_object_settings, node_group_count), .max = 1000,
                 .map = &object_group,
                 .about = "Node groups that policies may scale; without it, none."),
    SCHEMA_FIELD("enforce_namespace_label", BOOL, as_object_settings, enforces_namespace_label,
                 .fallback = "true",
                 .about = "A rule of a policy applies only to alerts of the policy's namespace."),
    SCHEMA_FIELD("namespace_label", STRING, as_object_settings, namespace_label,
                 .fallback = "namespace", .about = "The label of alerts that has the namespace."),
    SCHEMA_FIELD("prometheus", MAP, as_object_settings, prometheus, .map = &object_prometheus,
                 .about = "The server that answers the queries of policies."),
    SCHEMA_FIELD("unrestricted_queries", BOOL, as_object_settings, allows_unrestricted_queries,
                 .fallback = "false",
                 .about = "The queries of policies may read the series of all namespaces."),
    SCHEMA_FIELD("min_every", DURATION, as_object_settings, min_every_us, .min = AS_US_PER_S,
                 .fallback = "15s", .about = "The shortest `every` of a rule of a policy."),
    SCHEMA_FIELD("queries_per_namespace", INT, as_object_settings, queries_per_namespace, .min = 1,
                 .max = 1000, .fallback = "4",
                 .about = "How many queries of one namespace are under way at a time."),
    SCHEMA_FIELD("max_size", INT, as_object_settings, max_size, .min = 1, .max = AS_SIZE_MAX,
                 .about = "The largest `max` of a policy; without it, no limit."),
    {.key = "limits",
     .type = SCHEMA_MAP,
     .map = &object_limits,
     .about = "How many actions a namespace may cause."},
    SCHEMA_FIELD("admission", MAP, as_object_settings, admission, .map = &admission,
                 .about = "The listener that checks policies for the API server."),
    {0},
};

/* A label's name, as in Prometheus before 3. */
static bool is_alert_label(const char *text)
{
    static const char all[] = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return text[strspn(text, all)] == '\0' && !strchr("0123456789", text[0]);
}

static void finish_objects(struct loader *loader, const struct as_yaml_node *node,
                           const struct as_yaml_node *at, void *object)
{
    const struct as_object_settings *objects = object;
    const struct as_yaml_node *label = as_yaml_find(node, "namespace_label");
    (void)at;
    if (label && objects->namespace_label && !is_alert_label(objects->namespace_label))
        loader_report(loader, label, "expected the name of a label, for example namespace");
    if (objects->prometheus.url && objects->allows_unrestricted_queries)
        loader_report(loader, schema_find_key(node, "unrestricted_queries"),
                      "`unrestricted_queries: true` goes without `prometheus`: which of the two "
                      "answers the queries of policies?");
}

const struct schema schema_objects = SCHEMA("objects", as_object_settings, object_fields,
                                            .example = "{enabled: true}", .finish = finish_objects);

const struct schema *const schema_object_parts[] = {
    &object_kind, &object_group, &object_limits, &object_prometheus, &admission, NULL};
