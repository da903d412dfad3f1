/*
 * The computation of recorded decisions, and the search for the terms that old documents lack.
 */
#include <alertscaler/tools/recompute.h>

#include <stdbool.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/decision.h>

#define OUTPUT_MAX ((size_t)1 << 30)
#define KEY        "\"output\":"

struct recompute {
    const char *line;
    size_t size;
    const json_t *record;
    struct as_decide_document *document;
    struct as_buf output; /* the value of KEY, as in the log if nothing differs */
};

void as_recompute_visit_differences(json_t *logged, json_t *computed,
                                    as_recompute_difference_fn *visit, void *context)
{
    const char *key;
    json_t *value;

    json_object_foreach(computed, key, value)
    {
        const json_t *other = json_object_get(logged, key);
        if (!other || !json_equal(value, other))
            visit(context, key, other, value);
    }
    json_object_foreach(logged, key, value)
    {
        if (!json_object_get(computed, key))
            visit(context, key, value, NULL);
    }
}

static json_t *load_output(const struct recompute *recompute)
{
    const size_t skip = strlen(KEY);

    return json_loadb(recompute->output.data + skip, recompute->output.size - skip, 0, NULL);
}

/* The content may be equal where the bytes differ: the log may have another form. */
static bool is_as_logged(const struct recompute *recompute)
{
    if (memmem(recompute->line, recompute->size, recompute->output.data, recompute->output.size))
        return true;
    json_t *computed = load_output(recompute);
    const bool is_equal =
        computed && json_equal(computed, json_object_get(recompute->record, "output"));

    json_decref(computed);
    return is_equal;
}

static void recompute_decide(struct recompute *recompute)
{
    struct as_decide_document *document = recompute->document;
    struct as_decision decision;

    as_decide_document_decide(document, &decision);
    as_buf_clear(&recompute->output);
    as_buf_append_str(&recompute->output, KEY);
    as_decision_encode_output(&document->input, document->results, &decision, &recompute->output);
}

/*
 * The terms of a pool's plan, which documents before version 3 do not have. The plan was made a
 * little before its decision, perhaps by another clock, for all rules of the pool. Some of these
 * rules are no proposals of the decision: a dry run's are decided apart. So the logged answer is
 * right if a plan at a time that the answer contains, with or without `fit` and `take`, gives this
 * answer to the byte.
 */
#define PLAN_TERMS_VERSION 3
#define PLAN_TIMES_MAX     4

struct plan_times {
    as_wall_time at[PLAN_TIMES_MAX];
    size_t count;
};

static void plan_times_add(struct plan_times *times, const json_t *value)
{
    const char *text = json_string_value(value);
    as_wall_time at;

    if (!text || times->count == PLAN_TIMES_MAX || as_wall_time_parse(text, strlen(text), &at) != 0)
        return;
    for (size_t i = 0; i < times->count; i++) {
        if (times->at[i].us == at.us)
            return;
    }
    times->at[times->count++] = at;
}

/* The likeliest first. */
static struct plan_times list_times(const struct recompute *recompute)
{
    const json_t *output = json_object_get(recompute->record, "output"), *item;
    struct plan_times times = {.count = 0};
    size_t i;

    json_array_foreach(json_object_get(output, "unneeded"), i, item)
        plan_times_add(&times, json_object_get(item, "seen"));
    if (times.count < PLAN_TIMES_MAX)
        times.at[times.count++] = recompute->document->input.now;
    json_array_foreach(json_object_get(output, "asked"), i, item)
        plan_times_add(&times, json_object_get(item, "at"));
    return times;
}

static void decide_by(struct recompute *recompute, const struct as_pool_plan_terms *terms)
{
    struct as_decide_input *input = &recompute->document->input;
    input->plan = NULL;
    input->plan_terms = terms;
    recompute_decide(recompute);
    input->plan_terms = NULL;
}

/* True: some terms give the logged answer. Else `output` is by the likeliest ones. */
static bool find_terms(struct recompute *recompute)
{
    const struct plan_times times = list_times(recompute);
    const struct as_pool_plan_terms of_document = recompute->document->input.plan->terms;
    struct as_pool_plan_terms terms = of_document;

    for (size_t rules = 0; rules < 4; rules++) {
        for (size_t i = 0; i < times.count; i++) {
            terms.now = times.at[i];
            terms.with_fit = of_document.with_fit != (rules % 2 == 1);
            terms.with_take = of_document.with_take != (rules / 2 == 1);
            decide_by(recompute, &terms);
            if (is_as_logged(recompute))
                return true;
        }
    }
    terms = of_document;
    terms.now = times.at[0];
    decide_by(recompute, &terms);
    return is_as_logged(recompute);
}

static enum as_recompute_outcome recompute_compare(struct recompute *recompute,
                                                   enum as_recompute_effort effort)
{
    const struct as_decide_input *input = &recompute->document->input;
    recompute_decide(recompute);
    if (is_as_logged(recompute))
        return AS_RECOMPUTE_EQUAL;
    if (!input->plan || input->version >= PLAN_TERMS_VERSION)
        return AS_RECOMPUTE_DIFFERS;
    if (effort == AS_RECOMPUTE_ONCE)
        return AS_RECOMPUTE_UNKNOWN;
    return find_terms(recompute) ? AS_RECOMPUTE_EQUAL : AS_RECOMPUTE_DIFFERS;
}

int as_recompute(const char *line, size_t size, const json_t *record,
                 enum as_recompute_effort effort, json_t **output_out, struct as_error *error)
{
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;
    struct recompute recompute = {
        .line = line, .size = size, .record = record, .output = AS_BUF_INIT(OUTPUT_MAX)};

    const int status = as_decision_decode_record(line, size, &document, error);
    if (status != 0)
        return status;
    recompute.document = document;
    const enum as_recompute_outcome outcome = recompute_compare(&recompute, effort);
    const int broken = as_buf_check(&recompute.output);
    if (broken == 0 && outcome != AS_RECOMPUTE_EQUAL)
        *output_out = load_output(&recompute);
    as_buf_deinit(&recompute.output);
    if (broken != 0)
        as_error_set(error, "the computed output is too long");
    return broken != 0 ? broken : (int)outcome;
}
