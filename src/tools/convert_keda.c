/*
 * KEDA's ScaledObject. KEDA has two loops, an HPA between 1 and the maximum and its own to and from
 * 0; here one decision leads all the way. docs/from-keda.md says what that changes.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/zone.h>
#include <alertscaler/doc/yaml_text.h>

#include "convert_plan.h"

struct raw_trigger_data { /* `metadata` of prometheus, cpu and memory; all values are texts */
    const char *query, *server, *ignore_null, *type, *container;
    const char *modes, *headers, *tenant, *unsafe, *aws_region, *azure_cloud; /* of the login */
    const struct as_yaml_node *threshold, *activation, *value;
};

struct raw_authentication_ref {
    const char *name, *kind;
};

struct raw_trigger {
    const char *type, *name;
    const char *metric_type; /* NULL: not given */
    struct raw_authentication_ref authentication;
    const struct as_yaml_node *node, *metadata;
};

/* What becomes of a trigger's value when there is little work. */
struct keda_floor {
    bool is_zero; /* the size may be 0: `activationThreshold` counts */
    int32_t min;  /* with `idleReplicaCount`: the least size above it; 0: none */
};

/* --- cron triggers --- */

/*
 * A trigger becomes a schedule, where its expressions are times of the day on days of the week.
 * Whatever else cron can say is listed, with the reason.
 */

#define FIELDS    5
#define FIELD_MAX 64
#define ALL_DAYS  0x7fU

struct raw_cron {
    const char *timezone, *start, *end, *desired;
};

static const struct schema_field cron_fields[] = {
    SCHEMA_FIELD("timezone", STRING, raw_cron, timezone, .is_required = true),
    SCHEMA_FIELD("start", STRING, raw_cron, start, .is_required = true),
    SCHEMA_FIELD("end", STRING, raw_cron, end, .is_required = true),
    SCHEMA_FIELD("desiredReplicas", STRING, raw_cron, desired, .is_required = true),
    {0},
};
static const struct schema cron_table =
    SCHEMA("cron", raw_cron, cron_fields, .other = convert_lose_key);

struct moment {      /* of the week */
    unsigned minute; /* of the day */
    unsigned days;   /* bit 0: Monday */
};

static bool keda_read_number(const char *text, size_t size, int64_t max, unsigned *out)
{
    int64_t number;
    if (as_number_parse_i64(text, size, &number) != 0 || number < 0 || number > max)
        return false;
    *out = (unsigned)number;
    return true;
}

/* "1", "mon"; from Sunday */
static bool read_day(const char *text, size_t size, unsigned *day_out)
{
    static const char *const names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
    for (unsigned i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (size == 3 && strncasecmp(text, names[i], 3) == 0) {
            *day_out = i;
            return true;
        }
    }
    return keda_read_number(text, size, 6, day_out);
}

/* "*", "1-5", "sat,sun" */
static bool read_days(const char *text, unsigned *days_out)
{
    unsigned first, last;
    if (strcmp(text, "*") == 0 || strcmp(text, "?") == 0) {
        *days_out = ALL_DAYS;
        return true;
    }
    for (*days_out = 0;; text++) {
        const size_t size = strcspn(text, ",");
        const char *dash = memchr(text, '-', size);
        const size_t left = dash ? (size_t)(dash - text) : size;
        if (!read_day(text, left, &first) ||
            !read_day(dash ? dash + 1 : text, dash ? size - left - 1 : size, &last) || first > last)
            return false;
        for (; first <= last; first++)
            *days_out |= 1U << (first + 6) % 7;
        text += size;
        if (*text == '\0')
            return true;
    }
}

/* Minute, hour, day of the month, month, day of the week. */
static bool keda_read_moment(const char *text, struct moment *moment_out)
{
    char fields[FIELDS][FIELD_MAX];
    unsigned minute, hour, count = 0;
    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        const size_t size = strcspn(text, " \t");
        if (count == FIELDS || size >= FIELD_MAX)
            return false;
        memcpy(fields[count], text, size);
        fields[count++][size] = '\0';
        text += size;
    }
    if (count != FIELDS || !keda_read_number(fields[0], strlen(fields[0]), 59, &minute) ||
        !keda_read_number(fields[1], strlen(fields[1]), 23, &hour) ||
        (strcmp(fields[2], "*") != 0 && strcmp(fields[2], "?") != 0) ||
        strcmp(fields[3], "*") != 0 || !read_days(fields[4], &moment_out->days))
        return false;
    moment_out->minute = hour * 60 + minute;
    return true;
}

/* Those a day later. */
static unsigned shift(unsigned days)
{
    return (days << 1 | days >> 6) & ALL_DAYS;
}

/* NULL: it can be a schedule. */
static const char *keda_find_obstacle(const struct raw_cron *cron, struct moment *start,
                                      struct moment *end)
{
    if (!keda_read_moment(cron->start, start) || !keda_read_moment(cron->end, end))
        return "its `start` and `end` are not both one time of the day on days of the week";
    if (start->minute == end->minute)
        return "its `start` and `end` are the same time of the day";
    if (end->days != (end->minute > start->minute ? start->days : shift(start->days)))
        return "it does not end on the day on which it begins, or in the night after it";
    return NULL;
}

/* Adds the schedule of a cron trigger, or reports why not. */
static void keda_add_cron(struct convert *convert, struct plan_target *target,
                          const struct raw_trigger *trigger)
{
    struct raw_cron cron = {0};
    struct moment start, end;
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *zone = NULL;
    int64_t desired;
    const size_t errors = convert_count_errors(convert);
    schema_parse(&convert->loader, &cron_table, trigger->metadata, trigger->node, &cron);
    if (convert_count_errors(convert) > errors)
        return;
    const char *obstacle = keda_find_obstacle(&cron, &start, &end);
    if (!obstacle && as_zone_open(cron.timezone, &zone, &error) != 0)
        obstacle = error.text;
    as_zone_free(zone);
    if (!obstacle && (as_number_parse_i64(cron.desired, strlen(cron.desired), &desired) != 0 ||
                      desired < 1 || desired > AS_SIZE_MAX))
        obstacle = "its `desiredReplicas` is no number above 0";
    if (!obstacle && target->schedule_count == PLAN_SCHEDULES_MAX)
        obstacle = "a target has at most 16 schedules";
    if (obstacle) {
        convert_lose(convert, trigger->node,
                     "the trigger of type `cron`: %.200s. Write a schedule (docs/schedules.md), or "
                     "use an alert that fires by the clock",
                     obstacle);
        return;
    }
    if (desired > target->max)
        convert_hint(convert, trigger->node, "`desiredReplicas` %.20s is above the maximum, %d",
                     cron.desired, target->max);
    target->schedules[target->schedule_count++] = (struct plan_schedule){
        .timezone = cron.timezone,
        .days = start.days,
        .from = start.minute,
        .to = end.minute,
        .min = desired < target->max ? (int32_t)desired : target->max,
    };
}

/* --- `fallback` --- */

/*
 * KEDA counts failures of a trigger, one in each `pollingInterval`, and then acts as if its number
 * asked for `replicas`; cpu and memory have none. Here it is the time without a value, and a size
 * is only ever raised.
 */

#define AFTER_MAX_S (7 * 86400)

struct raw_fallback {
    int32_t failures, replicas;
    const char *behavior;
};

static const struct schema_field fields[] = {
    SCHEMA_FIELD("failureThreshold", INT, raw_fallback, failures, .is_required = true, .min = 0,
                 .max = INT32_MAX),
    SCHEMA_FIELD("replicas", INT, raw_fallback, replicas, .is_required = true, .min = 0,
                 .max = AS_SIZE_MAX),
    SCHEMA_FIELD("behavior", STRING, raw_fallback, behavior, .fallback = "static"),
    {0},
};
static const struct schema fallback_table =
    SCHEMA("fallback", raw_fallback, fields, .other = convert_lose_key);

/* What a size becomes that is below `replicas`, and one above. */
static const struct {
    const char *word;
    bool raises, lowers;
} behaviors[] = {
    {"static", true, true},
    {"currentReplicas", false, false},
    {"currentReplicasIfHigher", true, false},
    {"currentReplicasIfLower", false, true},
};

static void keda_read(struct convert *convert, const struct as_yaml_node *node,
                      const struct raw_fallback *raw, int32_t polling_s,
                      struct as_fallback *fallback)
{
    const int64_t after_s = (int64_t)raw->failures * polling_s;
    size_t i = 0;
    while (i < AS_ARRAY_SIZE(behaviors) && strcmp(behaviors[i].word, raw->behavior) != 0)
        i++;
    if (i == AS_ARRAY_SIZE(behaviors)) {
        convert_lose(convert, node, "`fallback` with the `behavior` `%.60s`, which is not known",
                     raw->behavior);
        return;
    }
    if (after_s > AFTER_MAX_S) {
        convert_lose(convert, node,
                     "`fallback`: `failureThreshold` times `pollingInterval` is "
                     "more than a week");
        return;
    }
    if (behaviors[i].lowers)
        convert_hint(convert, node,
                     "`fallback`: without data KEDA lowers a size above %d, which here stays",
                     raw->replicas);
    if (behaviors[i].raises && raw->replicas > 0)
        *fallback =
            (struct as_fallback){.after_us = after_s * AS_US_PER_S, .at_least = raw->replicas};
}

/* Gives the rules of triggers with queries KEDA's `fallback` (`node`; NULL: none), or reports what
 * is not carried over. Call it after the triggers. */
static void keda_add_fallback(struct convert *convert, struct plan_target *target,
                              const struct as_yaml_node *node, int32_t polling_s)
{
    struct raw_fallback raw = {.behavior = NULL};
    struct as_fallback fallback = {.at_least = 0};
    const size_t errors = convert_count_errors(convert);
    if (!node || !schema_is_kind(&convert->loader, node, AS_YAML_MAP))
        return;
    schema_fill_defaults(&convert->loader, &fallback_table, &raw);
    schema_parse(&convert->loader, &fallback_table, node, node, &raw);
    if (convert_count_errors(convert) == errors)
        keda_read(convert, node, &raw, polling_s, &fallback);
    for (size_t i = 0; i < target->rule_count; i++) {
        struct plan_rule *rule = &target->rules[i];
        if (!rule->is_resource && rule->goal != AS_GOAL_UTILIZATION)
            rule->fallback = fallback;
    }
}

/* --- triggers --- */

/*
 * prometheus, cpu and memory become rules. Of the others the list says what to do: their numbers
 * must come into Prometheus first.
 */

/* --- tables --- */

static void keep_metadata(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    if (schema_is_kind(loader, value, AS_YAML_MAP))
        ((struct raw_trigger *)object)->metadata = value;
}

static void keda_skip(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)loader;
    (void)value;
    (void)object;
}

static void finish_trigger(struct loader *loader, const struct as_yaml_node *node,
                           const struct as_yaml_node *at, void *object)
{
    (void)loader;
    (void)at;
    ((struct raw_trigger *)object)->node = node;
}

static const struct schema_field authentication_fields[] = {
    SCHEMA_FIELD("name", STRING, raw_authentication_ref, name, .is_required = true),
    SCHEMA_FIELD("kind", STRING, raw_authentication_ref, kind, .fallback = "TriggerAuthentication"),
    {0},
};
static const struct schema authentication_table = SCHEMA(
    "authenticationRef", raw_authentication_ref, authentication_fields, .other = convert_skip_key);

static const struct schema_field trigger_fields[] = {
    SCHEMA_FIELD("type", STRING, raw_trigger, type, .is_required = true),
    SCHEMA_FIELD("name", STRING, raw_trigger, name),
    SCHEMA_FIELD("metricType", STRING, raw_trigger, metric_type),
    {.key = "metadata", .type = SCHEMA_CUSTOM, .is_required = true, .parse = keep_metadata},
    SCHEMA_FIELD("authenticationRef", MAP, raw_trigger, authentication,
                 .map = &authentication_table),
    {.key = "useCachedMetrics", .type = SCHEMA_CUSTOM, .parse = keda_skip},
    {0},
};
static const struct schema keda_trigger = SCHEMA(
    "trigger", raw_trigger, trigger_fields, .other = convert_lose_key, .finish = finish_trigger);

static const struct schema_field prometheus_fields[] = {
    SCHEMA_FIELD("serverAddress", STRING, raw_trigger_data, server, .is_required = true),
    SCHEMA_FIELD("query", TEXT, raw_trigger_data, query, .is_required = true),
    SCHEMA_FIELD("threshold", QUERY, raw_trigger_data, threshold, .is_required = true),
    SCHEMA_FIELD("activationThreshold", QUERY, raw_trigger_data, activation),
    SCHEMA_FIELD("ignoreNullValues", STRING, raw_trigger_data, ignore_null, .fallback = "true"),
    {.key = "metricName", .type = SCHEMA_CUSTOM, .parse = keda_skip}, /* of KEDA 2.9 and older */
    SCHEMA_FIELD("authModes", STRING, raw_trigger_data, modes),
    SCHEMA_FIELD("authMode", STRING, raw_trigger_data, modes),
    SCHEMA_FIELD("unsafeSsl", STRING, raw_trigger_data, unsafe),
    SCHEMA_FIELD("customHeaders", STRING, raw_trigger_data, headers),
    SCHEMA_FIELD("cortexOrgID", STRING, raw_trigger_data, tenant), /* of KEDA 2.13 and older */
    SCHEMA_FIELD("awsRegion", STRING, raw_trigger_data, aws_region),
    SCHEMA_FIELD("cloud", STRING, raw_trigger_data, azure_cloud),
    {.key = "identityOwner", .type = SCHEMA_CUSTOM, .parse = keda_skip}, /* of AWS */
    {.key = "timeout", .type = SCHEMA_CUSTOM, .parse = keda_skip},       /* prometheus.timeout */
    {0},
};
static const struct schema prometheus_table =
    SCHEMA("prometheus", raw_trigger_data, prometheus_fields, .other = convert_lose_key);

static const struct schema_field resource_fields[] = {
    SCHEMA_FIELD("type", STRING, raw_trigger_data, type),
    SCHEMA_FIELD("value", QUERY, raw_trigger_data, value, .is_required = true),
    SCHEMA_FIELD("containerName", STRING, raw_trigger_data, container),
    {.key = "activationValue", .type = SCHEMA_CUSTOM, .parse = keda_skip}, /* the size is never 0 */
    {0},
};
static const struct schema resource_table =
    SCHEMA("cpu", raw_trigger_data, resource_fields, .other = convert_lose_key);

/* cpu or memory */
static bool keda_trigger_is_resource(const struct raw_trigger *trigger)
{
    return trigger->type &&
           (strcmp(trigger->type, "cpu") == 0 || strcmp(trigger->type, "memory") == 0);
}

/* False: an error was reported. */
static bool keda_read_data(struct convert *convert, const struct schema *table,
                           const struct raw_trigger *trigger, struct raw_trigger_data *data)
{
    const size_t errors = convert_count_errors(convert);
    schema_fill_defaults(&convert->loader, table, data);
    schema_parse(&convert->loader, table, trigger->metadata, trigger->metadata, data);
    return convert_count_errors(convert) == errors;
}

static const char *const goal_words[] = {
    [AS_GOAL_VALUE] = "Value",
    [AS_GOAL_AVERAGE_VALUE] = "AverageValue",
    [AS_GOAL_UTILIZATION] = "Utilization",
};

static bool read_goal(struct convert *convert, const struct raw_trigger *trigger, const char *word,
                      enum as_goal *goal_out)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(goal_words); i++) {
        if (strcmp(goal_words[i], word) == 0) {
            *goal_out = (enum as_goal)i;
            return true;
        }
    }
    loader_report(&convert->loader, trigger->node,
                  "expected `metricType` Value, AverageValue or Utilization");
    return false;
}

/* --- cpu and memory --- */

static void add_resource(struct convert *convert, struct plan_target *target,
                         const struct raw_trigger *trigger)
{
    struct raw_trigger_data data = {.query = NULL};
    enum as_goal goal;
    int64_t milli = 0;
    if (!keda_read_data(convert, &resource_table, trigger, &data))
        return;
    const char *word = trigger->metric_type ? trigger->metric_type : data.type;
    if (!read_goal(convert, trigger, word ? word : goal_words[AS_GOAL_UTILIZATION], &goal) ||
        !convert_parse_goal(convert, data.value, &milli))
        return;
    if (goal == AS_GOAL_VALUE || (goal == AS_GOAL_UTILIZATION && milli % 1000 != 0))
        loader_report(&convert->loader, data.value,
                      "expected whole percents of `Utilization`, or an `AverageValue`");
    else
        hpa_add_resource(convert, target, trigger->node, trigger->type, data.container, goal,
                         milli);
}

/* --- the login --- */

/*
 * The `http_config` that does what KEDA's trigger and its TriggerAuthentication do. The text of a
 * secret is a file of its own: the Secret's folder under SECRETS_FOLDER, and the key.
 */

#define SECRETS_FOLDER "/etc/alertscaler/"
#define LOGIN_MAX      ((size_t)500) /* it stands in an item */
#define DEPTH_MAX      8             /* of lists in lists */

struct keda_login {
    struct convert *convert;
    const struct raw_trigger_data *data;
    const struct as_yaml_node *spec; /* of the authentication; NULL: none is known */
    struct as_buf text;              /* the rows of `http_config` */
    struct as_buf tls, headers;      /* the rows of `tls_config` and `http_headers` */
    struct as_buf secrets;           /* names of Secrets that are needed as folders */
    const char *advice;              /* what a person does by hand; NULL: nothing */
};

static const char *keda_find_text(const struct as_yaml_node *map, const char *key)
{
    const struct as_yaml_node *node = as_yaml_find(map, key);
    return node && node->kind == AS_YAML_SCALAR && !as_yaml_is_null(node) && node->size > 0
               ? node->text
               : NULL;
}

/* The `spec` of the authentication in a document, or in a list of objects. */
static const struct as_yaml_node *find_authentication(const struct as_yaml_node *node,
                                                      const struct raw_authentication_ref *of,
                                                      const char *space, unsigned depth)
{
    const struct as_yaml_node *items =
        node->kind == AS_YAML_LIST ? node : as_yaml_find(node, "items");
    const struct as_yaml_node *found = NULL;
    if (items) {
        for (uint32_t i = 0;
             items->kind == AS_YAML_LIST && depth < DEPTH_MAX && !found && i < items->count; i++)
            found = find_authentication(items->items[i], of, space, depth + 1);
        return found;
    }
    const struct as_yaml_node *meta = as_yaml_find(node, "metadata");
    const char *own = keda_find_text(meta, "namespace");
    const bool is_here = strcmp(of->kind, "ClusterTriggerAuthentication") == 0 || !own || !space ||
                         strcmp(own, space) == 0;
    return is_here && as_str_equal(keda_find_text(node, "kind"), of->kind) &&
                   as_str_equal(keda_find_text(meta, "name"), of->name)
               ? as_yaml_find(node, "spec")
               : NULL;
}

static const struct as_yaml_node *find_authentication_spec(const struct convert *convert,
                                                           const struct raw_trigger *trigger,
                                                           const char *space)
{
    const struct as_yaml_node *spec = NULL;
    for (size_t i = 0; trigger->authentication.name && !spec && i < convert->tree_count; i++)
        spec = find_authentication(as_yaml_get_root(convert->trees[i]), &trigger->authentication,
                                   space, 0);
    return spec;
}

/* The row of `secretTargetRef` for a parameter; NULL: none. */
static const struct as_yaml_node *keda_find_secret(const struct keda_login *login,
                                                   const char *parameter)
{
    const struct as_yaml_node *list = as_yaml_find(login->spec, "secretTargetRef");
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++) {
        if (as_str_equal(keda_find_text(list->items[i], "parameter"), parameter))
            return list->items[i];
    }
    return NULL;
}

static void keda_append_row(struct as_buf *out, const char *key)
{
    as_buf_printf(out, "%s%s: ", out->size > 0 ? ", " : "", key);
}

/* The file of a parameter. Its Secret joins the list. */
static const char *keda_find_file(struct keda_login *login, const char *parameter)
{
    const struct as_yaml_node *row = keda_find_secret(login, parameter);
    const char *secret = keda_find_text(row, "name"), *key = keda_find_text(row, "key");
    if (!secret || !key)
        return convert_text(login->convert, SECRETS_FOLDER "%s", parameter);
    const char *list =
        convert_text(login->convert, ", %s,", login->secrets.size > 0 ? login->secrets.data : "");
    if (!strstr(list, convert_text(login->convert, ", %s,", secret)))
        as_buf_printf(&login->secrets, "%s%.253s", login->secrets.size > 0 ? ", " : "", secret);
    return convert_text(login->convert, SECRETS_FOLDER "%s/%s", secret, key);
}

/* A key with the file of a parameter. */
static void keda_append_file(struct keda_login *login, struct as_buf *out, const char *key,
                             const char *parameter)
{
    keda_append_row(out, key);
    yaml_append_text(out, keda_find_file(login, parameter));
}

static void keda_append_map(struct as_buf *out, const char *key, const struct as_buf *rows)
{
    keda_append_row(out, key);
    as_buf_printf(out, "{%s}", rows->size > 0 ? rows->data : "");
}

/* Whether a header's text is likely a secret. */
static bool is_secret_header(const char *name)
{
    static const char *const words[] = {"key", "token", "secret", "auth", "password", "cookie"};
    bool is_secret = false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++)
        is_secret = is_secret || strcasestr(name, words[i]);
    return is_secret;
}

static void keda_add_header(struct keda_login *login, const char *name, const char *value)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf row = AS_BUF_INIT(LOGIN_MAX);
    if (!schema_is_name(name)) {
        login->advice = "`customHeaders` that are no names with texts";
    } else if (strcasecmp(name, "Authorization") == 0) {
        keda_append_file(login, &row, "credentials_file", name);
        keda_append_map(&login->text, "authorization", &row);
    } else if (is_secret_header(name)) {
        as_buf_append_str(&row, "files: [");
        yaml_append_text(&row, convert_text(login->convert, SECRETS_FOLDER "%s", name));
        as_buf_append_char(&row, ']');
        keda_append_map(&login->headers, name, &row);
    } else {
        as_buf_append_str(&row, "values: [");
        yaml_append_text(&row, value);
        as_buf_append_char(&row, ']');
        keda_append_map(&login->headers, name, &row);
    }
}

/* "X-A=b,X-C=d" */
static void keda_add_custom_headers(struct keda_login *login)
{
    const char *text = login->data->headers ? login->data->headers : "";
    while (*text) {
        const size_t size = strcspn(text, ",");
        const char *pair = convert_text(login->convert, "%.*s", (int)size, text);
        const size_t name = strcspn(pair, "=");
        keda_add_header(login, convert_text(login->convert, "%.*s", (int)name, pair),
                        pair[name] == '=' ? pair + name + 1 : "");
        text += size + (text[size] == ',');
    }
    if (login->data->tenant)
        keda_add_header(login, "X-Scope-OrgID", login->data->tenant);
}

static void keda_add_basic(struct keda_login *login)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf rows = AS_BUF_INIT(LOGIN_MAX);
    keda_append_file(login, &rows, "username_file", "username");
    keda_append_file(login, &rows, "password_file", "password");
    keda_append_map(&login->text, "basic_auth", &rows);
}

static void keda_add_bearer(struct keda_login *login)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf rows = AS_BUF_INIT(LOGIN_MAX);
    keda_append_file(login, &rows, "credentials_file", "bearerToken");
    keda_append_map(&login->text, "authorization", &rows);
}

static void keda_add_tls(struct keda_login *login)
{
    static const char *const rows[][2] = {
        {"ca_file", "ca"}, {"cert_file", "cert"}, {"key_file", "key"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (!login->spec || keda_find_secret(login, rows[i][1]))
            keda_append_file(login, &login->tls, rows[i][0], rows[i][1]);
    }
}

static void keda_add_custom(struct keda_login *login)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf files = AS_BUF_INIT(LOGIN_MAX);
    as_buf_append_str(&files, "files: [");
    yaml_append_text(&files, keda_find_file(login, "customAuthValue"));
    as_buf_append_char(&files, ']');
    keda_append_map(&login->headers, "HEADER", &files);
    login->advice = "HEADER: write the text of `customAuthHeader`";
}

static void keda_add_modes(struct keda_login *login)
{
    static const struct {
        const char *mode;
        void (*add)(struct keda_login *login);
    } rows[] = {{"basic", keda_add_basic},
                {"bearer", keda_add_bearer},
                {"tls", keda_add_tls},
                {"custom", keda_add_custom}};
    const char *text = login->data->modes ? login->data->modes : "";
    while (*text) {
        const size_t start = strspn(text, " ,"), size = strcspn(text + start, " ,");
        bool is_known = size == 0;
        for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
            if (strlen(rows[i].mode) == size && memcmp(rows[i].mode, text + start, size) == 0) {
                rows[i].add(login);
                is_known = true;
            }
        }
        if (!is_known)
            login->advice = "`authModes` other than basic, bearer, tls and custom";
        text += start + size;
    }
}

static void keda_add_amazon(struct keda_login *login, const struct as_yaml_node *identity)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf rows = AS_BUF_INIT(LOGIN_MAX);
    const char *role = keda_find_text(identity, "roleArn");
    if (login->data->aws_region) {
        keda_append_row(&rows, "region");
        yaml_append_text(&rows, login->data->aws_region);
    }
    if (role) {
        keda_append_row(&rows, "role_arn");
        yaml_append_text(&rows, role);
    }
    keda_append_map(&login->text, "sigv4", &rows);
    if (keda_find_secret(login, "awsAccessKeyID"))
        login->advice = "put the access key into a profile: docs/sources.md";
}

static void keda_add_azure(struct keda_login *login, const struct as_yaml_node *identity)
{
    static const char *const clouds[][2] = {{"AzureUSGovernmentCloud", "AzureGovernment"},
                                            {"AzureChinaCloud", "AzureChina"}};
    static const char *const ids[][2] = {{"identityId", "client_id"},
                                         {"identityTenantId", "tenant_id"}};
    AS_CLEANUP(as_buf_deinit) struct as_buf rows = AS_BUF_INIT(LOGIN_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf keys = AS_BUF_INIT(LOGIN_MAX);
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds) && login->data->azure_cloud; i++) {
        if (strcasecmp(clouds[i][0], login->data->azure_cloud) == 0) {
            keda_append_row(&rows, "cloud");
            as_buf_append_str(&rows, clouds[i][1]);
        }
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(ids); i++) {
        const char *id = keda_find_text(identity, ids[i][0]);
        if (id) {
            keda_append_row(&keys, ids[i][1]);
            yaml_append_text(&keys, id);
        }
    }
    keda_append_map(&rows, "workload_identity", &keys);
    keda_append_map(&login->text, "azuread", &rows);
}

static void keda_add_google(struct keda_login *login)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf rows = AS_BUF_INIT(LOGIN_MAX);
    if (keda_find_secret(login, "GoogleApplicationCredentials"))
        keda_append_file(login, &rows, "credentials_file", "GoogleApplicationCredentials");
    keda_append_map(&login->text, "google_iam", &rows);
}

/* KEDA accepts no pod identity beside `authModes`. */
static void keda_add_identity(struct keda_login *login)
{
    const struct as_yaml_node *identity = as_yaml_find(login->spec, "podIdentity");
    const char *provider = keda_find_text(identity, "provider");
    const bool is_amazon =
        provider && (strcmp(provider, "aws") == 0 || strcmp(provider, "aws-eks") == 0);
    if (is_amazon || login->data->aws_region)
        keda_add_amazon(login, identity);
    else if (as_str_equal(provider, "azure-workload"))
        keda_add_azure(login, identity);
    else if (as_str_equal(provider, "gcp") ||
             keda_find_secret(login, "GoogleApplicationCredentials"))
        keda_add_google(login);
    else if (provider && strcmp(provider, "none") != 0)
        login->advice = "a pod identity other than aws, azure-workload and gcp";
}

static void keda_login_deinit(struct keda_login *login)
{
    as_buf_deinit(&login->text);
    as_buf_deinit(&login->tls);
    as_buf_deinit(&login->headers);
    as_buf_deinit(&login->secrets);
}

/* The rows of `http_config`; "": none. Advice for the rest goes to the trigger. */
static const char *keda_find_login(struct convert *convert, const struct plan_target *target,
                                   const struct raw_trigger *trigger,
                                   const struct raw_trigger_data *data, const char **secrets_out)
{
    AS_CLEANUP(keda_login_deinit)
    struct keda_login login = {
        .convert = convert,
        .data = data,
        .spec = find_authentication_spec(convert, trigger, target->space),
        .text = AS_BUF_INIT(LOGIN_MAX),
        .tls = AS_BUF_INIT(LOGIN_MAX),
        .headers = AS_BUF_INIT(LOGIN_MAX),
        .secrets = AS_BUF_INIT(LOGIN_MAX),
    };
    if (data->modes)
        keda_add_modes(&login);
    else
        keda_add_identity(&login);
    keda_add_custom_headers(&login);
    if (data->unsafe && strcasecmp(data->unsafe, "true") == 0) {
        keda_append_row(&login.tls, "insecure_skip_verify");
        as_buf_append_str(&login.tls, "true");
    }
    if (login.tls.size > 0)
        keda_append_map(&login.text, "tls_config", &login.tls);
    if (login.headers.size > 0)
        keda_append_map(&login.text, "http_headers", &login.headers);
    if (trigger->authentication.name && !login.spec)
        login.advice = "its authentication is not in the files: convert both together";
    if (as_buf_check(&login.text) < 0 || as_buf_check(&login.tls) < 0 ||
        as_buf_check(&login.headers) < 0) {
        login.advice = "it is too long";
        login.text.size = 0;
    }
    if (login.advice)
        convert_hint(
            convert, trigger->node,
            "the login is `prometheus.http_config` in alertscaler.yaml, and a part is left "
            "to you: %s",
            login.advice);
    *secrets_out =
        login.secrets.size > 0 ? as_arena_strdup(&convert->arena, login.secrets.data) : NULL;
    return login.text.size > 0 ? as_arena_strdup(&convert->arena, login.text.data) : "";
}

/* --- prometheus --- */

/* alertscaler sends its queries to one Prometheus, with one login. */
static void check_server(struct convert *convert, const struct plan_target *target,
                         const struct raw_trigger *trigger, const struct raw_trigger_data *data)
{
    const char *server = data->server, *secrets = NULL;
    const char *login = keda_find_login(convert, target, trigger, data, &secrets);
    if (!convert->server) {
        convert->server = server;
        convert->login = login;
        convert_hint(convert, trigger->node,
                     "alertscaler.yaml says where Prometheus is: "
                     "`prometheus: {url: '%.200s'%s%s%s}`%s%.100s",
                     server, *login ? ", http_config: {" : "", login, *login ? "}" : "",
                     secrets ? ". Mount Secrets under " SECRETS_FOLDER ": " : "",
                     secrets ? secrets : "");
    } else if (strcmp(convert->server, server) != 0) {
        convert_lose(
            convert, trigger->node,
            "the Prometheus at %.200s: alertscaler asks one, and another ScaledObject names "
            "%.200s. Convert them apart, for two alertscalers, or ask one that has both",
            server, convert->server);
    } else if (*login && strcmp(convert->login, login) != 0) {
        convert_hint(convert, trigger->node,
                     "its login is `http_config: {%.500s}`, but alertscaler has one login for "
                     "Prometheus, that of the first trigger. Use a login that may read all series",
                     login);
    }
}

/* A number as PromQL writes it; false: an error was reported. */
static bool read_activation(struct convert *convert, const struct as_yaml_node *node,
                            int64_t *milli_out)
{
    char found[AS_YAML_FOUND_SIZE];
    if (!node || as_quantity_parse_scaled(node->text, node->size, 3, false, milli_out) == 0)
        return true;
    loader_report(&convert->loader, node, "expected a number, such as 5 or 0.5, found %s",
                  as_yaml_describe(node, found));
    return false;
}

/* As KEDA sees a value: up to the activation it is no work; with `idleReplicaCount` any work is
 * work for the least size. */
static const char *make_query(struct convert *convert, const struct keda_floor *floor,
                              const char *query, int64_t activation, int64_t milli)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT((size_t)1 << 20);
    if (!floor->is_zero || (activation == 0 && floor->min == 0))
        return query;
    if (floor->min > 0) {
        as_buf_printf(&out, "clamp_min(%s, ", query);
        yaml_append_milli(&out, milli * floor->min);
        as_buf_append_char(&out, ')');
    } else {
        as_buf_printf(&out, "(%s)", query);
    }
    as_buf_printf(&out, " * ((%s) > bool ", query);
    yaml_append_milli(&out, activation);
    as_buf_append_char(&out, ')');
    return as_buf_check(&out) < 0 ? NULL : as_arena_strdup(&convert->arena, out.data);
}

static const char *find_query(struct convert *convert, const struct raw_trigger *trigger,
                              const struct raw_trigger_data *data, const struct keda_floor *floor,
                              enum as_goal goal, int64_t milli)
{
    struct keda_floor taken = *floor;
    const struct as_yaml_node *node = as_yaml_find(trigger->metadata, "query");
    const char *why = NULL;
    int64_t activation = 0;
    if (!read_activation(convert, data->activation, &activation))
        return NULL;
    if (floor->min > 0 && (goal == AS_GOAL_VALUE || milli > AS_QUANTITY_SCALED_MAX / floor->min)) {
        convert_lose(
            convert, trigger->node,
            "`minReplicaCount` above `idleReplicaCount` with `metricType: Value`: the rule "
            "goes down to `idleReplicaCount`. Put a floor into its query");
        taken.min = 0;
    }
    const char *query = promql_protect(convert, data->query, &why);
    query = query ? make_query(convert, &taken, query, activation, milli) : NULL;
    query = query ? promql_protect(convert, query, &why) : NULL;
    if (!query)
        loader_report(&convert->loader, node, "not a query: %s", why ? why : "it is too long");
    return query;
}

static void add_prometheus(struct convert *convert, struct plan_target *target,
                           const struct raw_trigger *trigger, const struct keda_floor *floor)
{
    struct raw_trigger_data data = {.query = NULL};
    enum as_goal goal = AS_GOAL_AVERAGE_VALUE;
    int64_t milli = 0;
    if (!keda_read_data(convert, &prometheus_table, trigger, &data) ||
        (trigger->metric_type && !read_goal(convert, trigger, trigger->metric_type, &goal)) ||
        !convert_parse_goal(convert, data.threshold, &milli))
        return;
    if (goal == AS_GOAL_UTILIZATION) {
        loader_report(&convert->loader, trigger->node,
                      "a trigger of type prometheus has no `metricType: Utilization`");
        return;
    }
    const char *query = find_query(convert, trigger, &data, floor, goal, milli);
    if (!query)
        return;
    check_server(convert, target, trigger, &data);
    if (strcmp(data.ignore_null, "false") != 0)
        convert_hint(convert, trigger->node,
                     "no data is 0 to KEDA (`ignoreNullValues`), and here it keeps the size. For 0 "
                     "write `or vector(0)` behind the query");
    struct plan_rule *rule =
        plan_add_rule(convert, target, trigger->name ? trigger->name : "prometheus");
    rule->about =
        convert_text(convert, "prometheus trigger, %s", convert_origin(convert, trigger->node));
    rule->goal = goal;
    rule->milli = milli;
    rule->query = query;
}

/* --- all others --- */

static const struct {
    const char *type, *advice;
} others[] = {
    {"external", "bring its number into Prometheus, and track it with a query"},
    {"external-push", "bring its number into Prometheus, and track it with a query"},
    {"kafka", "track the exporter's number, such as "
              "sum(kafka_consumergroup_lag{consumergroup=\"x\"})"},
    {"rabbitmq", "track the exporter's number, such as sum(rabbitmq_queue_messages_ready"
                 "{queue=\"x\"})"},
    {"kubernetes-workload", "track the number of pods, such as count(kube_pod_info"
                            "{created_by_name=~\"x-.*\"})"},
};

static void lose_trigger(struct convert *convert, const struct raw_trigger *trigger)
{
    const char *advice = "track the number of its exporter, which Prometheus scrapes, with a query";
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        if (strcmp(others[i].type, trigger->type) == 0)
            advice = others[i].advice;
    }
    convert_lose(convert, trigger->node, "the trigger of type `%.60s`: %s", trigger->type, advice);
}

/* Adds the rule of a trigger, or reports why not. */
static void keda_add_trigger(struct convert *convert, struct plan_target *target,
                             const struct raw_trigger *trigger, const struct keda_floor *floor)
{
    if (keda_trigger_is_resource(trigger))
        add_resource(convert, target, trigger);
    else if (strcmp(trigger->type, "prometheus") == 0)
        add_prometheus(convert, target, trigger, floor);
    else if (strcmp(trigger->type, "cron") == 0)
        keda_add_cron(convert, target, trigger);
    else
        lose_trigger(convert, trigger);
}

/* --- the object --- */

#define WINDOW_MAX_S 3600 /* of a `behavior` */

/* --- tables --- */

struct raw_hpa_config {
    const struct as_yaml_node *behavior;
};

struct raw_advanced {
    struct raw_hpa_config hpa;
    bool restores;
    const struct as_yaml_node *node, *modifiers;
};

struct raw_keda {
    struct raw_reference target;
    int32_t polling_s, cooldown_s, initial_s;
    int32_t idle, min, max; /* idle -1: not given */
    const struct as_yaml_node *fallback;
    struct raw_advanced advanced;
    struct raw_trigger *triggers;
    size_t trigger_count;
};

#define KEEP(function, owner, member)                                                              \
    static void function(struct loader *loader, const struct as_yaml_node *value, void *object)    \
    {                                                                                              \
        (void)loader;                                                                              \
        ((struct owner *)object)->member = as_yaml_is_null(value) ? NULL : value;                  \
    }

KEEP(keep_behavior, raw_hpa_config, behavior)
KEEP(keep_modifiers, raw_advanced, modifiers)
KEEP(keep_fallback, raw_keda, fallback)

static void convert_keda_skip(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)loader;
    (void)value;
    (void)object;
}

static const struct schema_field hpa_fields[] = {
    {.key = "behavior", .type = SCHEMA_CUSTOM, .parse = keep_behavior},
    {.key = "name",
     .type = SCHEMA_CUSTOM,
     .parse = convert_keda_skip}, /* of the HPA that KEDA makes */
    {0},
};
static const struct schema hpa_table =
    SCHEMA("horizontalPodAutoscalerConfig", raw_hpa_config, hpa_fields, .other = convert_lose_key);

static const struct schema_field advanced_fields[] = {
    SCHEMA_FIELD("horizontalPodAutoscalerConfig", MAP, raw_advanced, hpa, .map = &hpa_table),
    SCHEMA_FIELD("restoreToOriginalReplicaCount", BOOL, raw_advanced, restores,
                 .fallback = "false"),
    {.key = "scalingModifiers", .type = SCHEMA_CUSTOM, .parse = keep_modifiers},
    {0},
};
static const struct schema advanced_table =
    SCHEMA("advanced", raw_advanced, advanced_fields, .other = convert_lose_key);

static const struct schema_field keda_fields[] = {
    SCHEMA_FIELD("scaleTargetRef", MAP, raw_keda, target, .is_required = true,
                 .map = &convert_reference),
    SCHEMA_FIELD("pollingInterval", INT, raw_keda, polling_s, .min = 1, .max = INT32_MAX,
                 .fallback = "30"),
    SCHEMA_FIELD("cooldownPeriod", INT, raw_keda, cooldown_s, .min = 0, .max = INT32_MAX,
                 .fallback = "300"),
    SCHEMA_FIELD("initialCooldownPeriod", INT, raw_keda, initial_s, .min = 0, .max = INT32_MAX,
                 .fallback = "0"),
    SCHEMA_FIELD("idleReplicaCount", INT, raw_keda, idle, .min = 0, .max = AS_SIZE_MAX),
    SCHEMA_FIELD("minReplicaCount", INT, raw_keda, min, .min = 0, .max = AS_SIZE_MAX,
                 .fallback = "0"),
    SCHEMA_FIELD("maxReplicaCount", INT, raw_keda, max, .min = 1, .max = AS_SIZE_MAX,
                 .fallback = "100"),
    {.key = "fallback", .type = SCHEMA_CUSTOM, .parse = keep_fallback},
    SCHEMA_FIELD("advanced", MAP, raw_keda, advanced, .map = &advanced_table),
    SCHEMA_FIELD("triggers", MAPS, raw_keda, triggers, .is_required = true, .map = &keda_trigger,
                 .count_offset = offsetof(struct raw_keda, trigger_count)),
    {0},
};

static void finish_keda(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    const struct raw_keda *keda = object;
    const struct as_yaml_node *max = as_yaml_find(node, "maxReplicaCount");
    const struct as_yaml_node *idle = as_yaml_find(node, "idleReplicaCount");
    if (keda->min > keda->max)
        loader_report(loader, max ? max : at, "`maxReplicaCount` %d is below `minReplicaCount` %d",
                      keda->max, keda->min);
    if (idle && keda->idle >= keda->min)
        loader_report(loader, idle, "`idleReplicaCount` %d is not below `minReplicaCount` %d",
                      keda->idle, keda->min);
}

static const struct schema keda_table =
    SCHEMA("ScaledObject", raw_keda, keda_fields, .other = convert_lose_key, .finish = finish_keda);

/* --- what is not carried over --- */

static void lose_parts(struct convert *convert, const struct raw_object *object,
                       const struct raw_keda *keda)
{
    const struct as_yaml_node *spec = object->spec;
    if (keda->advanced.restores)
        convert_leave(convert, as_yaml_find(spec, "advanced"),
                      "`restoreToOriginalReplicaCount`: set the size when you remove the rules: "
                      "alertscaler scale");
    if (keda->advanced.modifiers)
        convert_lose(convert, keda->advanced.modifiers,
                     "`scalingModifiers`: write the formula in PromQL, as the query of one rule");
    if (keda->initial_s > 0)
        convert_leave(convert, as_yaml_find(spec, "initialCooldownPeriod"),
                      "`initialCooldownPeriod`: pause the target when you create the workload: "
                      "alertscaler pause");
}

static void lose_pauses(struct convert *convert, const struct raw_object *object)
{
    static const char prefix[] = "autoscaling.keda.sh/";
    const struct as_yaml_node *map = object->meta.annotations;
    for (uint32_t i = 0; map && map->kind == AS_YAML_MAP && i < map->count; i++) {
        const struct as_yaml_node *key = map->pairs[i].key, *value = map->pairs[i].value;
        if (!as_str_starts_with(key->text, prefix) ||
            (value->kind == AS_YAML_SCALAR && strcmp(value->text, "false") == 0))
            continue;
        convert_lose(convert, key,
                     "annotation `%.80s`: to pause the target use `alertscaler pause`, to set its "
                     "size `alertscaler scale`",
                     key->text);
    }
}

/* --- bounds --- */

static bool has_kind(const struct raw_keda *keda, bool is_resource)
{
    for (size_t i = 0; i < keda->trigger_count; i++) {
        if (keda_trigger_is_resource(&keda->triggers[i]) == is_resource)
            return true;
    }
    return false;
}

/* The least size, and how far below it a workload without work goes. */
static void keda_set_bounds(struct convert *convert, const struct raw_keda *keda,
                            const struct as_yaml_node *spec, struct plan_target *target)
{
    const bool has_resources = has_kind(keda, true), has_others = has_kind(keda, false);
    target->min = keda->idle >= 0 ? keda->idle : keda->min;
    target->max = keda->max;
    if (target->min > 0 || keda->trigger_count == 0)
        return;
    if (!has_others) {
        target->min = keda->min > 0 ? keda->min : 1;
        convert_hint(convert, spec,
                     "cpu and memory have no value without pods, so the size does not go below %d",
                     target->min);
    } else if (has_resources) {
        convert_lose(convert, spec,
                     "the way to zero: a rule by cpu or memory keeps at least one replica, and the "
                     "highest size wins. Remove that rule, or set `min: 1`");
    }
}

/* KEDA waits for `cooldownPeriod` before zero, and its HPA for the window before all else. */
static void set_window(struct convert *convert, const struct raw_keda *keda,
                       const struct as_yaml_node *spec, struct plan_target *target)
{
    struct as_scaling_rules *down = &target->behavior.down;
    const struct as_yaml_node *period = as_yaml_find(spec, "cooldownPeriod");
    const int64_t window_s = down->window_us / AS_US_PER_S;
    if (target->min > 0 || keda->cooldown_s <= window_s)
        return;
    const int32_t taken = keda->cooldown_s < WINDOW_MAX_S ? keda->cooldown_s : WINDOW_MAX_S;
    down->window_us = taken * AS_US_PER_S;
    if (taken < keda->cooldown_s)
        convert_lose(convert, period,
                     "a `cooldownPeriod` of more than an hour: the window is %d s. Give the rule a "
                     "`guard`, or use a query over a longer time",
                     WINDOW_MAX_S);
    else
        convert_hint(convert, period ? period : spec,
                     "`cooldownPeriod` becomes the window of every step down, not only of the one "
                     "to zero");
}

static void fill_reference(struct raw_reference *reference)
{
    if (!reference->kind)
        reference->kind = "Deployment";
    if (!reference->api_version && strcmp(reference->kind, "Deployment") != 0 &&
        strcmp(reference->kind, "StatefulSet") != 0)
        reference->api_version = "apps/v1"; /* KEDA's default, for every kind */
}

void keda_convert(struct convert *convert, const struct raw_object *object,
                  const struct as_yaml_node *node)
{
    struct raw_keda keda = {.idle = -1};
    struct plan_target *target = object_start(convert, object);
    if (!object->spec) {
        loader_report(&convert->loader, node, "it has no `spec`");
        return;
    }
    const size_t errors = convert_count_errors(convert);
    schema_fill_defaults(&convert->loader, &keda_table, &keda);
    schema_parse(&convert->loader, &keda_table, object->spec, object->spec, &keda);
    if (!target || convert_count_errors(convert) > errors)
        return;
    fill_reference(&keda.target);
    if (!object_refer(convert, &keda.target, target))
        return;
    lose_parts(convert, object, &keda);
    lose_pauses(convert, object);
    keda_set_bounds(convert, &keda, object->spec, target);
    behavior_read(convert, keda.advanced.hpa.behavior, object->spec, target);
    set_window(convert, &keda, object->spec, target);
    const struct keda_floor floor = {
        .is_zero = target->min == 0,
        .min = keda.idle >= 0 ? keda.min : 0,
    };
    for (size_t i = 0; i < keda.trigger_count; i++)
        keda_add_trigger(convert, target, &keda.triggers[i], &floor);
    keda_add_fallback(convert, target, keda.fallback, keda.polling_s);
    if (target->rule_count > 0)
        object_finish(convert, target);
    else if (target->schedule_count > 0)
        convert_lose(convert, object->spec,
                     "cron triggers alone: after a schedule no rule would bring the size down. "
                     "Write both: docs/from-keda.md#a-cron-trigger");
}
