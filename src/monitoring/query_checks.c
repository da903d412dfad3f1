/*
 * Verdicts of the server about the queries of the rules. An item is one query as written in the
 * rule files; rules with equal queries share it. Items that the present rules lack are forgotten,
 * so that their number is bounded by the rules.
 *
 * It decides nothing: a query that fails is still evaluated, since only the server knows when it
 * accepts the query.
 */
#include <alertscaler/monitoring/query_checks.h>

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/model/promql.h>
#include <alertscaler/model/template.h>
#include <alertscaler/rules/policy.h>
#include <alertscaler/rules/rule_queries.h>

enum item_state { ITEM_WAITING, ITEM_UNDER_WAY, ITEM_CHECKED };

struct item {
    UT_hash_handle hh;          /* by text */
    TAILQ_ENTRY(item) in_queue; /* while it waits */
    char *text;                 /* as written */
    enum item_state state;
    uint64_t call_id;  /* while it is under way */
    unsigned refusals; /* in a row, at run time */
    char *error;       /* the server's text; NULL: it does not fail */
    size_t uses;       /* by rules */
    bool is_unlogged;
    bool is_found; /* in the rule files, while failures are logged */
};

struct as_query_checks {
    struct as_loop *loop;
    const struct as_config *config; /* NULL: stopped */
    const struct as_ruleset *ruleset;
    uint64_t serial; /* of the rule set */
    struct as_source_port *source;
    char *url; /* of the server that gave the verdicts; NULL: none yet */
    struct item *items;
    TAILQ_HEAD(, item) queue;
    struct item *under_way[AS_QUERY_CHECKS_UNDER_WAY]; /* NULL: a free place */
    size_t failing;
    uint64_t changes; /* of errors */
    uint64_t last_call_id;
    int64_t retry_us;
    struct as_timer *retry, *log; /* NULL: not started */
};

struct as_query_checks *as_query_checks_new(struct as_loop *loop)
{
    struct as_query_checks *checks = as_xcalloc(1, sizeof(*checks));
    checks->loop = loop;
    TAILQ_INIT(&checks->queue);
    return checks;
}

static struct item *item_find(const struct as_query_checks *checks, const char *text)
{
    struct item *item;
    HASH_FIND(hh, checks->items, text, strlen(text), item);
    return item;
}

static struct item *item_add(struct as_query_checks *checks, const char *text)
{
    struct item *item = as_xcalloc(1, sizeof(*item));
    item->text = as_xstrdup(text);
    HASH_ADD_KEYPTR(hh, checks->items, item->text, strlen(item->text), item);
    TAILQ_INSERT_TAIL(&checks->queue, item, in_queue);
    return item;
}

static void item_set_error(struct as_query_checks *checks, struct item *item, const char *error)
{
    checks->failing -= item->error != NULL;
    checks->failing += error != NULL;
    checks->changes++;
    item->is_unlogged = error && !item->error;
    free(item->error);
    item->error = error ? as_xstrdup(error) : NULL;
}

static void item_free(struct as_query_checks *checks, struct item *item)
{
    item_set_error(checks, item, NULL);
    if (item->state == ITEM_WAITING)
        TAILQ_REMOVE(&checks->queue, item, in_queue);
    HASH_DEL(checks->items, item);
    free(item->text);
    free(item);
}

/* It is sent again; the answer to an earlier request counts no more. */
static void item_enqueue(struct as_query_checks *checks, struct item *item)
{
    if (item->state == ITEM_WAITING)
        return;
    item->state = ITEM_WAITING;
    TAILQ_INSERT_TAIL(&checks->queue, item, in_queue);
}

/* --- the log --- */

static struct item *find_unlogged(const struct as_query_checks *checks, const char *text)
{
    struct item *item = item_find(checks, text);
    return item && item->is_unlogged ? item : NULL;
}

static void query_checks_log(const char *rule, const char *file, const struct as_yaml_place *place,
                             const char *error)
{
    as_log(AS_LOG_ERROR, "the server refuses a query: its rule fails", AS_F("rule", rule),
           AS_F_IF("file", file), AS_FI("line", place->line), AS_FI("column", place->column),
           AS_F("error", error));
}

static void log_rule_query(void *context, const struct as_rule_query *query)
{
    struct item *item = find_unlogged(context, query->text->text);
    const struct as_yaml_node *name = as_yaml_find(query->rule, "name");
    const char *message;
    if (!item)
        return;
    const struct as_yaml_node at = as_rule_query_locate(query, item->error, &message);
    item->is_found = true;
    query_checks_log(name && name->kind == AS_YAML_SCALAR ? name->text : "",
                     as_yaml_get_file(query->tree), &at.place, message);
}

/* A rule file has changed since, or cannot be read. */
static void log_without_place(const struct as_query_checks *checks, const struct as_rule *rule,
                              const struct as_template *query)
{
    const struct item *item = query ? find_unlogged(checks, as_template_get_text(query)) : NULL;
    if (item && !item->is_found)
        query_checks_log(rule->name, "", &(struct as_yaml_place){0}, item->error);
}

/* The rule files are read again for the places: the present rules have no places. */
static void on_log_due(void *context)
{
    struct as_query_checks *checks = context;
    struct as_diagnostics reported = AS_DIAGNOSTICS_INIT; /* by the load */
    struct item *item, *next;
    checks->log = NULL;
    for (size_t i = 0; checks->config && i < checks->config->rule_file_count; i++) {
        AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
        if (as_rule_file_load(checks->config->rule_files[i], &reported, &tree) == AS_YAML_OK)
            as_rule_queries_visit(tree, log_rule_query, checks);
    }
    as_diagnostics_deinit(&reported);
    for (size_t i = 0; checks->config && i < checks->ruleset->rule_count; i++) {
        const struct as_rule *rule = checks->ruleset->rules[i];
        log_without_place(checks, rule, rule->source.query);
        log_without_place(checks, rule, rule->guard);
    }
    HASH_ITER (hh, checks->items, item, next)
        item->is_unlogged = item->is_found = false;
}

static void query_checks_fail(struct as_query_checks *checks, struct item *item, const char *error)
{
    item_set_error(checks, item, error);
    if (item->is_unlogged && !checks->log)
        checks->log = checks->loop->start_timer(checks->loop, AS_QUERY_LOG_US, on_log_due, checks);
}

/* --- at the load --- */

static void query_checks_send(struct as_query_checks *checks);

static void on_retry_due(void *context)
{
    struct as_query_checks *checks = context;
    checks->retry = NULL;
    query_checks_send(checks);
}

static void query_checks_retry_later(struct as_query_checks *checks, const char *error)
{
    if (checks->retry)
        return;
    as_log(AS_LOG_INFO, "queries cannot be checked now, and are checked later",
           AS_F("error", error), AS_FI("seconds", checks->retry_us / AS_US_PER_S));
    checks->retry = checks->loop->start_timer(checks->loop, checks->retry_us, on_retry_due, checks);
    checks->retry_us *= 2;
    if (checks->retry_us > AS_QUERY_RETRY_MAX_US)
        checks->retry_us = AS_QUERY_RETRY_MAX_US;
}

/* The item of an answer, which leaves its place; NULL: the answer is to an earlier request. */
static struct item *take_answered(struct as_query_checks *checks, uint64_t call_id)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(checks->under_way); i++) {
        struct item *item = checks->under_way[i];
        if (!item || item->call_id != call_id)
            continue;
        checks->under_way[i] = NULL;
        return item;
    }
    return NULL;
}

static void on_verdict(void *context, uint64_t call_id, enum as_query_verdict verdict,
                       const char *error)
{
    struct as_query_checks *checks = context;
    struct item *item = take_answered(checks, call_id);
    if (!item)
        return;
    item->state = ITEM_CHECKED;
    switch (verdict) {
    case AS_QUERY_ACCEPTED: item_set_error(checks, item, NULL); break;
    case AS_QUERY_REFUSED: query_checks_fail(checks, item, error); break;
    case AS_QUERY_UNCHECKED:
        item_enqueue(checks, item);
        query_checks_retry_later(checks, error);
        break;
    }
    query_checks_send(checks);
}

static void query_checks_send(struct as_query_checks *checks)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(checks->under_way) && !checks->retry; i++) {
        struct item *item = TAILQ_FIRST(&checks->queue);
        if (!item)
            return;
        if (checks->under_way[i])
            continue;
        bool has_templates;
        AS_CLEANUP(as_free_p) char *text = as_promql_fill(item->text, &has_templates);
        TAILQ_REMOVE(&checks->queue, item, in_queue);
        item->state = ITEM_UNDER_WAY;
        item->call_id = ++checks->last_call_id;
        checks->under_way[i] = item;
        checks->source->parse(checks->source, item->call_id, text, on_verdict, checks);
    }
}

static void want_query(struct as_query_checks *checks, const struct as_template *query)
{
    if (!query)
        return;
    struct item *item = item_find(checks, as_template_get_text(query));
    if (!item)
        item = item_add(checks, as_template_get_text(query));
    item->uses++;
}

static void give_query_up(struct as_query_checks *checks, const struct as_template *query)
{
    struct item *item = query ? item_find(checks, as_template_get_text(query)) : NULL;
    if (!item || --item->uses > 0)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(checks->under_way); i++)
        if (checks->under_way[i] == item)
            checks->under_way[i] = NULL;
    item_free(checks, item);
}

/* Of the queries that go to `prometheus`: those of a tenant go elsewhere. */
static void note_queries(struct as_query_checks *checks, const struct as_ruleset *ruleset,
                         void (*note)(struct as_query_checks *checks,
                                      const struct as_template *query))
{
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        const struct as_policy_terms *policy = rule->target->policy;
        if (policy && policy->is_tenant)
            continue;
        note(checks, rule->source.query);
        note(checks, rule->guard);
    }
}

/* Only some policies have changed since the last call. */
static void check_changes(struct as_query_checks *checks, const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->added_count; i++)
        note_queries(checks, ruleset->added[i], want_query);
    for (size_t i = 0; i < ruleset->removed_count; i++)
        note_queries(checks, ruleset->removed[i], give_query_up);
    checks->ruleset = ruleset;
    checks->serial = ruleset->serial;
    query_checks_send(checks);
}

void as_query_checks_start(struct as_query_checks *checks, const struct as_config *config,
                           const struct as_ruleset *ruleset, struct as_source_port *source)
{
    const char *url = config->settings.prometheus.url;
    const bool is_other_server = !as_str_equal(checks->url, url);
    struct item *item, *next;
    if (checks->config == config && checks->source == source && ruleset->base != 0 &&
        ruleset->base == checks->serial) {
        check_changes(checks, ruleset);
        return;
    }
    as_query_checks_stop(checks);
    HASH_ITER (hh, checks->items, item, next)
        item->uses = 0;
    note_queries(checks, ruleset, want_query);
    HASH_ITER (hh, checks->items, item, next) {
        if (item->uses == 0) {
            item_free(checks, item);
        } else if (is_other_server) {
            item_set_error(checks, item, NULL);
            item->refusals = 0;
            item_enqueue(checks, item);
        }
    }
    free(checks->url);
    checks->url = url ? as_xstrdup(url) : NULL;
    if (!url || !source->parse)
        return;
    checks->config = config;
    checks->ruleset = ruleset;
    checks->serial = ruleset->serial;
    checks->source = source;
    checks->retry_us = AS_QUERY_RETRY_MIN_US;
    query_checks_send(checks);
}

void as_query_checks_stop(struct as_query_checks *checks)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(checks->under_way); i++) {
        if (checks->under_way[i])
            item_enqueue(checks, checks->under_way[i]);
        checks->under_way[i] = NULL;
    }
    checks->loop->cancel_timer(checks->loop, checks->retry);
    checks->retry = NULL;
    if (checks->log) {
        checks->loop->cancel_timer(checks->loop, checks->log);
        on_log_due(checks); /* by the files of the configuration that ends */
    }
    checks->config = NULL;
    checks->source = NULL;
}

/* --- at run time --- */

void as_query_checks_note(struct as_query_checks *checks, const char *written,
                          enum as_query_verdict verdict, const char *error)
{
    struct item *item = item_find(checks, written);
    if (!item)
        return;
    if (verdict == AS_QUERY_ACCEPTED) {
        item->refusals = 0;
        item_set_error(checks, item, NULL);
    } else if (verdict == AS_QUERY_REFUSED && ++item->refusals >= AS_QUERY_REFUSALS &&
               !item->error) {
        query_checks_fail(checks, item, error);
    }
}

/* --- for people --- */

static const char *item_find_error(const struct as_query_checks *checks,
                                   const struct as_template *query)
{
    const struct item *item = query ? item_find(checks, as_template_get_text(query)) : NULL;
    return item ? item->error : NULL;
}

const char *as_query_checks_find_error(const struct as_query_checks *checks,
                                       const struct as_rule *rule)
{
    if (!checks || checks->failing == 0)
        return NULL;
    const char *error = item_find_error(checks, rule->source.query);
    return error ? error : item_find_error(checks, rule->guard);
}

uint64_t as_query_checks_count_changes(const struct as_query_checks *checks)
{
    return checks ? checks->changes : 0;
}

void as_query_checks_visit_failing(const struct as_query_checks *checks,
                                   const struct as_ruleset *ruleset, as_failing_rule_fn *visit,
                                   void *context)
{
    for (size_t i = 0; checks && checks->failing > 0 && i < ruleset->rule_count; i++) {
        const char *error = as_query_checks_find_error(checks, ruleset->rules[i]);
        if (error)
            visit(context, ruleset->rules[i], error);
    }
}

struct as_query_checks *as_query_checks_free(struct as_query_checks *checks)
{
    struct item *item, *next;
    if (!checks)
        return NULL;
    as_query_checks_stop(checks);
    HASH_ITER (hh, checks->items, item, next)
        item_free(checks, item);
    free(checks->url);
    free(checks);
    return NULL;
}
