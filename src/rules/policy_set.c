/*
 * The set of scaling policies: see the header.
 *
 * Of an object only its `spec` is kept, with the metadata that is read here: the policy is compiled
 * again when the settings change. The judgement of a policy alone (its kind, its queries, ...) is
 * kept beside the compiled rules.
 *
 * A join places the policies that have changed, and those that claim the same objects: it decides
 * who owns an object. The new rule set is the one before with these changes, so that the cost
 * depends on the changes.
 */
#include <alertscaler/rules/policy_set.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <bsd/sys/queue.h>

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

#define SPLICES_MAX  64 /* changes of a rule set before it is made anew */
#define DIGEST_LANES (sizeof(struct as_digest) / sizeof(uint64_t))

#define ANNOTATION(name) AS_POLICY_GROUP "/" name

const char *as_policy_reason_get_word(enum as_policy_reason reason)
{
#define WORD(enumerator, word) [enumerator] = (word),
    static const char *const words[] = {AS_POLICY_REASONS(WORD)};
#undef WORD
    assert((size_t)reason < AS_POLICY_REASON_COUNT);
    return words[reason];
}

/* A compiled policy, shared by its entry and the rule sets that have it. */
struct compiled {
    unsigned uses;
    struct as_ruleset *ruleset; /* one target, which has the terms, and its rules */
    struct as_policy_terms terms;
    char *namespace, *name, *uid, *pause_reason; /* of the terms */
    char *key;                     /* of its target: two policies with one key aim at one object */
    uint64_t digest[DIGEST_LANES]; /* of the terms, in the sum of the rule set that has it */
};

/* Those that claim the object of this key, or an entry of a rule file that has it. */
struct claim {
    char *key;
    const char *file_target; /* NULL: none */
    struct policy_entry **claimants;
    size_t count, capacity;
    const struct policy_entry *owner; /* during a placement */
    UT_hash_handle hh;
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
    struct compiled *joined;      /* that the rule set has; NULL: none */
    bool is_dirty;                /* to be placed by the next join */
    bool is_waiting, is_placed;   /* in these lists of the set */
    bool is_listed;               /* in the list under way */
    struct policy_entry *pending; /* the newest object, if it changes too often; else NULL */
    as_mono_time minute, taken;   /* of its changes: when the count began; the last one in force */
    unsigned changes;             /* since then */
    TAILQ_ENTRY(policy_entry) in_waiting, in_dirty, in_placed;
    UT_hash_handle hh;
};
TAILQ_HEAD(entry_list, policy_entry);

struct compiled_list {
    struct compiled **items;
    size_t count, capacity;
};

struct text_space { /* the specs of one namespace */
    UT_hash_handle hh;
    size_t bytes;
    char name[];
};

struct joined {
    struct as_ruleset ruleset;
    struct compiled_list removed, added; /* against the rule set before */
    uint64_t sum[DIGEST_LANES];          /* of the digests of all policies */
    struct as_arena arena;               /* of names */
};

struct as_policy_set {
    struct policy_entry *entries;       /* by id */
    struct policy_entry **by_age;       /* the oldest first */
    struct policy_entry **by_id;        /* ascending */
    size_t capacity;                    /* of both */
    struct claim *claims;               /* by key */
    struct entry_list waiting;          /* not in force, or with a change that waits */
    struct entry_list dirty;            /* to be placed */
    struct entry_list placed;           /* by the last join */
    struct compiled_list gone;          /* that the rule set has, and no entry has */
    const struct as_settings *settings; /* of the last join; NULL: there was none */
    const struct as_ruleset *files;
    bool is_complete;
    bool is_over_max; /* more than `max_policies` */
    struct text_space *spaces;
    size_t text_bytes;
    as_mono_time deadline;
    uint64_t serial;
    struct joined *now, *former; /* NULL: the files' own rule set */
};

static void compiled_drop(struct compiled *compiled)
{
    if (!compiled || --compiled->uses > 0)
        return;
    as_ruleset_free(compiled->ruleset);
    free(compiled->namespace);
    free(compiled->name);
    free(compiled->uid);
    free(compiled->pause_reason);
    free(compiled->key);
    free(compiled);
}

static void compiled_append(struct compiled_list *list, struct compiled *compiled)
{
    list->items = as_xgrow(list->items, list->count, &list->capacity, sizeof(*list->items));
    list->items[list->count++] = compiled;
}

static struct joined *joined_free(struct joined *joined)
{
    if (!joined)
        return NULL;
    for (size_t i = 0; i < joined->removed.count; i++) /* the rule set before had them */
        compiled_drop(joined->removed.items[i]);
    free(joined->removed.items);
    free(joined->added.items);
    free(joined->ruleset.removed);
    free(joined->ruleset.added);
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
    if (policy->text_size == 0 || !space)
        return;
    set->text_bytes -= policy->text_size;
    space->bytes -= policy->text_size;
    if (space->bytes > 0)
        return;
    HASH_DEL(set->spaces, space);
    free(space);
}

/*
 * Who claims an object.
 */

static struct claim *claim_take(struct as_policy_set *set, const char *key)
{
    struct claim *claim;
    HASH_FIND_STR(set->claims, key, claim);
    if (claim)
        return claim;
    claim = as_xcalloc(1, sizeof(*claim));
    claim->key = as_xstrdup(key);
    HASH_ADD_KEYPTR(hh, set->claims, claim->key, strlen(claim->key), claim);
    return claim;
}

static struct claim *claim_find(const struct as_policy_set *set, const struct compiled *compiled)
{
    struct claim *claim = NULL;
    if (compiled)
        HASH_FIND_STR(set->claims, compiled->key, claim);
    return claim;
}

static void mark_dirty(struct as_policy_set *set, struct policy_entry *entry)
{
    if (entry->is_dirty)
        return;
    entry->is_dirty = true;
    TAILQ_INSERT_TAIL(&set->dirty, entry, in_dirty);
}

static void claim_add(struct as_policy_set *set, const struct compiled *compiled,
                      struct policy_entry *entry)
{
    if (!compiled)
        return;
    struct claim *claim = claim_take(set, compiled->key);
    for (size_t i = 0; i < claim->count; i++)
        if (claim->claimants[i] == entry)
            return;
    claim->claimants =
        as_xgrow(claim->claimants, claim->count, &claim->capacity, sizeof(struct policy_entry *));
    claim->claimants[claim->count++] = entry;
}

static void claim_free(struct as_policy_set *set, struct claim *claim)
{
    HASH_DEL(set->claims, claim);
    free(claim->claimants);
    free(claim->key);
    free(claim);
}

/* The other claimants may get the object. */
static void claim_remove(struct as_policy_set *set, const struct compiled *compiled,
                         const struct policy_entry *entry)
{
    struct claim *claim = claim_find(set, compiled);
    size_t left = 0;
    if (!claim)
        return;
    for (size_t i = 0; i < claim->count; i++) {
        if (claim->claimants[i] == entry)
            continue;
        mark_dirty(set, claim->claimants[i]);
        claim->claimants[left++] = claim->claimants[i];
    }
    claim->count = left;
    if (left == 0 && !claim->file_target)
        claim_free(set, claim);
}

/* Sets what an entry is compiled to, with its claims. Takes the references. */
static void set_compiled(struct as_policy_set *set, struct policy_entry *entry,
                         struct compiled *compiled, struct compiled *former)
{
    struct compiled *const old[] = {entry->compiled, entry->former};
    entry->compiled = compiled;
    entry->former = former;
    for (size_t i = 0; i < AS_ARRAY_SIZE(old); i++)
        if (old[i] != compiled && old[i] != former)
            claim_remove(set, old[i], entry);
    claim_add(set, compiled, entry);
    claim_add(set, former, entry);
    for (size_t i = 0; i < AS_ARRAY_SIZE(old); i++)
        if (old[i] != compiled && old[i] != former)
            compiled_drop(old[i]);
}

static void policy_deinit(struct as_scaling_policy *policy)
{
    const char *const texts[] = {
        policy->namespace, policy->name,      policy->id,          policy->uid,   policy->message,
        policy->paused,    policy->paused_up, policy->paused_down, policy->rival, policy->text};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        free_const(texts[i]);
}

static void policy_entry_free(struct policy_entry *entry)
{
    policy_deinit(&entry->policy);
    free(entry->judgement);
    free(entry);
}

/*
 * The entries.
 */

static int policies_compare_age(const void *left, const void *right)
{
    const struct as_scaling_policy *a = &(*(struct policy_entry *const *)left)->policy;
    const struct as_scaling_policy *b = &(*(struct policy_entry *const *)right)->policy;
    if (a->created.us != b->created.us)
        return a->created.us < b->created.us ? -1 : 1;
    const int namespaces = strcmp(a->namespace, b->namespace);
    return namespaces != 0 ? namespaces : strcmp(a->name, b->name);
}

static int policies_compare_ids(const void *left, const void *right)
{
    return strcmp((*(struct policy_entry *const *)left)->policy.id,
                  (*(struct policy_entry *const *)right)->policy.id);
}

typedef int compare_entries_fn(const void *left, const void *right);

/* The index of the first entry that is not before this one. */
static size_t find_rank(struct policy_entry *const *sorted, size_t count,
                        const struct policy_entry *entry, compare_entries_fn *compare)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare(&sorted[middle], &entry) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void rank_insert(struct policy_entry **sorted, size_t count, struct policy_entry *entry,
                        compare_entries_fn *compare)
{
    const size_t at = find_rank(sorted, count, entry, compare);
    memmove(&sorted[at + 1], &sorted[at], (count - at) * sizeof(struct policy_entry *));
    sorted[at] = entry;
}

static void rank_remove(struct policy_entry **sorted, size_t count,
                        const struct policy_entry *entry, compare_entries_fn *compare)
{
    const size_t at = find_rank(sorted, count, entry, compare);
    memmove(&sorted[at], &sorted[at + 1], (count - at - 1) * sizeof(struct policy_entry *));
}

static void entry_insert(struct as_policy_set *set, struct policy_entry *entry)
{
    const size_t count = HASH_COUNT(set->entries);
    if (count == set->capacity) {
        const size_t capacity = 2 * count + 16;
        set->by_age = as_xrealloc_array(set->by_age, capacity, sizeof(struct policy_entry *));
        set->by_id = as_xrealloc_array(set->by_id, capacity, sizeof(struct policy_entry *));
        set->capacity = capacity;
    }
    rank_insert(set->by_age, count, entry, policies_compare_age);
    rank_insert(set->by_id, count, entry, policies_compare_ids);
    count_text(set, &entry->policy);
    HASH_ADD_KEYPTR(hh, set->entries, entry->policy.id, strlen(entry->policy.id), entry);
    mark_dirty(set, entry);
}

/* NULL: none waits. The caller owns it. */
static struct policy_entry *take_pending(struct as_policy_set *set, struct policy_entry *entry)
{
    struct policy_entry *pending = entry->pending;
    if (pending)
        uncount_text(set, &pending->policy);
    entry->pending = NULL;
    return pending;
}

static void drop_pending(struct as_policy_set *set, struct policy_entry *entry)
{
    struct policy_entry *pending = take_pending(set, entry);
    if (pending)
        policy_entry_free(pending);
}

/* Those beyond `max_policies` may come into force. */
static void entry_remove(struct as_policy_set *set, struct policy_entry *entry)
{
    const size_t count = HASH_COUNT(set->entries);
    rank_remove(set->by_age, count, entry, policies_compare_age);
    rank_remove(set->by_id, count, entry, policies_compare_ids);
    HASH_DEL(set->entries, entry);
    drop_pending(set, entry);
    uncount_text(set, &entry->policy);
    if (entry->is_dirty)
        TAILQ_REMOVE(&set->dirty, entry, in_dirty);
    if (entry->is_waiting)
        TAILQ_REMOVE(&set->waiting, entry, in_waiting);
    if (entry->is_placed)
        TAILQ_REMOVE(&set->placed, entry, in_placed);
    if (entry->joined)
        compiled_append(&set->gone, entry->joined);
    set_compiled(set, entry, NULL, NULL);
    policy_entry_free(entry);
}

static void entry_wait(struct as_policy_set *set, struct policy_entry *entry)
{
    if (entry->is_waiting)
        return;
    entry->is_waiting = true;
    TAILQ_INSERT_TAIL(&set->waiting, entry, in_waiting);
}

struct as_policy_set *as_policy_set_new(void)
{
    struct as_policy_set *set = as_xcalloc(1, sizeof(*set));
    set->deadline = AS_MONO_NEVER;
    TAILQ_INIT(&set->waiting);
    TAILQ_INIT(&set->dirty);
    TAILQ_INIT(&set->placed);
    return set;
}

struct as_policy_set *as_policy_set_free(struct as_policy_set *set)
{
    struct claim *claim, *next;
    if (!set)
        return NULL;
    while (set->entries)
        entry_remove(set, set->entries);
    for (size_t i = 0; i < set->gone.count; i++)
        compiled_drop(set->gone.items[i]);
    free(set->gone.items);
    HASH_ITER (hh, set->claims, claim, next)
        claim_free(set, claim);
    joined_free(set->now);
    joined_free(set->former);
    free(set->by_age);
    free(set->by_id);
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

/* The same object has changed: takes its new texts. Its annotations may change without a new
 * generation; a new generation may turn out not to be valid. */
static void entry_update(struct as_policy_set *set, struct policy_entry *entry,
                         struct policy_entry *next)
{
    const struct as_scaling_policy was = entry->policy;
    struct as_scaling_policy *policy = &entry->policy;
    uncount_text(set, &was);
    count_text(set, &next->policy);
    policy->generation = next->policy.generation;
    policy->paused = next->policy.paused;
    policy->paused_up = next->policy.paused_up;
    policy->paused_down = next->policy.paused_down;
    policy->allows_hpa = next->policy.allows_hpa;
    policy->text = next->policy.text;
    policy->text_size = next->policy.text_size;
    next->policy.paused = was.paused;
    next->policy.paused_up = was.paused_up;
    next->policy.paused_down = was.paused_down;
    next->policy.text = was.text;
    entry->is_compiled = entry->is_compiled && entry->is_crowded == next->is_crowded;
    entry->is_crowded = next->is_crowded;
    mark_dirty(set, entry);
    if (policy->generation == was.generation)
        return;
    struct compiled *in_force = entry->is_in_force ? entry->compiled : NULL;
    policy->ruleset = NULL;
    policy->message = as_xstrdup(""); /* not judged yet */
    free_const(was.message);
    set_compiled(set, entry, NULL, entry->former ? entry->former : in_force);
    entry->is_compiled = entry->is_judged = false;
    entry->broken = AS_MONO_NEVER;
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

/* Beside the text in force: both must have room. */
static void keep_pending(struct as_policy_set *set, struct policy_entry *entry,
                         struct policy_entry *pending_taken)
{
    const as_mono_time due = {entry->taken.us + AS_POLICY_SLOW_US};
    limit_text(set, NULL, pending_taken);
    count_text(set, &pending_taken->policy);
    entry->pending = pending_taken;
    entry_wait(set, entry);
    if (due.us < set->deadline.us)
        set->deadline = due;
}

/* The object is as in `next_taken` from now on. */
static void entry_replace(struct as_policy_set *set, struct policy_entry *entry,
                          struct policy_entry *next_taken, as_mono_time now)
{
    if (strcmp(entry->policy.uid, next_taken->policy.uid) != 0) { /* another object */
        next_taken->is_listed = entry->is_listed;
        next_taken->taken = next_taken->minute = now;
        entry_remove(set, entry);
        entry_insert(set, next_taken);
        return;
    }
    entry->taken = now;
    entry_update(set, entry, next_taken);
    policy_entry_free(next_taken);
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
    if (former)
        drop_pending(set, former);
    limit_text(set, former, entry);
    *changed_out = !former || !policy_is_same(&former->policy, &entry->policy) ||
                   (former->is_crowded && !entry->is_crowded);
    if (!former) {
        entry->is_listed = true;
        entry->taken = entry->minute = now;
        entry_insert(set, entry);
        return 0;
    }
    former->is_listed = true;
    if (!*changed_out) {
        policy_entry_free(entry);
    } else if (is_too_often(former, now)) {
        keep_pending(set, former, entry);
        *changed_out = false;
    } else {
        entry_replace(set, former, entry, now);
    }
    return 0;
}

bool as_policy_set_remove(struct as_policy_set *set, const char *namespace, const char *name)
{
    AS_CLEANUP(as_free_p) char *id = as_xasprintf("%s/%s", namespace, name);
    struct policy_entry *entry;
    HASH_FIND_STR(set->entries, id, entry);
    if (entry)
        entry_remove(set, entry);
    return entry != NULL;
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
        entry_remove(set, entry);
        is_changed = true;
    }
    return is_changed;
}

/*
 * Compiled policies.
 */

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

static struct compiled *compiled_new(const struct as_settings *settings, struct as_ruleset *ruleset,
                                     const struct as_scaling_policy *policy)
{
    struct compiled *compiled = as_xcalloc(1, sizeof(*compiled));
    struct as_target_ref *ref;
    compiled->uses = 1;
    compiled->ruleset = ruleset;
    compiled->namespace = as_xstrdup(policy->namespace);
    compiled->name = as_xstrdup(policy->name);
    compiled->uid = as_xstrdup(policy->uid);
    compiled->terms = (struct as_policy_terms){.namespace = compiled->namespace,
                                               .name = compiled->name,
                                               .uid = compiled->uid,
                                               .created = policy->created,
                                               .is_tenant = settings->objects.prometheus.url};
    ruleset->targets[0]->policy = &compiled->terms;
    if (as_target_ref_new(ruleset->targets[0], NULL, NULL, &ref, NULL) != 0)
        abort(); /* the address is plain, and was checked */
    compiled->key = as_xstrdup(ref->key);
    as_target_ref_free(ref);
    return compiled;
}

static void compile_entry(struct as_policy_set *set, struct policy_entry *entry)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_ruleset *ruleset = NULL;
    free(entry->judgement);
    if (entry->policy.text) {
        entry->judged = policy_judge(set->settings, entry->policy.namespace, entry->policy.text,
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
    entry->policy.ruleset = NULL;
    set_compiled(set, entry, ruleset ? compiled_new(set->settings, ruleset, &entry->policy) : NULL,
                 entry->former);
}

/*
 * Owners of objects: an entry of a rule file without templates, then the oldest policy.
 */

static void note_file_targets(struct as_policy_set *set, const struct as_ruleset *files)
{
    struct claim *claim, *next;
    HASH_ITER (hh, set->claims, claim, next) {
        claim->file_target = NULL;
        if (claim->count == 0)
            claim_free(set, claim);
    }
    for (size_t i = 0; i < files->target_count; i++) {
        struct as_target_ref *ref;
        if (files->targets[i]->is_templated ||
            as_target_ref_new(files->targets[i], NULL, NULL, &ref, NULL) != 0)
            continue;
        claim = claim_take(set, ref->key);
        if (!claim->file_target)
            claim->file_target = files->targets[i]->name;
        as_target_ref_free(ref);
    }
}

static const char *get_owner(const struct claim *claim)
{
    return claim->file_target ? claim->file_target : claim->owner ? claim->owner->policy.id : NULL;
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
static void keep_former(struct as_policy_set *set, struct policy_entry *entry, as_mono_time now)
{
    struct claim *claim = claim_find(set, entry->former);
    if (claim && !get_owner(claim) && now.us - entry->broken.us < AS_POLICY_KEEP_US)
        claim->owner = entry;
    else
        set_compiled(set, entry, entry->compiled, NULL);
}

/* Decides whether the policy is in force. `number`: of those that are older. */
static void place_entry(struct as_policy_set *set, const struct as_policy_join *join,
                        struct policy_entry *entry, size_t number)
{
    const struct as_object_settings *objects = &join->settings->objects;
    struct claim *claim = claim_find(set, entry->compiled);
    const char *owner = claim ? get_owner(claim) : NULL;
    entry->is_in_force = false;
    if (number >= objects->max_policies) {
        refuse_entry(entry, AS_POLICY_TOO_MANY,
                     as_xasprintf("older policies are all %" PRIu32
                                  " that the administrator allows "
                                  "(`objects.max_policies`)",
                                  objects->max_policies),
                     join->now);
    } else if (entry->judged == AS_POLICY_SHADOW) {
        set_compiled(set, entry, entry->compiled, NULL);
        refuse_entry(entry, AS_POLICY_SHADOW,
                     as_xstrdup("`mode: Shadow`: the policy is not in force"), join->now);
    } else if (entry->judged != AS_POLICY_READY) {
        refuse_entry(entry, entry->judged, as_xstrdup(entry->judgement), join->now);
    } else if (owner) {
        refuse_entry(entry, AS_POLICY_TARGET_TAKEN,
                     as_xasprintf("target %s has this object, and has precedence", owner),
                     join->now);
    } else {
        claim->owner = entry;
        entry_set_reason(entry, AS_POLICY_READY, as_xstrdup("the policy is in force"));
        entry->is_in_force = true;
        entry->broken = AS_MONO_NEVER;
        set_compiled(set, entry, entry->compiled, NULL);
    }
    if (!entry->is_in_force)
        keep_former(set, entry, join->now);
    if (!entry->is_in_force)
        entry_wait(set, entry);
}

/* Who claims what a changed policy claims may get it, or lose it. */
static size_t spread_changes(struct as_policy_set *set)
{
    struct policy_entry *entry;
    size_t count = 0;
    TAILQ_FOREACH (entry, &set->dirty, in_dirty) { /* grows meanwhile */
        const struct compiled *const both[] = {entry->compiled, entry->former};
        for (size_t i = 0; i < AS_ARRAY_SIZE(both); i++) {
            struct claim *claim = claim_find(set, both[i]);
            if (claim)
                claim->owner = NULL;
            for (size_t k = 0; claim && k < claim->count; k++)
                mark_dirty(set, claim->claimants[k]);
        }
        count++;
    }
    return count;
}

static void place_entries(struct as_policy_set *set, const struct as_policy_join *join)
{
    const size_t all = HASH_COUNT(set->entries);
    struct policy_entry *entry;
    TAILQ_FOREACH (entry, &set->dirty, in_dirty)
        if (!entry->is_compiled)
            compile_entry(set, entry);
    const bool is_over_max = all > join->settings->objects.max_policies;
    for (size_t i = 0; (is_over_max || set->is_over_max) && i < all; i++)
        mark_dirty(set, set->by_age[i]);
    set->is_over_max = is_over_max;

    const size_t count = spread_changes(set);
    struct policy_entry **entries = as_xcalloc(count + 1, sizeof(struct policy_entry *));
    size_t at = 0;
    TAILQ_FOREACH (entry, &set->dirty, in_dirty)
        entries[at++] = entry;
    qsort(entries, count, sizeof(struct policy_entry *), policies_compare_age);
    for (size_t i = 0; i < count; i++)
        place_entry(set, join, entries[i], i);
    free(entries);
    while ((entry = TAILQ_FIRST(&set->dirty))) {
        TAILQ_REMOVE(&set->dirty, entry, in_dirty);
        entry->is_dirty = false;
        if (!entry->is_placed)
            TAILQ_INSERT_TAIL(&set->placed, entry, in_placed);
        entry->is_placed = true;
    }
}

/*
 * The joined rule set.
 */

/* Why nothing is scaled, as the reason of a pause; NULL: it may be. `text`: room for it. */
static const char *find_pause(const struct policy_entry *entry, char *text, size_t size)
{
    const struct as_scaling_policy *policy = &entry->policy;
    if (!entry->is_in_force)
        (void)snprintf(text, size, "generation %" PRId64 " is not in force: %s", policy->generation,
                       as_policy_reason_get_word(policy->reason));
    else if (policy->rival && !policy->allows_hpa)
        (void)snprintf(text, size, "HPAFound: %.200s scales the same object", policy->rival);
    else
        return policy->paused;
    return text;
}

/* True: they have changed. */
static bool set_terms(const struct policy_entry *entry, struct compiled *compiled)
{
    const struct as_scaling_policy *policy = &entry->policy;
    struct as_policy_terms *terms = &compiled->terms;
    char text[256];
    const char *both = find_pause(entry, text, sizeof(text));
    const char *up = policy->paused_up, *down = policy->paused_down;
    const char *reason = both ? both : up ? up : down;
    const enum as_ways paused = both || (up && down) ? AS_WAYS_BOTH
                                : up                 ? AS_WAYS_UP
                                : down               ? AS_WAYS_DOWN
                                                     : AS_WAYS_NONE;
    if (terms->generation == policy->generation && terms->paused == paused &&
        as_str_equal(terms->pause_reason, reason))
        return false;
    free(compiled->pause_reason);
    compiled->pause_reason = reason ? as_xstrdup(reason) : NULL;
    terms->generation = policy->generation;
    terms->paused = paused;
    terms->pause_reason = compiled->pause_reason;
    return true;
}

/* Notes what the new rule set has of an entry. */
static void note_change(struct policy_entry *entry, struct joined *joined)
{
    struct compiled *before = entry->joined, *now = get_rules_of(entry);
    const bool is_other = now && set_terms(entry, now);
    if (before == now && !is_other)
        return;
    if (before)
        compiled_append(&joined->removed, before);
    if (now) {
        compiled_append(&joined->added, now);
        now->uses++;
    }
    entry->joined = now;
}

/* The digest of all policies is a sum, so that one of them can be replaced. */
static void sum_digest(uint64_t sum_io[DIGEST_LANES], struct compiled *compiled, bool is_added)
{
    if (is_added) {
        const struct as_policy_terms *terms = &compiled->terms;
        struct content_hash hash = content_hash_begin();
        content_hash_add(&hash, terms->namespace, strlen(terms->namespace) + 1);
        content_hash_add(&hash, terms->name, strlen(terms->name) + 1);
        content_hash_add(&hash, terms->uid, strlen(terms->uid) + 1);
        content_hash_add(&hash, (const char *)&terms->generation, sizeof(terms->generation));
        const struct as_digest digest = content_hash_end_digest(&hash);
        memcpy(compiled->digest, digest.bytes, sizeof(compiled->digest));
    }
    for (size_t i = 0; i < DIGEST_LANES; i++)
        sum_io[i] += is_added ? compiled->digest[i] : -compiled->digest[i];
}

static void finish_digest(const struct as_ruleset *files, struct joined *joined)
{
    struct content_hash hash;
    if (joined->ruleset.target_count == files->target_count) {
        memcpy(joined->ruleset.digest, files->digest, sizeof(joined->ruleset.digest));
        return;
    }
    hash = content_hash_begin();
    content_hash_add(&hash, files->digest, strlen(files->digest));
    content_hash_add(&hash, (const char *)joined->sum, sizeof(joined->sum));
    content_hash_end(&hash, joined->ruleset.digest);
}

/* The index of the first target that is not before this one. */
static size_t ruleset_find_place(const struct as_ruleset *ruleset,
                                 const struct as_target_config *target)
{
    size_t low = 0, high = ruleset->target_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (as_target_config_compare(ruleset->targets[middle], target) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t ruleset_find_rules(const struct as_ruleset *ruleset,
                                 const struct as_target_config *target)
{
    size_t low = 0, high = ruleset->rule_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (as_target_config_compare(ruleset->rules[middle]->target, target) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take_out(struct as_ruleset *ruleset, const struct as_ruleset *own)
{
    const size_t at = ruleset_find_place(ruleset, own->targets[0]);
    const size_t rules_at = ruleset_find_rules(ruleset, own->targets[0]);
    ruleset->target_count--;
    ruleset->rule_count -= own->rule_count;
    memmove(&ruleset->targets[at], &ruleset->targets[at + 1],
            (ruleset->target_count - at) * sizeof(struct as_target_config *));
    memmove(&ruleset->rules[rules_at], &ruleset->rules[rules_at + own->rule_count],
            (ruleset->rule_count - rules_at) * sizeof(struct as_rule *));
}

static void put_in(struct as_ruleset *ruleset, const struct as_ruleset *own)
{
    const size_t at = ruleset_find_place(ruleset, own->targets[0]);
    const size_t rules_at = ruleset_find_rules(ruleset, own->targets[0]);
    memmove(&ruleset->targets[at + 1], &ruleset->targets[at],
            (ruleset->target_count - at) * sizeof(struct as_target_config *));
    memmove(&ruleset->rules[rules_at + own->rule_count], &ruleset->rules[rules_at],
            (ruleset->rule_count - rules_at) * sizeof(struct as_rule *));
    ruleset->targets[at] = own->targets[0];
    memcpy(&ruleset->rules[rules_at], own->rules, own->rule_count * sizeof(struct as_rule *));
    ruleset->target_count++;
    ruleset->rule_count += own->rule_count;
}

static void append_own(struct as_ruleset *ruleset, const struct as_ruleset *own)
{
    if (own->target_count > 0)
        memcpy(&ruleset->targets[ruleset->target_count], own->targets,
               own->target_count * sizeof(struct as_target_config *));
    if (own->rule_count > 0)
        memcpy(&ruleset->rules[ruleset->rule_count], own->rules,
               own->rule_count * sizeof(struct as_rule *));
    ruleset->target_count += own->target_count;
    ruleset->rule_count += own->rule_count;
}

/* The rule set before with the changes; or, if they are many, made anew. */
static void fill_tables(const struct as_policy_set *set, const struct as_ruleset *files,
                        bool is_based, struct joined *joined)
{
    struct as_ruleset *ruleset = &joined->ruleset;
    const struct joined *before = set->former;
    const size_t all = HASH_COUNT(set->entries);
    const bool is_spliced = is_based && joined->removed.count + joined->added.count <= SPLICES_MAX;
    size_t targets = is_spliced ? before->ruleset.target_count : files->target_count + all;
    size_t rules = is_spliced ? before->ruleset.rule_count : files->rule_count;
    for (size_t i = 0; is_spliced && i < joined->added.count; i++)
        rules += joined->added.items[i]->ruleset->rule_count;
    for (size_t i = 0; !is_spliced && i < all; i++)
        rules += set->by_age[i]->joined ? set->by_age[i]->joined->ruleset->rule_count : 0;
    targets += joined->added.count;
    ruleset->targets = as_xcalloc(targets + 1, sizeof(struct as_target_config *));
    ruleset->rules = as_xcalloc(rules + 1, sizeof(struct as_rule *));
    append_own(ruleset, is_spliced ? &before->ruleset : files);
    for (size_t i = 0; is_spliced && i < joined->removed.count; i++)
        take_out(ruleset, joined->removed.items[i]->ruleset);
    for (size_t i = 0; is_spliced && i < joined->added.count; i++)
        put_in(ruleset, joined->added.items[i]->ruleset);
    for (size_t i = 0; !is_spliced && i < all; i++)
        if (set->by_age[i]->joined)
            append_own(ruleset, set->by_age[i]->joined->ruleset);
}

static const struct as_ruleset **list_rulesets(const struct compiled_list *list)
{
    const struct as_ruleset **rulesets =
        as_xcalloc(list->count + 1, sizeof(const struct as_ruleset *));
    for (size_t i = 0; i < list->count; i++)
        rulesets[i] = list->items[i]->ruleset;
    return rulesets;
}

static int policies_compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* A policy that was never in force in this process, and may have been before: what is stored of its
 * target waits. */
static void list_awaited(const struct as_policy_set *set, struct joined *joined, as_mono_time now)
{
    const struct policy_entry *entry;
    size_t count = 0;
    TAILQ_FOREACH (entry, &set->waiting, in_waiting)
        count++;
    const char **names = as_arena_alloc(&joined->arena, count + 1, sizeof(*names));
    count = 0;
    TAILQ_FOREACH (entry, &set->waiting, in_waiting) {
        if (!entry->is_in_force && !entry->former && entry->judged != AS_POLICY_SHADOW &&
            now.us - entry->broken.us < AS_POLICY_KEEP_US)
            names[count++] = as_arena_strdup(&joined->arena, entry->policy.id);
    }
    qsort(names, count, sizeof(*names), policies_compare_names);
    joined->ruleset.awaited = names;
    joined->ruleset.awaited_count = count;
}

/* Whether each policy that was awaited still is, or is in force. */
static bool awaits_the_same(const struct as_policy_set *set, const struct as_ruleset *before,
                            const struct as_ruleset *now)
{
    for (size_t i = 0; i < before->awaited_count; i++) {
        const struct policy_entry *entry;
        HASH_FIND_STR(set->entries, before->awaited[i], entry);
        if (!as_ruleset_awaits(now, before->awaited[i]) && !(entry && entry->joined))
            return false;
    }
    return true;
}

static struct joined *join_changes(struct as_policy_set *set, const struct as_policy_join *join,
                                   bool is_based)
{
    struct joined *joined = as_xcalloc(1, sizeof(*joined));
    struct as_ruleset *ruleset = &joined->ruleset;
    struct policy_entry *entry;
    if (set->former)
        memcpy(joined->sum, set->former->sum, sizeof(joined->sum));
    for (size_t i = 0; i < set->gone.count; i++)
        compiled_append(&joined->removed, set->gone.items[i]);
    set->gone.count = 0;
    TAILQ_FOREACH (entry, &set->placed, in_placed)
        note_change(entry, joined);
    for (size_t i = 0; i < joined->removed.count; i++)
        sum_digest(joined->sum, joined->removed.items[i], false);
    for (size_t i = 0; i < joined->added.count; i++)
        sum_digest(joined->sum, joined->added.items[i], true);
    fill_tables(set, join->files, is_based, joined);
    finish_digest(join->files, joined);
    list_awaited(set, joined, join->now);
    ruleset->awaits_policies = !join->is_complete;
    ruleset->serial = ++set->serial;
    if (is_based && awaits_the_same(set, &set->former->ruleset, ruleset))
        ruleset->base = set->former->ruleset.serial;
    ruleset->removed = list_rulesets(&joined->removed);
    ruleset->removed_count = joined->removed.count;
    ruleset->added = list_rulesets(&joined->added);
    ruleset->added_count = joined->added.count;
    return joined;
}

/* New settings judge all policies anew, and new files may take their objects. */
static void renew_all(struct as_policy_set *set, const struct as_policy_join *join)
{
    for (size_t i = 0; i < HASH_COUNT(set->entries); i++) {
        set->by_age[i]->is_compiled =
            set->by_age[i]->is_compiled && set->settings == join->settings;
        mark_dirty(set, set->by_age[i]);
    }
    note_file_targets(set, join->files);
    set->settings = join->settings;
    set->files = join->files;
}

/* Looks at those that wait: takes changes that have waited long enough, and ends what is kept of
 * former generations. */
static void end_waits(struct as_policy_set *set, as_mono_time now)
{
    struct policy_entry *entry, *next;
    TAILQ_FOREACH_SAFE (entry, &set->waiting, in_waiting, next) {
        if (entry->former && now.us - entry->broken.us >= AS_POLICY_KEEP_US)
            mark_dirty(set, entry);
        if (entry->pending && now.us - entry->taken.us >= AS_POLICY_SLOW_US)
            entry_replace(set, entry, take_pending(set, entry), now);
    }
}

static void note_deadlines(struct as_policy_set *set, as_mono_time now)
{
    struct policy_entry *entry, *next;
    set->deadline = AS_MONO_NEVER;
    TAILQ_FOREACH_SAFE (entry, &set->waiting, in_waiting, next) {
        const as_mono_time end = {as_time_add(entry->broken.us, AS_POLICY_KEEP_US)};
        const as_mono_time due = {entry->taken.us + AS_POLICY_SLOW_US};
        if (entry->broken.us == AS_MONO_NEVER.us && !entry->pending) {
            TAILQ_REMOVE(&set->waiting, entry, in_waiting);
            entry->is_waiting = false;
        }
        if (entry->broken.us != AS_MONO_NEVER.us && end.us > now.us && end.us < set->deadline.us)
            set->deadline = end;
        if (entry->pending && due.us < set->deadline.us)
            set->deadline = due;
    }
}

static void forget_placed(struct as_policy_set *set)
{
    struct policy_entry *entry;
    while ((entry = TAILQ_FIRST(&set->placed))) {
        TAILQ_REMOVE(&set->placed, entry, in_placed);
        entry->is_placed = false;
        entry->policy.is_known = true;
    }
}

const struct as_ruleset *as_policy_set_join(struct as_policy_set *set,
                                            const struct as_policy_join *join)
{
    const bool is_same = set->settings == join->settings && set->files == join->files;
    const bool is_based = is_same && set->now && set->is_complete == join->is_complete;
    forget_placed(set);
    end_waits(set, join->now);
    if (!is_same)
        renew_all(set, join);
    place_entries(set, join);
    note_deadlines(set, join->now);
    joined_free(set->former);
    set->former = set->now;
    set->now = NULL;
    if (set->former || set->entries || !join->is_complete)
        set->now = join_changes(set, join, is_based);
    set->is_complete = join->is_complete;
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
    mark_dirty(set, entry);
    return !entry->policy.allows_hpa;
}

size_t as_policy_set_count(const struct as_policy_set *set)
{
    return HASH_COUNT(set->entries);
}

void as_policy_set_visit(const struct as_policy_set *set,
                         bool (*visit)(void *context, const struct as_scaling_policy *policy),
                         void *context)
{
    for (size_t i = 0; i < HASH_COUNT(set->entries); i++)
        if (visit(context, &set->by_id[i]->policy))
            return;
}

void as_policy_set_visit_placed(const struct as_policy_set *set,
                                void (*visit)(void *context,
                                              const struct as_scaling_policy *policy),
                                void *context)
{
    const struct policy_entry *entry;
    TAILQ_FOREACH (entry, &set->placed, in_placed)
        visit(context, &entry->policy);
}

const struct as_scaling_policy *as_policy_set_find(const struct as_policy_set *set, const char *id)
{
    const struct policy_entry *entry;
    HASH_FIND_STR(set->entries, id, entry);
    return entry ? &entry->policy : NULL;
}
