/*
 * The set of scaling policies: see the header.
 *
 * Of an object only its `spec` is kept, with the metadata that is read here: the policy is compiled
 * again when the settings change. The judgement of a policy alone (its kind, its queries, ...) is
 * kept beside the compiled rules. Who owns an object is decided at each join.
 */
#include <alertscaler/rules/policy_set.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/doc/json_scan.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/rules/policy.h>

#include "config_private.h"

/* Bytes of the specs of one namespace, and of all. A policy beyond is not in force: a team cannot
 * use up the memory of the others. */
#define SPACE_TEXTS_MAX ((size_t)8 * 1024 * 1024)
#define TEXTS_MAX       ((size_t)64 * 1024 * 1024)
#define PAUSE_TEXT_MAX  256 /* of an annotation */

#define ANNOTATION(name) AS_POLICY_GROUP "/" name

const char *as_policy_reason_get_word(enum as_policy_reason reason)
{
#define WORD(enumerator, word) [enumerator] = (word),
    static const char *const words[] = {AS_POLICY_REASONS(WORD)};
#undef WORD
    assert((size_t)reason < AS_POLICY_REASON_COUNT);
    return words[reason];
}

/* A compiled policy, shared by its entry and the rule sets that it was joined into. */
struct compiled {
    unsigned uses;
    struct as_ruleset *ruleset;
    char *key; /* of its target: two policies with one key aim at one object */
};

struct policy_entry {
    struct as_scaling_policy policy; /* owns its texts, but `ruleset` */
    struct compiled *compiled;       /* NULL: not valid, or not compiled yet */
    struct compiled *former; /* of the last generation in force, if this one is not; or NULL */
    as_mono_time broken;     /* since when this generation is not in force; INT64_MAX: it is */
    bool is_compiled;
    bool is_crowded;              /* its namespace has too much text: its own is not kept */
    enum as_policy_reason judged; /* alone, without other owners */
    char *judgement;              /* its message */
    bool is_judged;               /* by a join, since its generation came */
    bool is_in_force;             /* since the last join */
    bool is_listed;               /* in the list under way */
    char *pending;                /* the object's newest text, if it changes too often; else NULL */
    size_t pending_size;
    as_mono_time minute, taken; /* of its changes: when the count began; the last one in force */
    unsigned changes;           /* since then */
    UT_hash_handle hh;
};

struct text_space { /* the specs of one namespace */
    UT_hash_handle hh;
    size_t bytes;
    char name[];
};

struct joined {
    struct as_ruleset ruleset;
    struct compiled **used;
    size_t used_count;
    struct as_arena arena; /* of the terms, and of names */
};

struct as_policy_set {
    struct policy_entry *entries;       /* by id */
    const struct as_settings *settings; /* that the policies are compiled with */
    struct text_space *spaces;
    size_t text_bytes;
    as_mono_time deadline;
    struct joined *now, *former; /* NULL: the files' own rule set */
};

static void compiled_drop(struct compiled *compiled)
{
    if (!compiled || --compiled->uses > 0)
        return;
    as_ruleset_free(compiled->ruleset);
    free(compiled->key);
    free(compiled);
}

static struct joined *joined_free(struct joined *joined)
{
    if (!joined)
        return NULL;
    for (size_t i = 0; i < joined->used_count; i++)
        compiled_drop(joined->used[i]);
    free(joined->used);
    free(joined->ruleset.targets);
    free(joined->ruleset.rules);
    as_arena_deinit(&joined->arena);
    free(joined);
    return NULL;
}

static void free_const(const char *text)
{
    free((char *)(uintptr_t)text);
}

static struct text_space *text_space_find(const struct as_policy_set *set, const char *namespace)
{
    struct text_space *space;
    HASH_FIND_STR(set->spaces, namespace, space);
    return space;
}

static void count_text(struct as_policy_set *set, const struct as_scaling_policy *policy)
{
    struct text_space *space = text_space_find(set, policy->namespace);
    const size_t size = strlen(policy->namespace) + 1;
    if (policy->text_size == 0)
        return;
    if (!space) {
        space = as_xcalloc(1, sizeof(*space) + size);
        memcpy(space->name, policy->namespace, size);
        HASH_ADD_STR(set->spaces, name, space);
    }
    space->bytes += policy->text_size;
    set->text_bytes += policy->text_size;
}

static void uncount_text(struct as_policy_set *set, const struct as_scaling_policy *policy)
{
    struct text_space *space = text_space_find(set, policy->namespace);
    if (policy->text_size == 0)
        return;
    set->text_bytes -= policy->text_size;
    space->bytes -= policy->text_size;
    if (space->bytes > 0)
        return;
    HASH_DEL(set->spaces, space);
    free(space);
}

static void policy_entry_free(struct as_policy_set *set, struct policy_entry *entry)
{
    struct as_scaling_policy *policy = &entry->policy;
    const char *const texts[] = {policy->namespace, policy->name,        policy->id,
                                 policy->uid,       policy->message,     policy->paused,
                                 policy->paused_up, policy->paused_down, policy->rival};
    uncount_text(set, policy);
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        free_const(texts[i]);
    compiled_drop(entry->compiled);
    compiled_drop(entry->former);
    free(entry->pending);
    free_const(entry->policy.text);
    free(entry->judgement);
    free(entry);
}

struct as_policy_set *as_policy_set_new(void)
{
    struct as_policy_set *set = as_xcalloc(1, sizeof(*set));
    set->deadline = AS_MONO_NEVER;
    return set;
}

struct as_policy_set *as_policy_set_free(struct as_policy_set *set)
{
    struct policy_entry *entry, *next;
    if (!set)
        return NULL;
    HASH_ITER (hh, set->entries, entry, next) {
        HASH_DEL(set->entries, entry);
        policy_entry_free(set, entry);
    }
    joined_free(set->now);
    joined_free(set->former);
    free(set);
    return NULL;
}

/*
 * Objects.
 */

static char *copy_annotation(const struct tree_value *annotations, const char *name)
{
    const char *text = tree_find_text(annotations, name);
    char line[PAUSE_TEXT_MAX];
    if (!text)
        return NULL;
    as_str_copy_line(text, line, sizeof(line));
    return as_xstrdup(line);
}

/* What a compiler needs of the object, as JSON; NULL: the object is too large, or has no spec. */
static char *cut_object(const char *text, size_t size, const struct as_scaling_policy *policy,
                        const struct tree_value *root, size_t *size_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_POLICY_SIZE_MAX);
    struct as_json_writer json;
    const char *spec;
    size_t spec_size;
    if (!json_scan_find_member(text, size, "spec", &spec, &spec_size))
        return NULL;
    as_json_init(&json, &out, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", tree_find_text(root, "apiVersion"));
    as_json_write_member(&json, "kind", tree_find_text(root, "kind"));
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_member(&json, "name", policy->name);
    as_json_write_member(&json, "namespace", policy->namespace);
    as_json_end_object(&json);
    as_json_write_key(&json, "spec");
    as_json_write_raw(&json, spec, spec_size);
    as_json_end_object(&json);
    if (as_buf_check(&out) != 0)
        return NULL;
    return as_buf_take(&out, size_out);
}

static void read_annotations(const struct tree_value *metadata, struct as_scaling_policy *policy)
{
    const struct tree_value *annotations = tree_find(metadata, "annotations");
    policy->paused = copy_annotation(annotations, ANNOTATION("paused"));
    policy->paused_up = copy_annotation(annotations, ANNOTATION("paused-up"));
    policy->paused_down = copy_annotation(annotations, ANNOTATION("paused-down"));
    const char *allows = tree_find_text(annotations, ANNOTATION("allow-hpa"));
    policy->allows_hpa = allows && strcmp(allows, "true") == 0;
}

static struct policy_entry *policy_entry_new(const char *text, size_t size,
                                             const struct tree_value *root)
{
    const struct tree_value *metadata = tree_find(root, "metadata");
    const char *created = tree_find_text(metadata, "creationTimestamp");
    const char *uid = tree_find_text(metadata, "uid");
    struct policy_entry *entry = as_xcalloc(1, sizeof(*entry));
    struct as_scaling_policy *policy = &entry->policy;
    policy->namespace = as_xstrdup(tree_find_text(metadata, "namespace"));
    policy->name = as_xstrdup(tree_find_text(metadata, "name"));
    policy->id = as_xasprintf("%s/%s", policy->namespace, policy->name);
    policy->uid = as_xstrdup(uid ? uid : "");
    if (!created || as_wall_time_parse(created, strlen(created), &policy->created) != 0)
        policy->created.us = INT64_MAX; /* the youngest */
    (void)tree_get_i64(tree_find(metadata, "generation"), 0, INT64_MAX, &policy->generation);
    read_annotations(metadata, policy);
    policy->text = cut_object(text, size, policy, root, &policy->text_size);
    entry->broken = AS_MONO_NEVER;
    policy->message = as_xstrdup("");
    return entry;
}

static bool policy_is_same(const struct as_scaling_policy *a, const struct as_scaling_policy *b)
{
    return strcmp(a->uid, b->uid) == 0 && a->generation == b->generation &&
           as_str_equal(a->paused, b->paused) && as_str_equal(a->paused_up, b->paused_up) &&
           as_str_equal(a->paused_down, b->paused_down) && a->allows_hpa == b->allows_hpa;
}

/* Takes over what is known of the same object. Its annotations may change without a new
 * generation; a new generation may turn out not to be valid. */
static void entry_succeed(struct policy_entry *entry, struct policy_entry *former)
{
    const struct as_scaling_policy was = former->policy;
    if (strcmp(entry->policy.uid, was.uid) != 0)
        return;
    entry->policy.rival = was.rival;
    former->policy.rival = NULL;
    entry->minute = former->minute;
    entry->changes = former->changes;
    if (entry->policy.generation != was.generation) {
        struct compiled **last = former->former ? &former->former : &former->compiled;
        entry->former = former->is_in_force || former->former ? *last : NULL;
        if (entry->former)
            *last = NULL;
        return;
    }
    former->policy.message = entry->policy.message;
    entry->policy.message = was.message;
    entry->policy.reason = was.reason;
    entry->is_judged = former->is_judged;
    entry->is_compiled = former->is_compiled && former->is_crowded == entry->is_crowded;
    entry->is_in_force = former->is_in_force;
    entry->judged = former->judged;
    entry->judgement = former->judgement;
    entry->compiled = former->compiled;
    entry->former = former->former;
    entry->broken = former->broken;
    former->judgement = NULL;
    former->compiled = former->former = NULL;
}

/* Does not keep the text of a policy if there is no room for it, beside that of its predecessor. */
static void limit_text(const struct as_policy_set *set, const struct policy_entry *former,
                       struct policy_entry *entry)
{
    struct as_scaling_policy *policy = &entry->policy;
    const struct text_space *space = text_space_find(set, policy->namespace);
    const size_t own = former ? former->policy.text_size : 0;
    const size_t used = space ? space->bytes - own : 0;
    if (policy->text_size <= SPACE_TEXTS_MAX - used &&
        policy->text_size <= TEXTS_MAX - (set->text_bytes - own))
        return;
    entry->is_crowded = true;
    free_const(policy->text);
    policy->text = NULL;
    policy->text_size = 0;
}

/* Whether the change must wait: its object changes too often. */
static bool is_too_often(struct policy_entry *former, as_mono_time now)
{
    if (now.us - former->minute.us >= AS_US_PER_MIN) {
        former->minute = now;
        former->changes = 0;
    }
    former->changes++;
    return former->changes > AS_POLICY_CHANGES_MAX && now.us - former->taken.us < AS_POLICY_SLOW_US;
}

static void keep_pending(struct as_policy_set *set, struct policy_entry *entry, const char *text,
                         size_t size)
{
    const as_mono_time due = {entry->taken.us + AS_POLICY_SLOW_US};
    free(entry->pending);
    entry->pending = as_xstrndup(text, size);
    entry->pending_size = size;
    if (due.us < set->deadline.us)
        set->deadline = due;
}

int as_policy_set_put(struct as_policy_set *set, const char *text, size_t size, as_mono_time now,
                      bool *changed_out, struct as_error *error)
{
    static const struct tree_part parts[] = {
        {.name = "apiVersion"}, {.name = "kind"}, {.name = "metadata"}, {0}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct policy_entry *former;
    if (tree_parse(&tree, text, size, parts, error) != 0)
        return -EBADMSG;
    const struct tree_value *metadata = tree_find(tree.root, "metadata");
    if (!tree_find_text(metadata, "namespace") || !tree_find_text(metadata, "name")) {
        as_error_set(error, "the object has no `metadata.namespace` and `metadata.name`");
        return -EBADMSG;
    }
    struct policy_entry *entry = policy_entry_new(text, size, tree.root);
    HASH_FIND_STR(set->entries, entry->policy.id, former);
    limit_text(set, former, entry);
    *changed_out = !former || !policy_is_same(&former->policy, &entry->policy) ||
                   (former->is_crowded && !entry->is_crowded);
    entry->is_listed = true;
    if (former && *changed_out && is_too_often(former, now)) {
        keep_pending(set, former, text, size);
        *changed_out = false;
    } else if (former && !*changed_out) { /* it is as before its pending changes */
        free(former->pending);
        former->pending = NULL;
    }
    if (former && !*changed_out) {
        former->is_listed = true;
        count_text(set, &entry->policy);
        policy_entry_free(set, entry);
        return 0;
    }
    entry->taken = now;
    entry->minute = now;
    if (former) {
        entry_succeed(entry, former);
        HASH_DEL(set->entries, former);
        policy_entry_free(set, former);
    }
    count_text(set, &entry->policy);
    HASH_ADD_KEYPTR(hh, set->entries, entry->policy.id, strlen(entry->policy.id), entry);
    return 0;
}

bool as_policy_set_remove(struct as_policy_set *set, const char *namespace, const char *name)
{
    AS_CLEANUP(as_free_p) char *id = as_xasprintf("%s/%s", namespace, name);
    struct policy_entry *entry;
    HASH_FIND_STR(set->entries, id, entry);
    if (!entry)
        return false;
    HASH_DEL(set->entries, entry);
    policy_entry_free(set, entry);
    return true;
}

static bool is_of(const struct policy_entry *entry, const char *namespace)
{
    return !namespace || strcmp(entry->policy.namespace, namespace) == 0;
}

void as_policy_set_begin_list(struct as_policy_set *set, const char *namespace)
{
    for (struct policy_entry *entry = set->entries; entry; entry = entry->hh.next)
        if (is_of(entry, namespace))
            entry->is_listed = false;
}

bool as_policy_set_end_list(struct as_policy_set *set, const char *namespace,
                            void (*removed)(void *context, const struct as_scaling_policy *policy),
                            void *context)
{
    struct policy_entry *entry, *next;
    bool is_changed = false;
    HASH_ITER (hh, set->entries, entry, next) {
        if (entry->is_listed || !is_of(entry, namespace))
            continue;
        removed(context, &entry->policy);
        HASH_DEL(set->entries, entry);
        policy_entry_free(set, entry);
        is_changed = true;
    }
    return is_changed;
}

/*
 * The judgement of one policy alone.
 */

static bool policy_has_query(const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->rule_count; i++)
        if (ruleset->rules[i].source.query || ruleset->rules[i].guard)
            return true;
    return false;
}

/* Text that `check` prints; NULL: not in the address. */
static const char *find_address(const struct as_target_config *target, const char *key)
{
    return as_target_config_find_plain(target, key);
}

static bool is_built_in(const char *api_version, const char *kind)
{
    static const char *const rows[][2] = {{"apps/v1", "Deployment"},
                                          {"apps/v1", "StatefulSet"},
                                          {"apps/v1", "ReplicaSet"},
                                          {"v1", "ReplicationController"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i][0], api_version) == 0 && strcmp(rows[i][1], kind) == 0)
            return true;
    return false;
}

/* Whether the admin lets policies scale the object's kind, by this field. */
static bool is_kind_allowed(const struct as_object_settings *objects,
                            const struct as_target_config *target)
{
    const char *api_version = find_address(target, "apiVersion");
    const char *kind = find_address(target, "kind");
    const char *field = find_address(target, "field");
    api_version = api_version ? api_version : "";
    if (find_address(target, "container"))
        return false; /* a resize changes the pods or their template, beyond `scale` */
    if (!field && is_built_in(api_version, kind))
        return true;
    for (size_t i = 0; i < objects->kind_count; i++) {
        const struct as_object_kind_settings *row = &objects->kinds[i];
        if (strcmp(row->kind, kind) == 0 && strcmp(row->api_version, api_version) == 0 &&
            as_str_equal(row->field, field))
            return true;
    }
    return false;
}

static bool matches_one(const char *const *patterns, size_t count, const char *text)
{
    for (size_t i = 0; text && i < count; i++)
        if (as_str_glob(patterns[i], text))
            return true;
    return false;
}

static bool is_group_allowed(const struct as_object_settings *objects, const char *namespace,
                             const struct as_target_config *target)
{
    const char *provider = find_address(target, "provider"), *name = find_address(target, "name");
    for (size_t i = 0; i < objects->node_group_count; i++) {
        const struct as_object_group_settings *row = &objects->node_groups[i];
        if (provider && strcmp(row->provider, provider) == 0 &&
            matches_one(row->namespaces, row->namespace_count, namespace) &&
            matches_one(row->names, row->name_count, name))
            return !find_address(target, "url");
    }
    return false;
}

struct judging {
    const struct as_settings *settings;
    const char *namespace;
    const struct as_ruleset *ruleset;
    struct as_diagnostics *diagnostics;
};

static enum as_policy_reason policies_refuse(const struct judging *judging,
                                             enum as_policy_reason reason, const char *path,
                                             const char *format, ...) AS_PRINTF(4, 5);

static enum as_policy_reason policies_refuse(const struct judging *judging,
                                             enum as_policy_reason reason, const char *path,
                                             const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    as_diagnostics_add(judging->diagnostics,
                       &(struct as_diagnostic){.file = path, .message = message});
    return reason;
}

/* The `max` of a schedule replaces that of the target, and may be above it. */
static enum as_policy_reason judge_schedules(const struct judging *judging)
{
    const struct as_target_config *target = &judging->ruleset->targets[0];
    const int32_t most = judging->settings->objects.max_size;
    for (size_t i = 0; most > 0 && i < target->schedule_count; i++) {
        const struct as_schedule *schedule = &target->schedules[i];
        char path[64];
        if (!schedule->has_max || schedule->max <= most)
            continue;
        (void)snprintf(path, sizeof(path), "spec.target.schedules[%zu].max", i);
        return policies_refuse(judging, AS_POLICY_LIMIT_EXCEEDED, path,
                               "%" PRId32 " is above %" PRId32
                               ", the largest size that the administrator "
                               "allows (`objects.max_size`)",
                               schedule->max, most);
    }
    return AS_POLICY_READY;
}

static enum as_policy_reason judge_address(const struct judging *judging)
{
    const struct as_target_config *target = &judging->ruleset->targets[0];
    const struct as_object_settings *objects = &judging->settings->objects;
    if (target->kind == &as_target_kind_kubernetes && !is_kind_allowed(objects, target))
        return policies_refuse(
            judging, AS_POLICY_KIND_NOT_ALLOWED, "spec.target.kubernetes",
            "policies may scale Deployment, StatefulSet, ReplicaSet and "
            "ReplicationController by `scale`; the administrator allows other kinds and "
            "fields by `objects.kinds`");
    if (target->kind != &as_target_kind_kubernetes &&
        !is_group_allowed(objects, judging->namespace, target))
        return policies_refuse(
            judging, AS_POLICY_GROUP_NOT_ALLOWED, "spec.target.nodeGroup",
            "policies of namespace %s may not scale this node group; the administrator "
            "allows node groups by `objects.node_groups`",
            judging->namespace);
    if (objects->max_size > 0 && target->bounds.max > objects->max_size)
        return policies_refuse(judging, AS_POLICY_LIMIT_EXCEEDED, "spec.target.max",
                               "%" PRId32 " is above %" PRId32
                               ", the largest size that the administrator "
                               "allows (`objects.max_size`)",
                               target->bounds.max, objects->max_size);
    return judge_schedules(judging);
}

static enum as_policy_reason judge_rules(const struct judging *judging)
{
    const struct as_object_settings *objects = &judging->settings->objects;
    const struct as_ruleset *ruleset = judging->ruleset;
    if (ruleset->rule_count > objects->rules_per_policy)
        return policies_refuse(judging, AS_POLICY_LIMIT_EXCEEDED, "spec.rules",
                               "%zu rules; the administrator allows %" PRIu32 " in a policy "
                               "(`objects.rules_per_policy`)",
                               ruleset->rule_count, objects->rules_per_policy);
    if (policy_has_query(ruleset) && !objects->prometheus.url &&
        !objects->allows_unrestricted_queries)
        return policies_refuse(
            judging, AS_POLICY_QUERIES_NOT_ALLOWED, "spec.rules",
            "policies may not query: the administrator has not set "
            "`objects.prometheus`, which limits queries to the policy's namespace");
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = &ruleset->rules[i];
        char path[64];
        if (rule->every_us == 0 || rule->every_us >= objects->min_every_us)
            continue;
        (void)snprintf(path, sizeof(path), "spec.rules[%zu].every", i);
        return policies_refuse(judging, AS_POLICY_LIMIT_EXCEEDED, path,
                               "shorter than %" PRId64
                               "s, the shortest time that the administrator allows "
                               "(`objects.min_every`)",
                               objects->min_every_us / AS_US_PER_S);
    }
    return AS_POLICY_READY;
}

/*
 * What holds for all policies, whatever they say: they may be stricter than `defaults`, and not
 * less strict. Alerts must have the label of the policy's namespace.
 */

static void tighten_approval(const struct as_approval_config *least, struct as_rule *rule)
{
    struct content_hash hash;
    if (!least->is_set || (rule->approval.is_set && rule->approval.above <= least->above &&
                           rule->approval.for_us <= least->for_us))
        return;
    if (!rule->approval.is_set || rule->approval.above > least->above)
        rule->approval.above = least->above;
    if (!rule->approval.is_set || rule->approval.for_us > least->for_us)
        rule->approval.for_us = least->for_us;
    rule->approval.is_set = true;
    hash = content_hash_begin(); /* an approval is bound to its terms */
    content_hash_add(&hash, (const char *)rule->digest.bytes, sizeof(rule->digest.bytes));
    content_hash_add(&hash, (const char *)&rule->approval.above, sizeof(rule->approval.above));
    content_hash_add(&hash, (const char *)&rule->approval.for_us, sizeof(rule->approval.for_us));
    rule->digest = content_hash_end_digest(&hash);
}

static void add_namespace_matcher(const char *label, const char *namespace, struct as_rule *rule)
{
    rule->matchers =
        as_xrealloc_array(rule->matchers, rule->matcher_count + 1, sizeof(*rule->matchers));
    rule->matchers[rule->matcher_count++] = (struct as_matcher){
        .name = as_xstrdup(label), .value = as_xstrdup(namespace), .op = AS_MATCHER_EQUAL};
    rule->is_confined = true;
}

static void tighten(const struct as_settings *settings, const char *namespace,
                    struct as_ruleset *ruleset)
{
    const struct as_object_settings *objects = &settings->objects;
    ruleset->targets[0].dry_run = ruleset->targets[0].dry_run || settings->defaults.dry_run;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        struct as_rule *rule = &ruleset->rules[i];
        tighten_approval(&settings->defaults.approval, rule);
        if (objects->enforces_namespace_label && !rule->is_always)
            add_namespace_matcher(objects->namespace_label, namespace, rule);
    }
}

static bool policy_is_shadow(const char *text, size_t size)
{
    static const struct tree_part mode[] = {{.name = "mode"}, {0}};
    static const struct tree_part parts[] = {{.name = "spec", .parts = mode}, {0}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_error ignored = AS_ERROR_INIT;
    if (tree_parse(&tree, text, size, parts, &ignored) != 0)
        return false;
    const char *word = tree_find_text(tree_find(tree.root, "spec"), "mode");
    return word && strcmp(word, "Shadow") == 0;
}

/* Compiles and judges. The rule set is NULL unless the policy is valid. */
static enum as_policy_reason policies_judge(const struct as_settings *settings,
                                            const char *namespace, const char *text, size_t size,
                                            struct as_ruleset **ruleset_out,
                                            struct as_diagnostics *diagnostics)
{
    struct as_settings own = *settings; /* whether a policy may query is judged later */
    const struct as_object_settings *objects = &settings->objects;
    if (objects->prometheus.url || !objects->allows_unrestricted_queries)
        own.prometheus.url = "of tenants";
    *ruleset_out = NULL;
    if (as_policy_compile(&own, text, size, ruleset_out, diagnostics) != 0)
        return AS_POLICY_INVALID;
    const struct judging judging = {settings, namespace, *ruleset_out, diagnostics};
    enum as_policy_reason reason = judge_address(&judging);
    if (reason == AS_POLICY_READY)
        reason = judge_rules(&judging);
    if (reason != AS_POLICY_READY) {
        *ruleset_out = as_ruleset_free(*ruleset_out);
        return reason;
    }
    tighten(settings, namespace, *ruleset_out);
    return policy_is_shadow(text, size) ? AS_POLICY_SHADOW : AS_POLICY_READY;
}

enum as_policy_reason as_policy_judge(const struct as_settings *settings, const char *text,
                                      size_t size, struct as_diagnostics *diagnostics)
{
    static const struct tree_part names[] = {{.name = "namespace"}, {0}};
    static const struct tree_part parts[] = {{.name = "metadata", .parts = names}, {0}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    AS_CLEANUP(as_ruleset_free_p) struct as_ruleset *ruleset = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (tree_parse(&tree, text, size, parts, &error) != 0) {
        as_diagnostics_add(diagnostics, &(struct as_diagnostic){.file = "", .message = error.text});
        return AS_POLICY_INVALID;
    }
    const char *namespace = tree_find_text(tree_find(tree.root, "metadata"), "namespace");
    return policies_judge(settings, namespace ? namespace : "default", text, size, &ruleset,
                          diagnostics);
}

/* "spec.rules[0].every: shorter than ..." in lines. */
static char *print_errors(struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT_OPEN((size_t)32 * 1024);
    size_t errors = 0, shown = 0;
    as_diagnostics_sort(diagnostics);
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct as_diagnostic *item = &diagnostics->items[i];
        if (item->severity != AS_SEVERITY_ERROR || ++errors > AS_POLICY_ERRORS_MAX)
            continue;
        as_buf_printf(&out, "%s%s%s%s", shown++ > 0 ? "\n" : "", item->file,
                      item->file[0] ? ": " : "", item->message);
    }
    if (errors > shown)
        as_buf_printf(&out, "\n... and %zu more errors", errors - shown);
    return as_xstrndup(out.data ? out.data : "", out.size);
}

static void compile_entry(const struct as_settings *settings, struct policy_entry *entry)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_ruleset *ruleset = NULL;
    compiled_drop(entry->compiled);
    entry->compiled = NULL;
    free(entry->judgement);
    if (entry->policy.text) {
        entry->judged = policies_judge(settings, entry->policy.namespace, entry->policy.text,
                                       entry->policy.text_size, &ruleset, &diagnostics);
        entry->judgement = print_errors(&diagnostics);
    } else if (entry->is_crowded) {
        entry->judged = AS_POLICY_LIMIT_EXCEEDED;
        entry->judgement =
            as_xasprintf("the specs of policies are too large: of namespace %s more than %zu MiB, "
                         "or of all namespaces more than %zu MiB",
                         entry->policy.namespace, SPACE_TEXTS_MAX >> 20, TEXTS_MAX >> 20);
    } else {
        entry->judged = AS_POLICY_INVALID;
        entry->judgement =
            as_xasprintf("the object has no `spec`, or more than %d bytes", AS_POLICY_SIZE_MAX);
    }
    as_diagnostics_deinit(&diagnostics);
    entry->is_compiled = true;
    if (!ruleset)
        return;
    struct as_target_ref *ref;
    entry->compiled = as_xcalloc(1, sizeof(*entry->compiled));
    entry->compiled->uses = 1;
    entry->compiled->ruleset = ruleset;
    if (as_target_ref_new(&ruleset->targets[0], NULL, NULL, &ref, NULL) != 0)
        abort(); /* the address is plain, and was checked */
    entry->compiled->key = as_xstrdup(ref->key);
    as_target_ref_free(ref);
}

/*
 * Owners of objects: an entry of a rule file without templates, then the oldest policy.
 */

struct owner {
    char *key;
    const char *name; /* of the target */
    UT_hash_handle hh;
};

static void owner_add(struct owner **owners, const char *key, const char *name)
{
    struct owner *owner;
    HASH_FIND_STR(*owners, key, owner);
    if (owner)
        return;
    owner = as_xcalloc(1, sizeof(*owner));
    owner->key = as_xstrdup(key);
    owner->name = name;
    HASH_ADD_KEYPTR(hh, *owners, owner->key, strlen(owner->key), owner);
}

static void object_owners_free(struct owner *owners)
{
    struct owner *owner, *next;
    HASH_ITER (hh, owners, owner, next) {
        HASH_DEL(owners, owner);
        free(owner->key);
        free(owner);
    }
}

static struct owner *find_file_owners(const struct as_ruleset *files)
{
    struct owner *owners = NULL;
    for (size_t i = 0; i < files->target_count; i++) {
        struct as_target_ref *ref;
        if (files->targets[i].is_templated ||
            as_target_ref_new(&files->targets[i], NULL, NULL, &ref, NULL) != 0)
            continue;
        owner_add(&owners, ref->key, files->targets[i].name);
        as_target_ref_free(ref);
    }
    return owners;
}

static int policies_compare_age(const void *left, const void *right)
{
    const struct as_scaling_policy *a = &(*(struct policy_entry *const *)left)->policy;
    const struct as_scaling_policy *b = &(*(struct policy_entry *const *)right)->policy;
    if (a->created.us != b->created.us)
        return a->created.us < b->created.us ? -1 : 1;
    const int namespaces = strcmp(a->namespace, b->namespace);
    return namespaces != 0 ? namespaces : strcmp(a->name, b->name);
}

static void entry_set_reason(struct policy_entry *entry, enum as_policy_reason reason,
                             char *message)
{
    entry->policy.is_known = entry->is_judged && entry->policy.reason == reason &&
                             strcmp(entry->policy.message, message) == 0;
    entry->is_judged = true;
    entry->policy.reason = reason;
    free_const(entry->policy.message);
    entry->policy.message = message;
    entry->policy.ruleset = entry->compiled ? entry->compiled->ruleset : NULL;
}

static void refuse_entry(struct policy_entry *entry, enum as_policy_reason reason, char *message,
                         as_mono_time now)
{
    if (entry->broken.us == AS_MONO_NEVER.us)
        entry->broken = now;
    entry_set_reason(entry, reason, message);
}

/* The rules of the entry that go into the rule set; NULL: none. */
static struct compiled *get_rules_of(struct policy_entry *entry)
{
    return entry->is_in_force ? entry->compiled : entry->former;
}

/* The last generation in force keeps the object for a while. */
static void keep_former(struct policy_entry *entry, as_mono_time now, struct owner **owners)
{
    struct owner *owner = NULL;
    if (entry->former)
        HASH_FIND_STR(*owners, entry->former->key, owner);
    if (entry->former && !owner && now.us - entry->broken.us < AS_POLICY_KEEP_US) {
        owner_add(owners, entry->former->key, entry->policy.id);
        return;
    }
    compiled_drop(entry->former);
    entry->former = NULL;
}

/* Decides whether the policy is in force. */
static void place_entry(const struct as_policy_join *join, struct policy_entry *entry,
                        size_t number, struct owner **owners)
{
    const struct as_object_settings *objects = &join->settings->objects;
    struct owner *owner = NULL;
    if (number < objects->max_policies && entry->judged == AS_POLICY_READY)
        HASH_FIND_STR(*owners, entry->compiled->key, owner);
    entry->is_in_force = false;
    if (number >= objects->max_policies) {
        refuse_entry(entry, AS_POLICY_TOO_MANY,
                     as_xasprintf("older policies are all %" PRIu32
                                  " that the administrator allows "
                                  "(`objects.max_policies`)",
                                  objects->max_policies),
                     join->now);
    } else if (entry->judged == AS_POLICY_SHADOW) {
        compiled_drop(entry->former);
        entry->former = NULL;
        refuse_entry(entry, AS_POLICY_SHADOW,
                     as_xstrdup("`mode: Shadow`: the policy is not in force"), join->now);
    } else if (entry->judged != AS_POLICY_READY) {
        refuse_entry(entry, entry->judged, as_xstrdup(entry->judgement), join->now);
    } else if (owner) {
        refuse_entry(entry, AS_POLICY_TARGET_TAKEN,
                     as_xasprintf("target %s has this object, and has precedence", owner->name),
                     join->now);
    } else {
        owner_add(owners, entry->compiled->key, entry->policy.id);
        entry_set_reason(entry, AS_POLICY_READY, as_xstrdup("the policy is in force"));
        entry->is_in_force = true;
        entry->broken = AS_MONO_NEVER;
        compiled_drop(entry->former);
        entry->former = NULL;
    }
    if (!entry->is_in_force)
        keep_former(entry, join->now, owners);
}

/*
 * The joined rule set.
 */

/* Why nothing is scaled, as the reason of a pause; NULL: it may be. */
static const char *find_pause(const struct policy_entry *entry, struct as_arena *arena)
{
    const struct as_scaling_policy *policy = &entry->policy;
    char text[256];
    if (!entry->is_in_force)
        (void)snprintf(text, sizeof(text), "generation %" PRId64 " is not in force: %s",
                       policy->generation, as_policy_reason_get_word(policy->reason));
    else if (policy->rival && !policy->allows_hpa)
        (void)snprintf(text, sizeof(text), "HPAFound: %.200s scales the same object",
                       policy->rival);
    else
        return policy->paused;
    return as_arena_strdup(arena, text);
}

static const struct as_policy_terms *make_terms(const struct as_settings *settings,
                                                const struct policy_entry *entry,
                                                struct as_arena *arena)
{
    const struct as_scaling_policy *policy = &entry->policy;
    struct as_policy_terms *terms = as_arena_alloc(arena, 1, sizeof(*terms));
    const char *both = find_pause(entry, arena);
    const char *up = policy->paused_up, *down = policy->paused_down;
    *terms = (struct as_policy_terms){
        .namespace = as_arena_strdup(arena, policy->namespace),
        .name = as_arena_strdup(arena, policy->name),
        .uid = as_arena_strdup(arena, policy->uid),
        .generation = policy->generation,
        .paused = both || (up && down) ? AS_WAYS_BOTH
                  : up                 ? AS_WAYS_UP
                  : down               ? AS_WAYS_DOWN
                                       : AS_WAYS_NONE,
        .pause_reason = as_arena_strdup(arena, both ? both
                                               : up ? up
                                                    : down),
        .is_tenant = settings->objects.prometheus.url != NULL,
    };
    return terms;
}

static void join_entry(const struct as_settings *settings, struct joined *joined,
                       struct policy_entry *entry)
{
    struct compiled *compiled = get_rules_of(entry);
    const struct as_ruleset *own = compiled->ruleset;
    struct as_ruleset *ruleset = &joined->ruleset;
    struct as_target_config *target = &ruleset->targets[ruleset->target_count];
    *target = own->targets[0];
    target->policy = make_terms(settings, entry, &joined->arena);
    for (size_t i = 0; i < own->rule_count; i++) {
        struct as_rule *rule = &ruleset->rules[ruleset->rule_count++];
        *rule = own->rules[i];
        rule->target = (uint32_t)ruleset->target_count;
    }
    ruleset->target_count++;
    compiled->uses++;
    joined->used[joined->used_count++] = compiled;
}

static void hash_entry_into(struct content_hash *hash, const struct policy_entry *entry)
{
    const struct as_scaling_policy *policy = &entry->policy;
    content_hash_add(hash, policy->id, strlen(policy->id) + 1);
    content_hash_add(hash, policy->uid, strlen(policy->uid) + 1);
    content_hash_add(hash, (const char *)&policy->generation, sizeof(policy->generation));
}

static struct joined *join_all(const struct as_policy_join *join,
                               struct policy_entry *const *entries, size_t count)
{
    const struct as_ruleset *files = join->files;
    struct joined *joined = as_xcalloc(1, sizeof(*joined));
    struct as_ruleset *ruleset = &joined->ruleset;
    struct content_hash hash = content_hash_begin();
    size_t rules = files->rule_count;
    for (size_t i = 0; i < count; i++)
        rules += get_rules_of(entries[i])->ruleset->rule_count;
    joined->used = as_xcalloc(count + 1, sizeof(struct compiled *));
    ruleset->targets = as_xcalloc(files->target_count + count + 1, sizeof(*ruleset->targets));
    ruleset->rules = as_xcalloc(rules + 1, sizeof(*ruleset->rules));
    if (files->target_count > 0)
        memcpy(ruleset->targets, files->targets, files->target_count * sizeof(*ruleset->targets));
    if (files->rule_count > 0)
        memcpy(ruleset->rules, files->rules, files->rule_count * sizeof(*ruleset->rules));
    ruleset->target_count = files->target_count;
    ruleset->rule_count = files->rule_count;
    content_hash_add(&hash, files->digest, strlen(files->digest));
    for (size_t i = 0; i < count; i++) {
        join_entry(join->settings, joined, entries[i]);
        hash_entry_into(&hash, entries[i]);
    }
    content_hash_end(&hash, ruleset->digest);
    ruleset->awaits_policies = !join->is_complete;
    return joined;
}

static int policies_compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* A policy that was never in force in this process, and may have been before: what is stored of its
 * target waits. */
static void list_awaited(struct joined *joined, struct policy_entry *const *entries, size_t count,
                         as_mono_time now)
{
    const char **names = as_arena_alloc(&joined->arena, count + 1, sizeof(*names));
    size_t names_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct policy_entry *entry = entries[i];
        if (!entry->is_in_force && !entry->former && entry->judged != AS_POLICY_SHADOW &&
            now.us - entry->broken.us < AS_POLICY_KEEP_US)
            names[names_count++] = as_arena_strdup(&joined->arena, entry->policy.id);
    }
    qsort(names, names_count, sizeof(*names), policies_compare_names);
    joined->ruleset.awaited = names;
    joined->ruleset.awaited_count = names_count;
}

static void forget_compiled(struct as_policy_set *set, const struct as_settings *settings)
{
    for (struct policy_entry *entry = set->entries; entry; entry = entry->hh.next)
        entry->is_compiled = false;
    set->settings = settings;
}

/* Takes what has waited long enough. */
static void take_pending(struct as_policy_set *set, as_mono_time now)
{
    struct policy_entry *entry, *next;
    HASH_ITER (hh, set->entries, entry, next) {
        struct as_error ignored = AS_ERROR_INIT; /* the text was read before */
        bool is_changed;
        if (!entry->pending || now.us - entry->taken.us < AS_POLICY_SLOW_US)
            continue;
        AS_CLEANUP(as_free_p) char *text = entry->pending;
        entry->pending = NULL;
        if (as_policy_set_put(set, text, entry->pending_size, now, &is_changed, &ignored) != 0)
            abort();
    }
}

static void note_deadline(struct as_policy_set *set, const struct policy_entry *entry,
                          as_mono_time now)
{
    const as_mono_time end = {as_time_add(entry->broken.us, AS_POLICY_KEEP_US)};
    const as_mono_time due = {entry->taken.us + AS_POLICY_SLOW_US};
    if (entry->broken.us != AS_MONO_NEVER.us && end.us > now.us && end.us < set->deadline.us)
        set->deadline = end;
    if (entry->pending && due.us < set->deadline.us)
        set->deadline = due;
}

const struct as_ruleset *as_policy_set_join(struct as_policy_set *set,
                                            const struct as_policy_join *join)
{
    take_pending(set, join->now);
    const size_t count = HASH_COUNT(set->entries);
    struct policy_entry **entries = as_xcalloc(count + 1, sizeof(struct policy_entry *));
    struct policy_entry **with_rules = as_xcalloc(count + 1, sizeof(struct policy_entry *));
    struct owner *owners = find_file_owners(join->files);
    size_t all = 0, joining = 0;
    if (set->settings != join->settings)
        forget_compiled(set, join->settings);
    for (struct policy_entry *entry = set->entries; entry; entry = entry->hh.next) {
        if (!entry->is_compiled)
            compile_entry(join->settings, entry);
        entries[all++] = entry;
    }
    qsort(entries, count, sizeof(struct policy_entry *), policies_compare_age);
    set->deadline = AS_MONO_NEVER;
    for (size_t i = 0; i < count; i++) {
        place_entry(join, entries[i], i, &owners);
        note_deadline(set, entries[i], join->now);
        if (get_rules_of(entries[i]))
            with_rules[joining++] = entries[i];
    }
    joined_free(set->former);
    set->former = set->now;
    set->now = NULL;
    if (count > 0 || !join->is_complete) {
        set->now = join_all(join, with_rules, joining);
        list_awaited(set->now, entries, count, join->now);
    }
    object_owners_free(owners);
    free(with_rules);
    free(entries);
    return set->now ? &set->now->ruleset : join->files;
}

as_mono_time as_policy_set_get_deadline(const struct as_policy_set *set)
{
    return set->deadline;
}

bool as_policy_set_note_rival(struct as_policy_set *set, const char *id, const char *rival)
{
    struct policy_entry *entry;
    HASH_FIND_STR(set->entries, id, entry);
    if (!entry || as_str_equal(entry->policy.rival, rival))
        return false;
    free_const(entry->policy.rival);
    entry->policy.rival = rival ? as_xstrdup(rival) : NULL;
    return !entry->policy.allows_hpa;
}

size_t as_policy_set_count(const struct as_policy_set *set)
{
    return HASH_COUNT(set->entries);
}

static int policies_compare_ids(const struct policy_entry *a, const struct policy_entry *b)
{
    return strcmp(a->policy.id, b->policy.id);
}

void as_policy_set_visit(struct as_policy_set *set,
                         bool (*visit)(void *context, const struct as_scaling_policy *policy),
                         void *context)
{
    HASH_SORT(set->entries, policies_compare_ids);
    for (const struct policy_entry *entry = set->entries; entry; entry = entry->hh.next)
        if (visit(context, &entry->policy))
            return;
}

const struct as_scaling_policy *as_policy_set_find(const struct as_policy_set *set, const char *id)
{
    const struct policy_entry *entry;
    HASH_FIND_STR(set->entries, id, entry);
    return entry ? &entry->policy : NULL;
}
