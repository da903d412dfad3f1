/*
 * A record matches if it contains the word of every given filter. The tables here list where each
 * kind of record may have the word; other kinds do not match.
 */
#include "log_filter.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"

static int read_time(const char *option, const char *text, as_wall_time now, as_maybe_time *out,
                     struct as_error *error)
{
    if (!text)
        return 0;
    out->set = true;
    return moment_parse(option, text, now, &out->at, error);
}

static int read_kind(struct log_filter *filter, const char *word, size_t size,
                     struct as_error *error)
{
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        const char *known = as_record_kind_get_word((enum as_record_kind)kind);
        if (strlen(known) == size && !memcmp(known, word, size)) {
            filter->kinds[kind] = true;
            return 0;
        }
    }
    as_error_set(error, "--kind: \"%.*s\" is none of", (int)size, word);
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        size_t used = strlen(error->text);
        snprintf(error->text + used, sizeof(error->text) - used, "%s %s", kind ? "," : "",
                 as_record_kind_get_word((enum as_record_kind)kind));
    }
    return -EINVAL;
}

static int read_kinds(struct log_filter *filter, const char *text, struct as_error *error)
{
    if (!text) {
        memset(filter->kinds, true, sizeof(filter->kinds));
        return 0;
    }
    for (;;) {
        size_t size = strcspn(text, ",");
        int status = read_kind(filter, text, size, error);
        if (status || !text[size])
            return status;
        text += size + 1;
    }
}

static int check_reason(const char *word, struct as_error *error)
{
    enum as_reason reason;

    if (!word || strcmp(word, "queued") == 0 || as_reason_find(word, &reason))
        return 0;
    as_error_set(error, "--reason: there is no reason code \"%s\"", word);
    return -EINVAL;
}

int log_filter_init(struct log_filter *filter, const struct as_args *args, as_wall_time now,
                    struct as_error *error)
{
    *filter = (struct log_filter){.target = as_args_get(args, "target"),
                                  .rule = as_args_get(args, "rule"),
                                  .reason = as_args_get(args, "reason")};
    int status = read_kinds(filter, as_args_get(args, "kind"), error);

    if (!status)
        status = check_reason(filter->reason, error);
    if (!status)
        status = read_time("since", as_args_get(args, "since"), now, &filter->since, error);
    if (!status)
        status = read_time("until", as_args_get(args, "until"), now, &filter->until, error);
    return status;
}

/* A place of a word: member `key` of the record, of its member `in`, or of the elements of the list
 * `in`.`list` (or `list`). The member may itself be a list of texts. */
struct place {
    const char *in, *list, *key;
};

static const struct place target_places[] = {
    {NULL, NULL, "target"}, {NULL, NULL, "target_name"}, {NULL, "targets", "target"}};
static const struct place rule_places[] = {{NULL, NULL, "rule"},
                                           {NULL, "alerts", "rules"},
                                           {NULL, "targets", "rule"},
                                           {"output", NULL, "rule"},
                                           {"input", "proposals", "rule"}};
static const struct place reason_places[] = {
    {NULL, NULL, "outcome"}, {NULL, "alerts", "outcome"}, {"output", NULL, "reason"}};

static bool value_is(const json_t *value, const char *word)
{
    size_t i;
    const json_t *item;

    if (json_is_string(value))
        return as_str_glob(word, json_string_value(value));
    json_array_foreach(value, i, item)
    {
        if (json_is_string(item) && as_str_glob(word, json_string_value(item)))
            return true;
    }
    return false;
}

static bool find_word(const json_t *record, const struct place *places, size_t count,
                      const char *word)
{
    for (size_t i = 0; i < count; i++) {
        const struct place *place = &places[i];
        const json_t *object = place->in ? json_object_get(record, place->in) : record;
        if (!place->list) {
            if (value_is(json_object_get(object, place->key), word))
                return true;
            continue;
        }
        size_t j;
        const json_t *item;
        json_array_foreach(json_object_get(object, place->list), j, item)
        {
            if (value_is(json_object_get(item, place->key), word))
                return true;
        }
    }
    return false;
}

static bool kind_matches(const struct log_filter *filter, const char *word)
{
    bool all = true;

    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        if (strcmp(as_record_kind_get_word((enum as_record_kind)kind), word) == 0)
            return filter->kinds[kind];
        all = all && filter->kinds[kind];
    }
    return all; /* a kind of a later version */
}

static bool has_reason(const json_t *record, const char *word)
{
    const char *reason;
    json_t *count;
    json_object_foreach(json_object_get(record, "outcomes"), reason, count)
    {
        if (as_str_glob(word, reason))
            return true;
    }
    return find_word(record, reason_places, AS_ARRAY_SIZE(reason_places), word);
}

bool log_filter_match(const struct log_filter *filter, const json_t *record, const json_t *details)
{
    const char *time = as_record_get_text(record, "time");
    as_wall_time at = {0};

    if (!kind_matches(filter, as_record_get_text(record, "kind")))
        return false;
    if ((filter->since.set || filter->until.set) && as_wall_time_parse(time, strlen(time), &at))
        return false;
    if ((filter->since.set && at.us < filter->since.at.us) ||
        (filter->until.set && at.us > filter->until.at.us))
        return false;
    if (filter->target &&
        !find_word(details, target_places, AS_ARRAY_SIZE(target_places), filter->target))
        return false;
    if (filter->rule && !find_word(details, rule_places, AS_ARRAY_SIZE(rule_places), filter->rule))
        return false;
    return !filter->reason || has_reason(record, filter->reason);
}
