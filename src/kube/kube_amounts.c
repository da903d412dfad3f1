/*
 * Requests and limits in units: see the header. All arithmetic is exact, in whole numbers.
 */
#include <alertscaler/kube/kubernetes_resources.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>

/* Digits behind the point that count: nanocores; millibytes, as sums of others may have them. */
static const struct {
    const char *word;
    int scale;
} resources[AS_RESOURCE_COUNT] = {
    [AS_RESOURCE_CPU] = {"cpu", 9},
    [AS_RESOURCE_MEMORY] = {"memory", 3},
};

const char *as_kube_resource_get_word(enum as_resource resource)
{
    return resources[resource].word;
}

static int parse(const char *text, int scale, bool round_up, __int128 *amount_out)
{
    int64_t number = 0;
    const int status = as_quantity_parse_scaled(text, strlen(text), scale, round_up, &number);
    *amount_out = number;
    return status;
}

static int get_scale(enum as_resource resource, const struct as_unit *unit)
{
    return unit->scale > resources[resource].scale ? unit->scale : resources[resource].scale;
}

static __int128 get_unit(const struct as_unit *unit, int scale)
{
    __int128 amount = unit->amount;
    for (int i = unit->scale; i < scale; i++)
        amount *= 10;
    return amount;
}

int as_kube_amounts_count(const struct as_kube_amounts *amounts, enum as_resource resource,
                          const struct as_unit *unit, bool keep_limit, int32_t *size_out,
                          int32_t *max_out, struct as_error *error)
{
    const int scale = get_scale(resource, unit);
    const char *word = as_kube_resource_get_word(resource);
    __int128 limit;
    int32_t size;
    if (as_str_is_empty(amounts->request)) {
        as_error_set(error, "it has no request of %s: set one first", word);
        return -ENOENT;
    }
    if (as_unit_count(unit, amounts->request, strlen(amounts->request), &size) != 0) {
        as_error_set(error, "its request of %s, %s, cannot be counted in units of %s", word,
                     amounts->request, unit->text);
        return -ERANGE;
    }
    int32_t max = -1;
    if (keep_limit && !as_str_is_empty(amounts->limit)) {
        if (parse(amounts->limit, scale, false, &limit) < 0) {
            as_error_set(error, "its limit of %s is no quantity: %s", word, amounts->limit);
            return -ERANGE;
        }
        const __int128 most = limit / get_unit(unit, scale);
        max = most > INT32_MAX ? INT32_MAX : (int32_t)most;
    }
    *size_out = size;
    *max_out = max;
    return 0;
}

static int keep(const struct as_kube_amounts *base, int scale, const struct as_unit *unit,
                int32_t size, struct as_kube_amounts *amounts, struct as_error *error)
{
    __int128 limit;
    if (parse(base->limit, scale, false, &limit) == 0 && get_unit(unit, scale) * size <= limit) {
        memcpy(amounts->limit, base->limit, sizeof(amounts->limit));
        return 0;
    }
    as_error_set(error, "a request of %s would be above the limit, %s, which `limits: keep` leaves",
                 amounts->request, base->limit);
    return -ERANGE;
}

/* size x limit / request, in units, rounded up: the units of both cancel out. */
static int scale_limit(const struct as_kube_amounts *base, int scale, const struct as_unit *unit,
                       int32_t size, struct as_kube_amounts *amounts, struct as_error *error)
{
    char text[AS_AMOUNT_SIZE];
    __int128 request, limit;
    if (parse(base->request, scale, true, &request) < 0 || request == 0 ||
        parse(base->limit, scale, true, &limit) < 0) {
        as_error_set(error, "the ratio of its limit, %s, to its request, %s, is not known",
                     base->limit, as_str_is_empty(base->request) ? "none" : base->request);
        return -ERANGE;
    }
    const __int128 units = (limit * size + request - 1) / request;
    if (units > INT32_MAX || !as_unit_is_countable(unit, (int32_t)units)) {
        as_error_set(error, "its limit would be too large for a quantity");
        return -ERANGE;
    }
    as_unit_print(unit, (int32_t)units, text);
    snprintf(amounts->limit, sizeof(amounts->limit), "%s", text);
    return 0;
}

int as_kube_amounts_resize(const struct as_kube_amounts *base, enum as_resource resource,
                           const struct as_unit *unit, bool keep_limit, int32_t size,
                           struct as_kube_amounts *amounts_out, struct as_error *error)
{
    const int scale = get_scale(resource, unit);
    struct as_kube_amounts amounts = {"", ""};
    char text[AS_AMOUNT_SIZE];
    int status = 0;
    as_unit_print(unit, size, text);
    snprintf(amounts.request, sizeof(amounts.request), "%s", text);
    if (!as_str_is_empty(base->limit))
        status = keep_limit ? keep(base, scale, unit, size, &amounts, error)
                            : scale_limit(base, scale, unit, size, &amounts, error);
    if (status == 0)
        *amounts_out = amounts;
    return status;
}
