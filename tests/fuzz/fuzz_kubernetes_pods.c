/* Any bytes as the two pages of a list of pods, as a Scale's selector and as a quantity: read, or
 * refused with a reason. The result is sorted, without negative or infinite numbers; walking the
 * JSON and reading it as a whole agree on what is valid. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>

#include "fuzz.h"
#include "kube/kube_pods.h"

static struct as_error error;

static void check_code(int code)
{
    FUZZ_CHECK(code == 0 || ((code == -EBADMSG || code == -E2BIG) && *error.text));
    error.text[0] = '\0';
}

static void check_number(double number)
{
    FUZZ_CHECK(isnan(number) || (number >= 0 && isfinite(number)));
}

static void check_pods(const struct as_kube_pods *pods)
{
    FUZZ_CHECK(pods->count <= pods->max);
    for (size_t i = 0; i < pods->count; i++) {
        const struct as_pod_seen *pod = &pods->items[i];
        FUZZ_CHECK(*pod->name && strlen(pod->name) <= AS_KUBE_POD_NAME_MAX);
        FUZZ_CHECK(i == 0 || strcmp(pods->items[i - 1].name, pod->name) < 0);
        FUZZ_CHECK((unsigned)pod->phase <= AS_POD_UNKNOWN && (unsigned)pod->ready <= AS_UNKNOWN);
        for (size_t k = 0; k < AS_RESOURCE_COUNT; k++) {
            check_number(pod->requests[k]);
            check_number(pod->limits[k]);
        }
    }
}

/* A page is at most 64 levels deep; jansson passes over some NULs. */
static bool may_be_deep(const char *json, size_t size)
{
    size_t brackets = 0;
    for (size_t i = 0; i < size; i++)
        brackets += json[i] == '[' || json[i] == '{';
    return brackets > 60;
}

static void compare_syntax(const char *json, size_t size, int code, bool is_syntax_error)
{
    if (memchr(json, '\0', size)) {
        FUZZ_CHECK(code < 0);
        return;
    }
    if (may_be_deep(json, size))
        return;
    json_t *whole = json_loadb(json, size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    FUZZ_CHECK(whole ? !is_syntax_error : code < 0);
    json_decref(whole);
}

/* The same page twice is the same pods. */
static void check_page(const char *json, size_t size)
{
    struct as_kube_pods pods = AS_KUBE_PODS_INIT(64);
    for (int page = 0; page < 2; page++) {
        AS_CLEANUP(as_free_p) char *next = NULL;
        int code = as_kube_pods_decode(&pods, json, size, &next, &error);
        bool is_syntax_error = code < 0 && strncmp(error.text, "not JSON", 8) == 0;
        check_code(code);
        if (page == 0)
            compare_syntax(json, size, code, is_syntax_error);
        FUZZ_CHECK(!next || (code == 0 && *next));
        if (code)
            as_kube_pods_clear(&pods);
    }
    size_t read = pods.count;
    as_kube_pods_finish(&pods);
    FUZZ_CHECK(pods.count <= read);
    check_pods(&pods);
    as_kube_pods_deinit(&pods);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    AS_CLEANUP(as_free_p) char *selector = NULL;
    double number = 0;

    check_page(text, size);
    int code = as_kube_selector_decode(text, size, &selector, &error);
    check_code(code);
    FUZZ_CHECK(!selector || (code == 0 && *selector));
    code = as_quantity_parse(text, size, &number);
    FUZZ_CHECK(code == 0 || code == -EINVAL);
    FUZZ_CHECK(number >= 0 && number <= 0x1p63);
    return 0;
}
