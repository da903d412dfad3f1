/*
 * `alertscaler check`: reads configurations and rule files as the daemon would, and reports all
 * problems. It also warns of parts that cannot work together, including the files of Alertmanager
 * and Prometheus. It changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/daemon/daemon_process.h>
#include <alertscaler/daemon/web_tls.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/http/secret_file.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/model/promql.h>
#include <alertscaler/model/source.h>
#include <alertscaler/model/template.h>
#include <alertscaler/monitoring/prometheus.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/rules/external_url.h>
#include <alertscaler/rules/policy.h>
#include <alertscaler/rules/rule_queries.h>
#include <alertscaler/rules/web_config.h>
#include <alertscaler/tools/lint.h>

#include "check_policies.h"
#include "cli.h"
#include "cluster_read.h"
#include "http_call.h"

/* --- files that are named in a configuration --- */

/*
 * They are found by their keys: `..._file` and `..._file_path` anywhere but in the parameters for a
 * token server, `files` of a header, `file` of a token; and the files that a cluster's kubeconfig
 * names.
 */

#define FILE_MAX ((size_t)16 * 1024 * 1024)

struct walk {
    const struct as_yaml_tree *tree;
    struct as_diagnostics *diagnostics;
    const char *path;                /* of the configuration */
    const struct as_yaml_node *node; /* the present cluster */
};

static void warn_unreadable(struct walk *walk, const struct as_yaml_node *node, const char *path)
{
    char *text;
    size_t size;
    const int status = as_file_read(path, FILE_MAX, &text, &size);
    if (status == 0)
        as_wipe_free(text);
    else
        as_yaml_warn(walk->tree, node, AS_YAML_SHOW, walk->diagnostics,
                     "%s cannot be read now: %s; what needs it fails until it can", path,
                     as_errno_get_text(status));
}

/* Paths in a configuration are relative to its folder. */
static char *check_resolve(const struct walk *walk, const char *path)
{
    const char *slash = strrchr(walk->path, '/');
    if (path[0] == '/' || !slash)
        return as_xstrdup(path);
    return as_xasprintf("%.*s/%s", (int)(slash - walk->path), walk->path, path);
}

static void check_named_file(struct walk *walk, const struct as_yaml_node *node)
{
    AS_CLEANUP(as_free_p) char *path = check_resolve(walk, node->text);
    warn_unreadable(walk, node, path);
}

static void check_secret(struct walk *walk, const struct as_yaml_node *node)
{
    AS_CLEANUP(as_free_p) char *path = check_resolve(walk, node->text);
    struct as_secret_file file;
    struct as_error error = AS_ERROR_INIT;
    const char *text;
    as_secret_file_init(&file, path);
    if (as_secret_file_get(&file, (as_mono_time){0}, 0, &text, &error) != 0)
        as_yaml_report(walk->tree, node, AS_YAML_SHOW, walk->diagnostics,
                       "%s; alertscaler does not start without it", error.text);
    as_secret_file_deinit(&file);
}

static bool is_file_key(const char *key)
{
    return as_str_glob("?*_file", key) || as_str_glob("?*_file_path", key);
}

static void check_map(struct walk *walk, const struct as_yaml_node *map);

static void check_file_pair(struct walk *walk, const struct as_yaml_pair *pair)
{
    const struct as_yaml_node *value = pair->value;
    if (strcmp(pair->key->text, "endpoint_params") == 0)
        return;
    if (value->kind == AS_YAML_MAP)
        check_map(walk, value);
    else if (value->kind == AS_YAML_SCALAR && is_file_key(pair->key->text))
        check_named_file(walk, value);
    for (uint32_t i = 0; value->kind == AS_YAML_LIST && i < value->count; i++) {
        if (strcmp(pair->key->text, "files") == 0)
            check_named_file(walk, value->items[i]);
        else if (value->items[i]->kind == AS_YAML_MAP)
            check_map(walk, value->items[i]);
    }
}

static void check_map(struct walk *walk, const struct as_yaml_node *map)
{
    for (uint32_t i = 0; i < map->count; i++)
        check_file_pair(walk, &map->pairs[i]);
}

/* Checks the key in each map of a list. */
static void check_secrets(struct walk *walk, const struct as_yaml_node *list, const char *key)
{
    for (uint32_t i = 0; list && i < list->count; i++)
        check_secret(walk, as_yaml_find(list->items[i], key));
}

static void check_named(void *context, const char *path, bool is_program)
{
    struct walk *walk = context;
    if (!is_program)
        warn_unreadable(walk, walk->node, path);
}

static const char *check_get_variable(const char *name)
{
    return getenv(name);
}

static void check_kubeconfig(struct walk *walk, const struct as_cluster_settings *cluster)
{
    const struct as_access_env env = {.get_variable = check_get_variable};
    const struct as_kube_access_config config = {cluster->kubeconfig, cluster->context};
    const struct as_yaml_node *clusters = as_yaml_find(as_yaml_get_root(walk->tree), "clusters");
    const struct as_yaml_node *map = as_yaml_find(clusters, cluster->name);
    const struct as_yaml_node *context = as_yaml_find(map, "context");
    struct as_kube_access *access;
    struct as_error error = AS_ERROR_INIT;
    if (!cluster->kubeconfig && !cluster->context)
        return; /* depends on where the daemon runs */
    walk->node = cluster->kubeconfig ? as_yaml_find(map, "kubeconfig") : context;
    if (as_kube_access_new(&config, &env, &access, &error) != 0) {
        as_yaml_report(walk->tree, walk->node, AS_YAML_SHOW, walk->diagnostics,
                       "%s; alertscaler does not start without it", error.text);
        return;
    }
    as_kube_access_free(access);
    as_kube_access_visit_files(&config, &env, check_named, walk);
}

/* Only if it is written: the default is for the daemon's machine. */
static void check_writable_place(struct walk *walk, const char *key, const char *path)
{
    const struct as_yaml_node *map = as_yaml_find(as_yaml_get_root(walk->tree), key);
    const struct as_yaml_node *node = as_yaml_find(map, "path");
    struct as_error error = AS_ERROR_INIT;
    if (node && as_writable_check(path, true, &error) != 0)
        as_yaml_warn(walk->tree, node, AS_YAML_SHOW, walk->diagnostics,
                     "%s, or name another place; alertscaler does not start here", error.text);
}

/*
 * Errors: files without which the daemon does not start: tokens and secrets of the receiver,
 * kubeconfig files and their contexts. Warnings: all other files, which are read only when a
 * request needs them; and places of state and action log that the present user, who need not be the
 * daemon's, cannot write. The configuration must have loaded without errors, from its path.
 */
static void check_named_files(const struct as_config *config, struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    const struct as_settings *settings = &config->settings;
    if (as_yaml_load(config->path, diagnostics, &tree) != AS_YAML_OK)
        return; /* reported by the load */
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    const struct as_yaml_node *receiver = as_yaml_find(root, "receiver");
    struct walk walk = {.tree = tree, .diagnostics = diagnostics, .path = config->path};
    check_secrets(&walk, as_yaml_find(receiver, "tokens"), "file");
    check_secrets(&walk, as_yaml_find(receiver, "hmac"), "secret_file");
    for (uint32_t i = 0; root->kind == AS_YAML_MAP && i < root->count; i++) {
        if (root->pairs[i].value != receiver)
            check_file_pair(&walk, &root->pairs[i]);
    }
    for (size_t i = 0; i < settings->cluster_count; i++)
        check_kubeconfig(&walk, &settings->clusters[i]);
    if (settings->state.store == AS_STORE_SQLITE)
        check_writable_place(&walk, "state", settings->state.path);
    check_writable_place(&walk, "action_log", settings->action_log.path);
}

/* --- the targets of a configuration in their clusters --- */

/* Whether each can be read, and which other controller sizes it. */

#define TIMEOUT_US (60 * AS_US_PER_S)

struct asked { /* a target; its index is its ticket */
    struct as_target_ref *ref;
    bool awaits_others, awaits_list;
};

struct inspection {
    const struct as_config *config;
    struct as_diagnostics *diagnostics;
    struct asked *asked;     /* one for each target of the rule files */
    size_t waiting;          /* for sizes and for who else there is */
    struct as_buf *roles_io; /* YAML of the Roles that are missing */
    struct as_buf *lists_io; /* what `allow.list` selects, for people */
};

AS_PRINTF(2, 3)
static void check_warn(struct inspection *inspection, const char *format, ...)
{
    struct as_error text = AS_ERROR_INIT;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text.text, sizeof(text.text), format, arguments);
    va_end(arguments);
    as_diagnostics_add(inspection->diagnostics,
                       &(struct as_diagnostic){.severity = AS_SEVERITY_WARNING,
                                               .file = inspection->config->path,
                                               .message = text.text});
}

static void check_on_observed(void *context, uint64_t call_id, const struct as_observation *result)
{
    struct inspection *inspection = context;
    struct asked *asked = &inspection->asked[call_id];
    inspection->waiting--;
    const struct as_target_config *target = inspection->config->ruleset->targets[call_id];
    const bool is_read = result->outcome == AS_REASON_APPLIED;
    if (is_read && target->bounds.rollout == AS_ROLLOUT_WAIT &&
        result->rollout.progress == AS_PROGRESS_UNKNOWN)
        check_warn(inspection,
                   "target `%s` would never get smaller, as its rollout cannot be read: %s",
                   target->name, result->rollout.why);
    else if (!is_read)
        check_warn(inspection, "target `%s` cannot be read: %s: %s", target->name,
                   as_reason_get_word(result->outcome), result->message);
    if (result->right)
        as_buf_printf(inspection->roles_io, "---\n%s", result->right);
    if (is_read)
        return;
    inspection->waiting -= asked->awaits_others;
    asked->awaits_others = false;
}

static void on_others_found(void *context, const char *target, const struct as_other *others,
                            size_t count)
{
    struct inspection *inspection = context;
    const struct as_ruleset *ruleset = inspection->config->ruleset;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        struct asked *asked = &inspection->asked[i];
        if (!asked->awaits_others || strcmp(asked->ref->id, target) != 0)
            continue;
        asked->awaits_others = false;
        inspection->waiting--;
        for (size_t k = 0; k < count; k++)
            check_warn(inspection, "target `%s`: the %s %s sizes it too%s",
                       ruleset->targets[i]->name, others[k].kind, others[k].name,
                       others[k].is_paused ? " (paused)" : "");
    }
}

static void check_on_listed(void *context, uint64_t call_id, const struct as_object_list *list)
{
    struct inspection *inspection = context;
    const struct as_target_config *target = inspection->config->ruleset->targets[call_id];
    AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(SIZE_MAX / 2);
    size_t count = 0;
    inspection->waiting--;
    inspection->asked[call_id].awaits_list = false;
    for (size_t i = 0; i < list->count; i++) {
        const struct as_listed_object *object = &list->items[i];
        AS_CLEANUP(as_target_ref_free_p)
        struct as_target_ref *ref =
            as_target_ref_of_object(target, object->namespace_, object->name);
        if (!ref)
            continue;
        as_buf_printf(&names, "  %s%s%s\n", object->namespace_, *object->namespace_ ? "/" : "",
                      object->name);
        count++;
    }
    as_buf_printf(inspection->lists_io, "target `%s` lists %zu object%s", target->name, count,
                  count == 1 ? "" : "s");
    if (list->count > count)
        as_buf_printf(inspection->lists_io, "; `allow` leaves out %zu more", list->count - count);
    as_buf_printf(inspection->lists_io, "\n%s", names.data ? names.data : "");
    if (list->error)
        check_warn(inspection, "target `%s`: the list of `allow.list` is not complete: %s",
                   target->name, list->error);
    if (list->right)
        as_buf_printf(inspection->roles_io, "---\n%s", list->right);
}

/* Only an address without templates is known before an alert. */
static void check_ask(struct inspection *inspection, struct as_target_port *port, size_t i)
{
    const struct as_target_config *target = inspection->config->ruleset->targets[i];
    AS_CLEANUP(as_labels_free_p) struct as_labels *none = NULL;
    struct as_error error = AS_ERROR_INIT;
    struct asked *asked = &inspection->asked[i];
    if (target->list_selector) {
        inspection->waiting++;
        asked->awaits_list = true;
        port->list(port, i, &(struct as_object_list_request){.entry = target}, check_on_listed,
                   inspection);
    }
    if (target->kind != &as_target_kind_kubernetes || target->is_templated ||
        as_labels_new(NULL, 0, &none) != 0 ||
        as_target_ref_new(target, none, none, &asked->ref, &error) != AS_TARGET_OK)
        return;
    struct as_sized sized;
    as_sized_read(asked->ref, &sized);
    asked->awaits_others =
        *as_target_ref_get(asked->ref, "namespace") && sized.what == AS_SIZED_SCALE;
    inspection->waiting += 1 + asked->awaits_others;
    const bool with_rollout = target->bounds.rollout == AS_ROLLOUT_WAIT;
    port->observe(port, i, asked->ref, &(struct as_observe_request){.with_rollout = with_rollout},
                  check_on_observed, inspection);
}

/* A list that never comes is given up after TIMEOUT_US. */
static void check_await(const struct inspection *inspection, struct event_base *base)
{
    const as_mono_time began = session_clock.get_mono(&session_clock);
    while (inspection->waiting > 0 &&
           session_clock.get_mono(&session_clock).us - began.us < TIMEOUT_US) {
        if (event_base_loop(base, EVLOOP_ONCE) != 0)
            break; /* nothing can come any more */
    }
}

/* Warnings: Kubernetes objects without templates that cannot be read, with the reason; HPAs and
 * ScaledObjects that aim at them. Adds the Roles that are missing, and what `allow.list` selects.
 * Changes nothing. Takes at most a minute. */
static void check_targets(const struct as_config *config, const struct as_adapters *adapters,
                          struct as_diagnostics *diagnostics, struct as_buf *roles_io,
                          struct as_buf *lists_io)
{
    const size_t count = config->ruleset->target_count;
    struct inspection inspection = {
        .config = config, .diagnostics = diagnostics, .roles_io = roles_io, .lists_io = lists_io};
    struct as_error error = AS_ERROR_INIT;
    struct as_target_port *port = NULL;
    struct event_base *base = event_base_new();
    if (!base)
        abort();
    inspection.asked = as_xcalloc(count + 1, sizeof(*inspection.asked));
    struct as_outside *outside =
        adapters->new_outside(base, &session_clock, session_ignore_transfer, NULL);
    adapters->set_permit(outside, NULL, NULL, NULL, NULL, on_others_found, NULL, &inspection);
    if (adapters->new_targets(outside, &config->settings, &port, &error) == 0) {
        for (size_t i = 0; i < count; i++)
            check_ask(&inspection, port, i);
        check_await(&inspection, base);
        port->close(port);
        for (size_t i = 0; i < count; i++)
            if (inspection.asked[i].awaits_list)
                check_warn(&inspection, "target `%s`: no list of `allow.list` within %d s",
                           config->ruleset->targets[i]->name, (int)(TIMEOUT_US / AS_US_PER_S));
    } else {
        check_warn(&inspection, "the clusters cannot be asked: %s", error.text);
    }
    for (size_t i = 0; i < count; i++)
        as_target_ref_free(inspection.asked[i].ref);
    free(inspection.asked);
    adapters->free_outside(outside);
    event_base_free(base);
}

/* --- the queries of rule files --- */

/*
 * Each query is parsed by the server of --prometheus, else by promtool, if it is installed.
 */

#define QUERY_BODY_MAX ((size_t)16 * 1024 * 1024)
#define QUERY_FORM_MAX ((size_t)3 * AS_QUERY_MAX + 256)
#define QUERY_VALUES   3 /* shown of a query */

struct check_query {
    struct as_rule_query at;
    char *text; /* with its templates filled in */
    bool has_templates, is_refused;
};

struct queries {
    struct as_diagnostics *diagnostics;
    struct as_yaml_tree **trees;
    size_t tree_count;
    struct check_query *items;
    size_t count, capacity;
    struct http_session *session;
    bool lacks_format; /* the server has no AS_PROMETHEUS_FORMAT_PATH */
};

static void collect_query(void *context, const struct as_rule_query *query)
{
    struct queries *queries = context;
    struct check_query item = {.at = *query};
    item.text = as_promql_fill(query->text->text, &item.has_templates);
    queries->items =
        as_xgrow(queries->items, queries->count, &queries->capacity, sizeof(*queries->items));
    queries->items[queries->count++] = item;
}

static void refuse_query(struct queries *queries, struct check_query *query, const char *error)
{
    const char *message;
    const struct as_yaml_node place = as_rule_query_locate(&query->at, error, &message);
    query->is_refused = true;
    as_yaml_report(query->at.tree, &place, AS_YAML_SHOW, queries->diagnostics, "query: %s",
                   message);
}

/* --- by a server --- */

/* 0 and the status, or a negative errno with an error: no answer. */
static int post_query(struct queries *queries, const char *path, const struct check_query *query,
                      const char *more, struct as_buf *body, int *status_out,
                      struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf form = AS_BUF_INIT(QUERY_FORM_MAX);
    as_buf_append_str(&form, "query=");
    as_encode_percent(&form, query->text, strlen(query->text), "");
    as_buf_append_str(&form, more);
    const int outcome =
        http_session_post(queries->session, path, &form, QUERY_BODY_MAX, body, error);
    *status_out = http_session_get_status(queries->session);
    return outcome < 0 ? outcome : 0;
}

/* NULL: it is no document with `status`. A new reference. */
static json_t *load_answer(const struct as_buf *body)
{
    json_t *answer = json_loadb(body->data ? body->data : "", body->size, 0, NULL);
    if (json_is_string(json_object_get(answer, "status")))
        return answer;
    json_decref(answer);
    return NULL;
}

/* False with an error: the query was not checked. */
static bool ask_server(struct queries *queries, struct check_query *query, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(QUERY_BODY_MAX);
    enum as_prometheus_verdict verdict = AS_PROMETHEUS_NO_API;
    int status = 0;
    if (!queries->lacks_format) {
        if (post_query(queries, AS_PROMETHEUS_FORMAT_PATH, query, "", &body, &status, error) < 0)
            return false;
        verdict = as_prometheus_decode_verdict(status, body.data, body.size, error);
        queries->lacks_format = verdict == AS_PROMETHEUS_NO_API;
    }
    if (queries->lacks_format) {
        if (post_query(queries, AS_PROMETHEUS_QUERY_PATH, query, AS_PROMETHEUS_PARSE_ONLY, &body,
                       &status, error) < 0)
            return false;
        verdict = as_prometheus_decode_verdict(status, body.data, body.size, error);
    }
    if (verdict == AS_PROMETHEUS_REJECTS)
        refuse_query(queries, query, error->text);
    return verdict == AS_PROMETHEUS_ACCEPTS || verdict == AS_PROMETHEUS_REJECTS;
}

/* Equal queries are sent once. */
static const struct check_query *find_equal(const struct queries *queries, size_t before)
{
    for (size_t i = 0; i < before; i++) {
        if (strcmp(queries->items[i].text, queries->items[before].text) == 0)
            return &queries->items[i];
    }
    return NULL;
}

static bool ask_server_all(struct queries *queries, struct as_error *error)
{
    for (size_t i = 0; i < queries->count; i++) {
        const struct check_query *equal = find_equal(queries, i);
        if ((!equal || equal->is_refused) && !ask_server(queries, &queries->items[i], error))
            return false;
    }
    return true;
}

/* --- by promtool --- */

/* A rule file with a recording rule for each query, without a name: nothing is left behind. Returns
 * its descriptor, which programs inherit, or a negative errno. */
static int make_promtool_file(const struct queries *queries)
{
    const char *folder = getenv("TMPDIR");
    AS_CLEANUP(as_free_p)
    char *path = as_xasprintf("%s/alertscaler-XXXXXX", as_str_is_empty(folder) ? "/tmp" : folder);
    const int file = mkstemp(path);
    if (file < 0)
        return -errno;
    (void)unlink(path);
    json_t *rules = json_array();
    for (size_t i = 0; i < queries->count; i++)
        json_array_append_new(rules, json_pack("{s:o, s:s}", "record", json_sprintf("query:%zu", i),
                                               "expr", queries->items[i].text));
    json_t *groups = json_pack("{s:[{s:s, s:o}]}", "groups", "name", "queries", "rules", rules);
    const int status = json_dumpfd(groups, file, JSON_COMPACT) == 0 ? 0 : -EIO;
    json_decref(groups);
    if (status)
        close(file);
    return status ? status : file;
}

/* `... rule 3, "query:2": could not parse expression: 1:5: parse error: ...` */
static bool read_promtool_line(struct queries *queries, char *line)
{
    static const char mark[] = "\"query:", what[] = "could not parse expression: ";
    const char *name = strstr(line, mark), *error = strstr(line, what);
    if (!name || !error)
        return false;
    const size_t number = strtoul(name + strlen(mark), NULL, 10);
    line[strcspn(line, "\n")] = '\0';
    if (number < queries->count)
        refuse_query(queries, &queries->items[number], error + strlen(what));
    return number < queries->count;
}

/* True: it has refused a query. */
static bool read_promtool(struct queries *queries, FILE *output, struct as_error *error)
{
    char *line = NULL;
    size_t capacity = 0;
    bool is_any_refused = false;
    as_error_set(error, "promtool cannot check them");
    for (bool is_first = true; getline(&line, &capacity, output) > 0; is_first = false) {
        if (is_first && !strstr(line, "Checking"))
            as_error_set(error, "promtool: %.*s", (int)strcspn(line, "\n"), line);
        is_any_refused = read_promtool_line(queries, line) || is_any_refused;
    }
    free(line);
    return is_any_refused;
}

/* Standard output and standard error of promtool go to `out`. 0 or an errno value. */
static int spawn_promtool(int file, int out, pid_t *pid_out)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("/dev/fd/%d", file);
    const char *const argv[] = {"promtool", "check", "rules", "--lint=none", path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
    const int status =
        posix_spawnp(pid_out, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return status;
}

/* False with an error: the queries were not checked. */
static bool run_promtool(struct queries *queries, int file, struct as_error *error)
{
    int ends[2], exit_status = 0;
    pid_t pid = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        as_error_set_errno(error, -errno, "promtool");
        return false;
    }
    const int status = spawn_promtool(file, ends[1], &pid);
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    if (!output)
        abort(); /* only without memory */
    bool is_checked = false;
    if (status == ENOENT) {
        as_error_set(error, "promtool is not installed; --prometheus=URL checks them, too");
    } else if (status) {
        as_error_set_errno(error, -status, "promtool");
    } else {
        is_checked = read_promtool(queries, output, error);
        while (waitpid(pid, &exit_status, 0) < 0 && errno == EINTR)
            ;
        is_checked = is_checked || (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0);
    }
    (void)fclose(output);
    return is_checked;
}

static bool ask_promtool(struct queries *queries, struct as_error *error)
{
    const int file = make_promtool_file(queries);
    if (file < 0) {
        as_error_set_errno(error, file, "a temporary file for promtool");
        return false;
    }
    const bool is_checked = run_promtool(queries, file, error);
    close(file);
    return is_checked;
}

/* --- their values now --- */

/* The other keys beside the query: the goal that its value is compared with. */
static void print_goal(const struct check_query *query)
{
    for (uint32_t i = 0; i < query->at.map->count; i++) {
        const struct as_yaml_pair *pair = &query->at.map->pairs[i];
        if (pair->value == query->at.text || pair->value->kind != AS_YAML_SCALAR)
            continue;
        fputs(", ", stdout);
        as_safe_text_put(stdout, pair->key->text);
        fputs(": ", stdout);
        as_safe_text_put(stdout, pair->value->text);
    }
    putchar('\n');
}

static void print_query_series(const json_t *data)
{
    const json_t *result = json_object_get(data, "result"), *item;
    const bool is_scalar = json_is_string(json_array_get(result, 1));
    const size_t count = is_scalar ? 1 : json_array_size(result);
    size_t i;
    printf("%zu series%s", count, count == 0 ? ": the query returns nothing now" : ": ");
    if (is_scalar)
        as_safe_text_put(stdout, json_string_value(json_array_get(result, 1)));
    json_array_foreach(result, i, item)
    {
        const char *value = json_string_value(json_array_get(json_object_get(item, "value"), 1));
        if (is_scalar || i == QUERY_VALUES)
            break;
        fputs(i > 0 ? ", " : "", stdout);
        as_safe_text_put(stdout, value ? value : "no value");
    }
    fputs(!is_scalar && count > QUERY_VALUES ? ", ..." : "", stdout);
}

/* Queries with templates have values only for an alert. */
static void print_values(struct queries *queries)
{
    for (size_t i = 0; i < queries->count; i++) {
        const struct check_query *query = &queries->items[i];
        AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(QUERY_BODY_MAX);
        struct as_error error = AS_ERROR_INIT;
        int status = 0;
        printf("%s:%" PRIu32 ": ", as_yaml_get_file(query->at.tree), query->at.text->place.line);
        if (query->has_templates) {
            fputs("has templates: no value without an alert", stdout);
        } else if (post_query(queries, AS_PROMETHEUS_QUERY_PATH, query, "&timeout=10s", &body,
                              &status, &error) < 0) {
            as_safe_text_put(stdout, error.text);
        } else {
            json_t *answer = load_answer(&body);
            const char *text = json_string_value(json_object_get(answer, "error"));
            if (status == 200 && answer)
                print_query_series(json_object_get(answer, "data"));
            else
                printf("HTTP %d: ", status);
            if (status != 200 && text)
                as_safe_text_put(stdout, text);
            json_decref(answer);
        }
        print_goal(query);
    }
}

/* --- hints about them --- */

/*
 * Queries that are right, but may not mean what they say. The server knows which metrics it
 * scrapes, how often, and of which type. What it does not know gives no hint.
 */

#define METRICS_MAX 1000 /* in requests to the server */

struct metric_facts {
    const char *name; /* in a query; not ended by a NUL */
    size_t name_size;
    bool has_metadata, is_scraped, is_gauge; /* the latter two, if the first is set */
    const char *namespace;                   /* of a target: NULL: not known yet */
    bool has_other;                          /* series in this namespace, and in another one */
};

struct query_hints {
    struct queries *queries;
    const struct check_query *query;       /* the present one */
    const struct as_target_config *target; /* of its rule; NULL: a guard, or not known */
    struct metric_facts *metrics;
    size_t metric_count, metric_capacity;
    int64_t interval_us; /* the shortest of the server; 0: not known; below 0: not requested yet */
    bool has_namespace_hint;
};

/* At the place of a byte of the query. */
AS_PRINTF(3, 4)
static void check_hint(const struct query_hints *hints, size_t offset, const char *format, ...)
{
    const struct as_rule_query *at = &hints->query->at;
    struct as_yaml_node inside = *at->text;
    va_list arguments;
    (void)as_yaml_find_inside(at->tree, at->text, offset, &inside.place);
    va_start(arguments, format);
    as_yaml_vreport(at->tree, &inside, AS_SEVERITY_HINT, AS_YAML_SHOW, hints->queries->diagnostics,
                    format, arguments);
    va_end(arguments);
}

/* The member `data` of the answer to a GET; NULL: none. A new reference. */
static json_t *get_server_data(struct queries *queries, const char *path)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(QUERY_BODY_MAX);
    struct as_error error = AS_ERROR_INIT;
    if (http_session_get(queries->session, path, QUERY_BODY_MAX, &body, &error) != HTTP_SESSION_OK)
        return NULL;
    json_t *answer = load_answer(&body);
    json_t *data = json_incref(json_object_get(answer, "data"));
    json_decref(answer);
    return data;
}

/* The shortest scrape interval of the active targets: a range that is too short for this interval
 * is too short for each target. */
static int64_t get_scrape_interval(struct queries *queries)
{
    json_t *data = get_server_data(queries, "/api/v1/targets?state=active");
    const json_t *target;
    int64_t shortest = 0;
    size_t i;
    json_array_foreach(json_object_get(data, "activeTargets"), i, target)
    {
        const char *text = json_string_value(json_object_get(target, "scrapeInterval"));
        int64_t us;
        if (text && as_duration_parse(text, &us, NULL) == 0 && us > 0 &&
            (shortest == 0 || us < shortest))
            shortest = us;
    }
    json_decref(data);
    return shortest;
}

/* The types of a metric's metadata, which only scraped metrics have. False: there are none. */
static bool read_metric_types(struct queries *queries, const char *name, size_t size,
                              bool *is_gauge_out)
{
    AS_CLEANUP(as_free_p)
    char *path = as_xasprintf("/api/v1/metadata?metric=%.*s", (int)size, name);
    AS_CLEANUP(as_free_p) char *key = as_xstrndup(name, size);
    json_t *data = get_server_data(queries, path);
    const json_t *entries = json_object_get(data, key), *entry;
    const bool is_known = json_array_size(entries) > 0;
    size_t i;
    *is_gauge_out = is_known;
    json_array_foreach(entries, i, entry)
    {
        const char *type = json_string_value(json_object_get(entry, "type"));
        *is_gauge_out = *is_gauge_out && as_str_equal(type, "gauge");
    }
    json_decref(data);
    return is_known;
}

/* Series of histograms, summaries and counters have the metadata of their family. */
static bool is_family_scraped(struct queries *queries, const char *name, size_t size)
{
    static const char *const ends[] = {"_bucket", "_count", "_sum", "_total"};
    bool unused;
    for (size_t i = 0; i < AS_ARRAY_SIZE(ends); i++) {
        const size_t end = strlen(ends[i]);
        if (size > end && memcmp(name + size - end, ends[i], end) == 0)
            return read_metric_types(queries, name, size - end, &unused);
    }
    return false;
}

/* NULL: there are too many metrics. */
static struct metric_facts *find_metric(struct query_hints *hints, const char *name, size_t size)
{
    for (size_t i = 0; i < hints->metric_count; i++) {
        struct metric_facts *known = &hints->metrics[i];
        if (known->name_size == size && memcmp(known->name, name, size) == 0)
            return known;
    }
    if (hints->metric_count == METRICS_MAX)
        return NULL;
    hints->metrics = as_xgrow(hints->metrics, hints->metric_count, &hints->metric_capacity,
                              sizeof(*hints->metrics));
    hints->metrics[hints->metric_count] = (struct metric_facts){.name = name, .name_size = size};
    return &hints->metrics[hints->metric_count++];
}

static bool is_one_of(const char *text, size_t size, const char *const *words)
{
    for (; *words; words++) {
        if (strlen(*words) == size && memcmp(*words, text, size) == 0)
            return true;
    }
    return false;
}

/* As find_metric, with the metadata. */
static const struct metric_facts *find_metadata(struct query_hints *hints, const char *name,
                                                size_t size)
{
    struct metric_facts *facts = find_metric(hints, name, size);
    if (!facts || facts->has_metadata)
        return facts;
    facts->has_metadata = true;
    facts->is_scraped = read_metric_types(hints->queries, name, size, &facts->is_gauge) ||
                        is_family_scraped(hints->queries, name, size);
    return facts;
}

static void hint_range(struct query_hints *hints, const struct as_promql_selector *selector)
{
    static const char *const of_counters[] = {"rate", "irate", "increase", NULL};
    static const char *const of_two_samples[] = {"rate",   "irate", "increase",       "delta",
                                                 "idelta", "deriv", "predict_linear", "changes",
                                                 "resets", NULL};
    const size_t size = selector->function_size;
    if (selector->range_us == 0 || !is_one_of(selector->function, size, of_two_samples))
        return;
    const struct metric_facts *facts = find_metadata(hints, selector->name, selector->name_size);
    if (facts && facts->is_gauge && is_one_of(selector->function, size, of_counters))
        check_hint(hints, selector->offset,
                   "the server calls `%.*s` a gauge: `%.*s` is for counters; did you mean `deriv` "
                   "or `delta`?",
                   (int)selector->name_size, selector->name, (int)size, selector->function);
    if (facts && facts->is_scraped && hints->interval_us < 0)
        hints->interval_us = get_scrape_interval(hints->queries);
    if (facts && facts->is_scraped && selector->range_us < 2 * hints->interval_us) {
        char range[AS_DURATION_SIZE], interval[AS_DURATION_SIZE];
        as_duration_print(selector->range_us, range);
        as_duration_print(hints->interval_us, interval);
        check_hint(hints, selector->offset,
                   "the range %s is below two scrape intervals (%s at least): `%.*s` needs two "
                   "samples, and often has fewer",
                   range, interval, (int)size, selector->function);
    }
}

/* The namespace of a rule's target; NULL: none, or it depends on the alert. */
static const char *find_namespace(const struct as_target_config *target)
{
    for (size_t i = 0;
         target && target->kind == &as_target_kind_kubernetes && i < target->address_count; i++) {
        const struct as_address_field *field = &target->address[i];
        if (strcmp(field->key, "namespace") == 0 && as_template_is_plain(field->value) &&
            *as_template_get_text(field->value))
            return as_template_get_text(field->value);
    }
    return NULL;
}

/* The server has series of this metric in the namespace, and in another one. */
static bool has_other_namespace(struct query_hints *hints,
                                const struct as_promql_selector *selector, const char *namespace)
{
    struct metric_facts *facts = find_metric(hints, selector->name, selector->name_size);
    if (!facts || as_str_equal(facts->namespace, namespace))
        return facts && facts->has_other;
    AS_CLEANUP(as_free_p)
    char *path = as_xasprintf("/api/v1/label/namespace/values?match%%5B%%5D=%.*s",
                              (int)selector->name_size, selector->name);
    json_t *data = get_server_data(hints->queries, path);
    const json_t *value;
    bool is_own = false;
    size_t i;
    json_array_foreach(data, i, value) is_own =
        is_own || as_str_equal(json_string_value(value), namespace);
    facts->namespace = namespace;
    facts->has_other = is_own && json_array_size(data) > 1;
    json_decref(data);
    return facts->has_other;
}

/* Metrics of the kubelet and of kube-state-metrics about pods and workloads: of all namespaces. */
static bool is_of_all_namespaces(const struct as_promql_selector *selector)
{
    static const char *const begins[] = {"container_", "kube_pod_", "kube_deployment_",
                                         "kube_statefulset_", "kube_replicaset_"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(begins); i++) {
        const size_t size = strlen(begins[i]);
        if (selector->name_size > size && memcmp(selector->name, begins[i], size) == 0)
            return true;
    }
    return false;
}

static void hint_namespace(struct query_hints *hints, const struct as_promql_selector *selector)
{
    const char *text = hints->query->text, *namespace = find_namespace(hints->target);
    if (hints->has_namespace_hint || hints->query->has_templates || !namespace ||
        as_promql_has_text(text, "namespace") || as_promql_has_text(text, namespace) ||
        !(is_of_all_namespaces(selector) ||
          (hints->queries->session && has_other_namespace(hints, selector, namespace))))
        return;
    hints->has_namespace_hint = true; /* once a query */
    check_hint(hints, selector->offset,
               "the query has no namespace: `%.*s` also has series of other namespaces than `%s`, "
               "where the target is",
               (int)selector->name_size, selector->name, namespace);
}

static void hint_selector(void *context, const struct as_promql_selector *selector)
{
    struct query_hints *hints = context;
    if (hints->queries->session)
        hint_range(hints, selector);
    hint_namespace(hints, selector);
}

/* NULL: it is a guard, or not known. */
static const struct as_target_config *find_query_target(const struct as_config *config,
                                                        const struct as_rule_query *at)
{
    const struct as_yaml_node *name = as_yaml_find(at->rule, "name");
    if (as_yaml_find(at->rule, "guard") == at->map || !name || name->kind != AS_YAML_SCALAR)
        return NULL;
    const struct as_rule *rule = as_ruleset_find_rule(config->ruleset, name->text);
    return rule ? rule->target : NULL;
}

static void add_query_hints(struct queries *queries, const struct as_config *config)
{
    struct query_hints hints = {.queries = queries, .interval_us = -1};
    for (size_t i = 0; i < queries->count; i++) {
        hints.query = &queries->items[i];
        hints.target = find_query_target(config, &hints.query->at);
        hints.has_namespace_hint = false;
        if (!hints.query->is_refused)
            as_promql_visit_selectors(hints.query->text, hint_selector, &hints);
    }
    free(hints.metrics);
}

static void queries_init(struct queries *queries, const struct as_config *config,
                         struct as_diagnostics *diagnostics)
{
    struct as_diagnostics reported = AS_DIAGNOSTICS_INIT; /* by the load */
    *queries = (struct queries){.diagnostics = diagnostics};
    queries->trees = as_xcalloc(config->rule_file_count + 1, sizeof(struct as_yaml_tree *));
    for (size_t i = 0; i < config->rule_file_count; i++) {
        struct as_yaml_tree *tree;
        if (as_rule_file_load(config->rule_files[i], &reported, &tree) != AS_YAML_OK)
            continue;
        queries->trees[queries->tree_count++] = tree;
        as_rule_queries_visit(tree, collect_query, queries);
    }
    as_diagnostics_deinit(&reported);
}

static void queries_deinit(struct queries *queries)
{
    for (size_t i = 0; i < queries->count; i++)
        free(queries->items[i].text);
    free(queries->items);
    for (size_t i = 0; i < queries->tree_count; i++)
        as_yaml_free(queries->trees[i]);
    free(queries->trees);
    http_session_close(queries->session);
}

/* --- the command --- */

#define JSON_MAX ((size_t)64 * 1024 * 1024)

struct check {
    struct as_diagnostics diagnostics;
    struct as_web_config *web; /* NULL: not given, or has errors */
    struct as_lint *lint;      /* NULL: its files have errors */
    size_t target_count, rule_count, file_count;
    char route_prefix[AS_EXTERNAL_URL_SIZE];
    bool is_unreadable;
    bool is_web_alone;                  /* nothing else is checked */
    const struct as_adapters *clusters; /* that ask them; NULL: they are not asked */
    bool is_syntax_only;                /* files named in a configuration are ignored */
    /* what rule files alone need of a configuration */
    bool needs_guards, needs_watchdog, needs_providers, needs_prometheus, needs_clusters;
    /* queries */
    const struct as_args *args;
    const struct as_config *http; /* with the access to Prometheus; NULL: as configured */
    size_t query_count;
    struct as_error unchecked; /* why they were not checked; "": they were */
    struct as_buf roles;       /* YAML of the Roles that --cluster finds missing */
    struct as_buf lists;       /* what --cluster finds for `allow.list` */
};

/* Adds an error for each query that the server, or promtool, refuses. */
static void check_queries(struct check *check, const struct as_config *config)
{
    const char *url = as_args_get(check->args, "prometheus");
    const struct as_config *http = check->http ? check->http : config;
    struct as_error error = AS_ERROR_INIT;
    struct queries queries;
    queries_init(&queries, config, &check->diagnostics);
    if (queries.count > 0) {
        check->query_count += queries.count;
        if (url)
            queries.session =
                http_session_open(check->args->adapters, url, &http->settings.prometheus.http);
        const bool is_checked =
            url ? ask_server_all(&queries, &error) : ask_promtool(&queries, &error);
        if (!is_checked)
            check->unchecked = error;
        if (is_checked || !url)
            add_query_hints(&queries, config);
        if (is_checked && as_args_has(check->args, "values"))
            print_values(&queries);
    }
    queries_deinit(&queries);
}

static void add_result(struct check *check, int status, const struct as_config *config)
{
    if (status < 0)
        check->is_unreadable = true;
    if (!config)
        return;
    check->target_count += config->ruleset->target_count;
    check->rule_count += config->ruleset->rule_count;
    check->file_count += config->rule_file_count;
    if (check->lint)
        as_lint_check(check->lint, config, &check->diagnostics);
    check_queries(check, config);
}

static void check_settings(struct check *check, const char *path)
{
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    int status = as_config_load(path, &config, &check->diagnostics);
    if (config && !check->is_syntax_only)
        check_named_files(config, &check->diagnostics);
    if (config && check->clusters && !check->diagnostics.has_error)
        check_targets(config, check->clusters, &check->diagnostics, &check->roles, &check->lists);
    add_result(check, status, config);
}

/* A decrease for which an alert is no proof, or the end of one. */
static bool rule_needs_proof(const struct as_rule *rule)
{
    const bool is_decrease = rule->action.kind != AS_ACTION_SCALE_UP;
    return rule->guard_kind == AS_GUARD_ABSENT && !rule->is_always &&
           (rule->on_resolved.kind != AS_ENDING_NOTHING || rule->action.is_take ||
            (rule->source.kind == AS_SOURCE_NODES && is_decrease));
}

/* `default` is always there. A template is filled by an alert, within `allow.clusters`. */
static bool names_cluster(const struct as_target_config *target)
{
    for (size_t i = 0; i < target->address_count; i++) {
        const struct as_address_field *field = &target->address[i];
        if (strcmp(field->key, "cluster") == 0 &&
            !as_str_equal(as_template_get_text(field->value), "default"))
            return target->kind == &as_target_kind_kubernetes;
    }
    return false;
}

/* Features that need a configuration, so that rule files alone cannot prove them. */
static void note_needs(struct check *check, const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        check->needs_guards = check->needs_guards || rule->guard_kind == AS_GUARD_QUERY;
        check->needs_watchdog = check->needs_watchdog || rule_needs_proof(rule);
    }
    for (size_t i = 0; i < ruleset->target_count; i++) {
        const struct as_target_config *target = ruleset->targets[i];
        check->needs_providers =
            check->needs_providers || target->kind != &as_target_kind_kubernetes;
        check->needs_clusters = check->needs_clusters || names_cluster(target);
    }
}

static void check_rule_files(struct check *check, const char *const *paths, size_t count)
{
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    int status = as_config_load_rules(paths, count, &config, &check->diagnostics);
    if (config)
        note_needs(check, config->ruleset);
    const size_t before = check->query_count;
    add_result(check, status, config);
    check->needs_prometheus = check->query_count > before;
}

/* Rule files among the operands are checked together: they may refer to each other. */
static void check_operands(struct check *check, const struct as_args *args)
{
    const char **rules = as_xcalloc(args->operand_count, sizeof(*rules));
    size_t rule_count = 0;
    for (size_t i = 0; i < args->operand_count; i++) {
        const char *path = args->operands[i];
        if (as_config_find_kind(path) == AS_CONFIG_RULES)
            rules[rule_count++] = path;
        else
            check_settings(check, path);
    }
    if (rule_count > 0)
        check_rule_files(check, rules, rule_count);
    as_free_p(&rules);
}

static void open_lint(struct check *check, const struct as_args *args)
{
    const char **patterns = as_xcalloc(args->given_count + 1, sizeof(*patterns));
    struct as_lint_sources sources = {
        .alertmanager = as_args_get(args, "alertmanager"),
        .prometheus_rules = patterns,
        .route_prefix = check->route_prefix,
        .web_config_file = as_args_get(args, "web.config.file"),
        .web = check->web ? as_web_config_get(check->web) : NULL,
    };
    const char *pattern = NULL;
    size_t at = 0;
    while ((pattern = as_args_find_next(args, "prometheus-rules", &at)))
        patterns[sources.prometheus_rule_count++] = pattern;
    if (as_lint_new(&sources, &check->diagnostics, &check->lint) < 0)
        check->is_unreadable = true;
    as_free_p(&patterns);
}

static void check_print_json(const struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(JSON_MAX);
    struct as_json_writer json;
    as_json_init(&json, &text, AS_JSON_ANY_ORDER);
    as_json_begin_array(&json);
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct as_diagnostic *item = &diagnostics->items[i];
        as_json_begin_object(&json);
        as_json_write_member(&json, "file", item->file);
        as_json_write_member_i64(&json, "line", item->line);
        as_json_write_member_i64(&json, "column", item->column);
        as_json_write_member_i64(&json, "end_column", item->end_column);
        as_json_write_member(&json, "severity", as_severity_get_word(item->severity));
        as_json_write_member(&json, "message", item->message);
        as_json_end_object(&json);
    }
    as_json_end_array(&json);
    as_buf_append_char(&text, '\n');
    as_safe_json_put(stdout, text.data, text.size);
}

static void print_needs(const struct check *check)
{
    const struct {
        bool is_needed;
        const char *text;
    } needs[] = {{check->needs_guards, "guards"},
                 {check->needs_watchdog, "a watchdog"},
                 {check->needs_providers, "providers"},
                 {check->needs_prometheus, "Prometheus"},
                 {check->needs_clusters, "clusters"}};
    const char *separator = "no error; needs the configuration for: ";
    bool is_any = false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(needs); i++) {
        if (!needs[i].is_needed)
            continue;
        printf("%s%s", separator, needs[i].text);
        separator = ", ";
        is_any = true;
    }
    puts(is_any ? "" : "ok");
}

static void check_print_summary(const struct check *check, const struct as_args *args)
{
    if (as_args_has(args, "web.config.file"))
        printf("%s: ok\n", as_args_get(args, "web.config.file"));
    if (check->is_web_alone)
        return;
    printf("%zu rule file%s, %zu target%s, %zu rule%s: ", check->file_count,
           check->file_count == 1 ? "" : "s", check->target_count,
           check->target_count == 1 ? "" : "s", check->rule_count,
           check->rule_count == 1 ? "" : "s");
    print_needs(check);
}

/* Also checks the files it names: without them the daemon would not start. */
static void check_web(struct check *check, const char *path)
{
    const int status = as_web_config_load(path, &check->web, &check->diagnostics);
    if (status != 0)
        check->is_unreadable = check->is_unreadable || status != -EINVAL;
    if (status != 0 || check->is_syntax_only)
        return;
    AS_CLEANUP(as_tls_server_free_p) struct as_tls_server *tls = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (as_web_tls_new(&as_web_config_get(check->web)->tls, &tls, &error) != 0)
        as_diagnostics_add(&check->diagnostics,
                           &(struct as_diagnostic){.file = path, .message = error.text});
}

static void check_note(struct check *check, const char *option, int status,
                       const struct as_error *error)
{
    if (status != 0)
        as_diagnostics_add(&check->diagnostics,
                           &(struct as_diagnostic){.file = option, .message = error->text});
}

/* Before which path /webhook is: as the daemon with these options has it. */
static void check_address(struct check *check, const struct as_args *args)
{
    struct as_external_url url = {0};
    struct as_error error = AS_ERROR_INIT;
    const char *text = as_args_get(args, "web.external-url");
    const char *prefix = as_args_get(args, "web.route-prefix");
    if (text)
        check_note(check, "--web.external-url", as_external_url_parse(text, &url, &error), &error);
    (void)snprintf(check->route_prefix, sizeof(check->route_prefix), "%s",
                   as_external_url_get_path(&url));
    if (prefix)
        check_note(check, "--web.route-prefix",
                   as_route_prefix_parse(prefix, check->route_prefix, &error), &error);
}

static bool has_warning(const struct as_diagnostics *diagnostics)
{
    for (size_t i = 0; i < diagnostics->count; i++) {
        if (diagnostics->items[i].severity == AS_SEVERITY_WARNING)
            return true;
    }
    return false;
}

/* Of Prometheus' files that a pattern found, only those with rules count. */
static void print_lint(const struct check *check, const struct as_args *args)
{
    const char *alertmanager = as_args_get(args, "alertmanager");
    size_t files = as_lint_get_file_count(check->lint);
    size_t alerts = as_lint_get_alert_count(check->lint);
    if (alertmanager)
        printf("compared with %s\n", alertmanager);
    if (check->query_count > 0 && *check->unchecked.text) {
        fputs("queries were not checked: ", stdout);
        as_safe_text_put(stdout, check->unchecked.text);
        putchar('\n');
    } else if (check->query_count > 0)
        printf("%zu quer%s: ok, by %s\n", check->query_count, check->query_count == 1 ? "y" : "ies",
               as_args_has(args, "prometheus") ? as_args_get(args, "prometheus") : "promtool");
    if (as_args_has(args, "prometheus-rules"))
        printf("compared with %zu alerting rule%s in %zu file%s of Prometheus\n", alerts,
               alerts == 1 ? "" : "s", files, files == 1 ? "" : "s");
}

static void check_print_roles(const struct check *check)
{
    if (check->roles.size == 0 || as_buf_check(&check->roles) != 0)
        return;
    fputs("# To apply with `kubectl apply -f`, if alertscaler runs as the service account "
          "alertscaler/alertscaler:\n",
          stderr);
    as_safe_text_put_lines(stderr, check->roles.data);
}

static int get_status(const struct check *check, const struct as_args *args)
{
    if (check->is_unreadable)
        return AS_EXIT_USAGE;
    if (check->diagnostics.has_error)
        return AS_EXIT_NO;
    bool is_fatal = as_args_has(args, "lint-fatal") && has_warning(&check->diagnostics);
    return is_fatal ? AS_EXIT_LINT : AS_EXIT_OK;
}

/* The web configuration is checked alone if there is nothing else: the user may have no
 * configuration yet, or work in another folder. */
static bool is_web_alone(const struct as_args *args)
{
    return as_args_has(args, "web.config.file") && !as_args_has(args, "config.file") &&
           !as_args_has(args, "alertmanager") && !as_args_has(args, "prometheus-rules") &&
           args->operand_count == 0 && access(config_option_find(args), F_OK) != 0 &&
           errno == ENOENT;
}

/* Whether the options for queries are right. */
static int check_query_options(struct check *check, const struct as_args *args,
                               struct as_config **http_out)
{
    const char *url = as_args_get(args, "prometheus"),
               *http = as_args_get(args, "http.config.file");
    if (!url && (http || as_args_has(args, "values")))
        return as_cli_fail(args, "--http.config.file and --values need --prometheus=URL");
    if (url && strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return as_cli_fail(args, "--prometheus: write --prometheus=http://%s", url);
    if (as_args_has(args, "values") && as_str_equal(as_args_get(args, "format"), "json"))
        return as_cli_fail(args, "--values needs --format=text");
    const int status = http ? rules_load_http(args, http, http_out) : 0;
    check->http = *http_out;
    return status;
}

/* --- the policies of a cluster --- */

static int check_run_cluster(const struct as_args *args)
{
    struct check check = {.args = args, .diagnostics = AS_DIAGNOSTICS_INIT};
    struct checked_policies checked = {0};
    const bool is_json = as_str_equal(as_args_get(args, "format"), "json");
    int status = check_policies_options(args);
    if (status != AS_EXIT_OK)
        return status;
    status = check_cluster_policies(args, &check.diagnostics, &checked);
    check.is_unreadable = status == AS_EXIT_USAGE;
    as_diagnostics_sort(&check.diagnostics);
    if (is_json)
        check_print_json(&check.diagnostics);
    else
        as_diagnostics_print(&check.diagnostics, stderr);
    if (status == AS_EXIT_OK && !is_json) {
        printf("%zu polic%s in %s: ", checked.count, checked.count == 1 ? "y" : "ies",
               checked.where);
        if (checked.refused > 0)
            printf("%zu refused\n", checked.refused);
        else
            puts("ok");
    }
    status = get_status(&check, args);
    as_diagnostics_deinit(&check.diagnostics);
    return status;
}

static int check_run(const struct as_args *args)
{
    const int unfit = cluster_read_check_options(args);
    if (unfit != AS_EXIT_OK)
        return unfit;
    if (as_args_has(args, "from-cluster"))
        return check_run_cluster(args);
    if (as_args_has(args, "namespace"))
        return as_cli_fail(args, "--namespace needs --from-cluster");
    AS_CLEANUP(as_config_free_p) struct as_config *http = NULL;
    struct check check = {.args = args,
                          .unchecked = AS_ERROR_INIT,
                          .diagnostics = AS_DIAGNOSTICS_INIT,
                          .is_web_alone = is_web_alone(args),
                          .clusters = as_args_has(args, "cluster") ? args->adapters : NULL,
                          .is_syntax_only = as_args_has(args, "syntax-only"),
                          .roles = AS_BUF_INIT(JSON_MAX),
                          .lists = AS_BUF_INIT(SIZE_MAX / 2)};
    bool is_json = as_str_equal(as_args_get(args, "format"), "json");
    int status = check_query_options(&check, args, &http);
    if (status)
        return status;
    if (as_args_has(args, "web.config.file"))
        check_web(&check, as_args_get(args, "web.config.file"));
    check_address(&check, args);
    open_lint(&check, args);
    if (args->operand_count > 0)
        check_operands(&check, args);
    else if (!check.is_web_alone)
        check_settings(&check, config_option_report(args));

    if (as_args_has(args, "require-promql") && *check.unchecked.text)
        check_note(&check, "--require-promql", -1, &check.unchecked);
    as_diagnostics_sort(&check.diagnostics);
    if (is_json)
        check_print_json(&check.diagnostics);
    else
        as_diagnostics_print(&check.diagnostics, stderr);
    if (!is_json)
        check_print_roles(&check);
    if (!check.diagnostics.has_error && !is_json) {
        if (check.lists.size > 0 && as_buf_check(&check.lists) == 0)
            as_safe_text_put_lines(stdout, check.lists.data);
        check_print_summary(&check, args);
        print_lint(&check, args);
    }
    status = get_status(&check, args);
    as_lint_free(check.lint);
    as_web_config_free(check.web);
    as_diagnostics_deinit(&check.diagnostics);
    as_buf_deinit(&check.roles);
    as_buf_deinit(&check.lists);
    return status;
}

static const struct as_option check_options[] = {
    AS_OPTION_CONFIG_FILE("the configuration, if no FILE is given"),
    {.name = "web.config.file",
     .value = "FILE",
     .help = "the web configuration (TLS, users) to check too, or alone"},
    {.name = "web.external-url",
     .value = "URL",
     .help = "the daemon's option of this name, to check too"},
    {.name = "web.route-prefix", .value = "PATH", .help = "the same"},
    {.name = "format",
     .letter = 'o',
     .value = "FORMAT",
     .fallback = "text",
     .choices = as_output_choices,
     .help = "text for people or json for editors and CI"},
    {.name = "alertmanager",
     .value = "FILE",
     .help = "Alertmanager's configuration, or an AlertmanagerConfig, to compare the rules with"},
    {.name = "prometheus-rules",
     .value = "PATTERN",
     .repeats = true,
     .help = "Prometheus' rule files to compare with; quote a pattern"},
    {.name = "prometheus",
     .value = "URL",
     .help = "parses the queries of rules at this server; without it promtool does, if installed"},
    {.name = "http.config.file",
     .value = "FILE",
     .help = "http_config for --prometheus: credentials and TLS"},
    {.name = "values",
     .help = "with --prometheus, also runs each query: its series, values and goal"},
    {.name = "require-promql", .help = "an error if the queries cannot be checked, for CI"},
    {.name = "cluster",
     .help = "asks the clusters of a configuration: can its targets be read, who else sizes them, "
             "what does `allow.list` select"},
    CLUSTER_READ_OPTIONS("checks the scaling policies of the cluster that kubectl would use, for "
                         "example before an upgrade"),
    {.name = "namespace",
     .letter = 'n',
     .value = "NAME",
     .help = "with --from-cluster: the namespace to read instead of that of the context"},
    {.name = "syntax-only",
     .help = "ignores the files that a configuration names: certificates, tokens, kubeconfig"},
    {.name = "lint-fatal", .help = "warnings give exit status 3"},
    {0},
};

const struct as_command as_command_check = {
    .name = "check",
    .operands = "[FILE...]",
    .summary = "Checks configurations, rule files and scaling policies.",
    .help =
        "A configuration is checked with the rule files it names. Rule files given as FILE are\n"
        "checked together, without the clusters and providers of a configuration. A FILE may have\n"
        "scaling policies: one or several documents, in which other objects are passed over. A\n"
        "folder stands for its rule files and policies.\n"
        "With --from-cluster, the scaling policies that the API server has are checked, with the\n"
        "limits of the configuration (`objects`), and the schema of their definition is compared.\n"
        "The file of --web.config.file is checked alone if there is no configuration.\n"
        "The files that a configuration names (tokens, certificates, kubeconfig) are checked too: "
        "an\n"
        "error if the daemon would not start, else a warning; --syntax-only skips them.\n"
        "A path of state or action_log that you cannot write is a warning: the daemon may run as\n"
        "another user, or on another machine.\n"
        "All errors of all files are printed. There are warnings for correct parts that cannot "
        "work\n"
        "together, also with the files of --alertmanager and --prometheus-rules (which are not "
        "checked\n"
        "otherwise: amtool and promtool do that). The queries of rules are parsed by the server "
        "of\n"
        "--prometheus, or by promtool. Exit status 0: no error; 1: errors; 2: a file "
        "cannot\n"
        "be read; 3: warnings only, with --lint-fatal.",
    .options = check_options,
    .operands_max = SIZE_MAX,
    .run = check_run,
};
