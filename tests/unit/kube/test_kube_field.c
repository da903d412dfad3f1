/*
 * kube/kube_field.h: a field of an object as a size, and the patch that changes it alone.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_field.h>

/* Single quotes stand for double ones. */
static void requote(const char *text, char *out)
{
    for (; *text; text++)
        *out++ = *text == '\'' ? '"' : *text;
    *out = '\0';
}

#define OBJECT_HEAD                                                                                \
    "{'kind':'Thing','metadata':{'uid':'u-1','resourceVersion':'7','annotations':{'a/b':'3'}},"

struct row {
    const char *field, *unit;
    int32_t absent;
    const char *rest; /* of the object */
    int32_t size;     /* -1: an error */
    const char *text; /* the error, or the patch to size + 1 */
};

static struct as_sized make_sized(const struct row *row)
{
    struct as_sized sized = {.what = AS_SIZED_FIELD,
                             .unit = AS_UNIT_NONE,
                             .field = row->field,
                             .absent = row->absent,
                             .status_field = ""};
    if (*row->unit)
        cr_assert_eq(as_unit_parse(row->unit, &sized.unit, NULL), 0);
    return sized;
}

#define VERSION "{'op':'replace','path':'/metadata/resourceVersion','value':'7'},"

static const struct row rows[] = {
    {"spec.n", "", -1, "'spec':{'n':4}}", 4,
     "[{'op':'test','path':'/spec/n','value':4}," VERSION
     "{'op':'replace','path':'/spec/n','value':5}]"},
    {"spec.n", "", -1, "'spec':{'n':'4'}}", 4,
     "[{'op':'test','path':'/spec/n','value':'4'}," VERSION
     "{'op':'replace','path':'/spec/n','value':'5'}]"},
    {"spec.n", "1Gi", -1, "'spec':{'n':'10Gi'}}", 10,
     "[{'op':'test','path':'/spec/n','value':'10Gi'}," VERSION
     "{'op':'replace','path':'/spec/n','value':'11Gi'}]"},
    {"spec.n", "256", -1, "'spec':{'n':512}}", 2,
     "[{'op':'test','path':'/spec/n','value':512}," VERSION
     "{'op':'replace','path':'/spec/n','value':768}]"},
    {"spec.n", "1Gi", -1, "'spec':{'n':1073741825}}", 2,
     "[{'op':'test','path':'/spec/n','value':1073741825}," VERSION
     "{'op':'replace','path':'/spec/n','value':'3Gi'}]"},
    {"metadata.annotations['a/b']", "", -1, "'spec':{}}", 3,
     "[{'op':'test','path':'/metadata/annotations/a~1b','value':'3'}," VERSION
     "{'op':'replace','path':'/metadata/annotations/a~1b','value':'4'}]"},
    {"spec['a~/b']", "", -1, "'spec':{'a~/b':0}}", 0,
     "[{'op':'test','path':'/spec/a~0~1b','value':0}," VERSION
     "{'op':'replace','path':'/spec/a~0~1b','value':1}]"},
    {"spec.c[name=b].e[port=80].n", "", -1,
     "'spec':{'c':[{'name':'a'},{'name':'b','e':[{'port':8},{'port':'x'},{'port':80,'n':2}]}]}}", 2,
     "[{'op':'test','path':'/spec/c/1/e/2/n','value':2}," VERSION
     "{'op':'replace','path':'/spec/c/1/e/2/n','value':3}]"},
    {"spec.n", "", 6, "'spec':{}}", 6, "[" VERSION "{'op':'add','path':'/spec/n','value':7}]"},
    {"spec.n", "", 6, "'spec':{'n':null}}", 6,
     "[" VERSION "{'op':'add','path':'/spec/n','value':7}]"},
    {"spec.a.b.n", "1Gi", 6, "'spec':{}}", 6,
     "[" VERSION "{'op':'add','path':'/spec/a','value':{'b':{'n':'7Gi'}}}]"},
    {"metadata.labels.n", "", 0, "'spec':{}}", 0,
     "[" VERSION "{'op':'add','path':'/metadata/labels','value':{'n':'1'}}]"},
    {"data.n", "", 0, "'data':{}}", 0, "[" VERSION "{'op':'add','path':'/data/n','value':'1'}]"},
    /* errors name the path, and what is there */
    {"spec.n", "", -1, "'spec':{'m':1,'o':2}}", -1, "spec.n: absent; there is: m, o"},
    {"spec.a.n", "", -1, "'spec':{}}", -1, "spec.a: absent; there is: nothing"},
    {"spec.n", "", -1, "'x':1}", -1, "spec: absent; the object has: kind, metadata, x"},
    {"spec.c[name=z].n", "", 3, "'spec':{'c':[{'name':'a'},{'name':'b'}]}}", -1,
     "spec.c[name=z]: no element has this name; there is: a, b"},
    {"spec.c[name=z].n", "", -1, "'spec':{'c':[]}}", -1,
     "spec.c[name=z]: no element has this name; there is: none"},
    {"spec.c[name=a].n", "", -1, "'spec':{'c':[{'name':'a','n':1},{'name':'a','n':1}]}}", -1,
     "spec.c[name=a]: 2 elements have this value, expected one"},
    {"spec.c[name=a].n", "", -1, "'spec':{'c':{'name':'a'}}}", -1, "spec.c: expected a list"},
    {"spec.c.n", "", -1, "'spec':{'c':[]}}", -1,
     "spec.c: a list; an element is selected by a member, like [name=app]"},
    {"spec.c.n", "", -1, "'spec':{'c':7}}", -1, "spec.c: expected an object"},
    {"spec.n", "", -1, "'spec':{'n':true}}", -1,
     "spec.n: expected an integer, found true or false"},
    {"spec.n", "", -1, "'spec':{'n':1.5}}", -1,
     "spec.n: expected an integer, found a number with a fraction or too many digits"},
    {"spec.n", "", -1, "'spec':{'n':'many'}}", -1, "spec.n: expected an integer, found 'many'"},
    {"spec.n", "", -1, "'spec':{'n':'10Gi'}}", -1,
     "spec.n: expected an integer, found '10Gi': for quantities the target needs a `unit`"},
    {"spec.n", "", -1, "'spec':{'n':-1}}", -1,
     "spec.n: expected a size from 0 to 2147483647, found '-1'"},
    {"spec.n", "1Mi", -1, "'spec':{'n':'16Pi'}}", -1,
     "spec.n: expected a size from 0 to 2147483647 in units of 1Mi, found '16Pi'"},
    {"spec.n", "1Gi", -1, "'spec':{'n':'10GB'}}", -1,
     "spec.n: expected an integer or a quantity, found '10GB'"},
    {"spec.n", "", -1, "'spec':{'n':{}}}", -1, "spec.n: expected an integer, found an object"},
};

Test(kube_field, rows)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];
        const struct as_sized sized = make_sized(row);
        char json[1000], plain[1000], expected[1000];
        AS_CLEANUP(as_buf_deinit) struct as_buf patch = AS_BUF_INIT(4000);
        struct as_kube_scale scale = {.replicas = -1};
        struct as_error error = AS_ERROR_INIT;
        snprintf(plain, sizeof(plain), "%s%s", OBJECT_HEAD, row->rest);
        requote(plain, json);
        requote(row->text, expected);
        const int status =
            as_kube_field_decode(json, strlen(json), "Thing", &sized, &scale, &error);
        cr_expect_eq(status, row->size < 0 ? -EBADMSG : 0, "%zu: %s", i, error.text);
        cr_expect_eq(scale.replicas, row->size, "%zu", i);
        cr_expect_eq(as_kube_field_encode_patch(json, strlen(json), "Thing", &sized, row->size + 1,
                                                &patch, &error),
                     status, "%zu", i);
        cr_expect_str_eq(status ? error.text : patch.data, expected, "%zu: %s", i,
                         status ? error.text : patch.data);
        if (status == 0) {
            cr_expect_str_eq(scale.uid, "u-1");
            cr_expect_str_eq(scale.resource_version, "7");
            cr_expect_eq(scale.status_replicas, scale.replicas);
        }
    }
}

Test(kube_field, the_actual_size_is_the_status_fields)
{
    static const struct {
        const char *unit, *status;
        int32_t size; /* -1: an error */
    } cases[] = {{"", "{'m':3}", 3},
                 {"", "{}", 0},
                 {"", "{'m':null}", 0},
                 {"", "{'m':'3'}", 3},
                 {"1Gi", "{'m':'9Gi'}", 9},
                 {"", "{'m':true}", -1},
                 {"", "[]", -1}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        const struct row row = {.field = "spec.n", .unit = cases[i].unit, .absent = -1};
        struct as_sized sized = make_sized(&row);
        char plain[400], json[400];
        struct as_kube_scale scale = {.status_replicas = -1};
        struct as_error error = AS_ERROR_INIT;
        sized.status_field = "status.m";
        snprintf(plain, sizeof(plain), "%s'spec':{'n':4},'status':%s}", OBJECT_HEAD,
                 cases[i].status);
        requote(plain, json);
        cr_expect_eq(as_kube_field_decode(json, strlen(json), "Thing", &sized, &scale, &error),
                     cases[i].size < 0 ? -EBADMSG : 0, "%zu: %s", i, error.text);
        cr_expect_eq(scale.status_replicas, cases[i].size, "%zu", i);
        if (cases[i].size < 0)
            cr_expect_eq(strncmp(error.text, "status", 6), 0, "%s", error.text);
    }
}

Test(kube_field, a_claim_never_shrinks)
{
    const struct row row = {.field = "spec.n", .unit = "1Gi", .absent = -1};
    const struct as_sized sized = make_sized(&row);
    static const char json[] = "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{"
                               "\"resourceVersion\":\"7\"},\"spec\":{\"n\":\"4Gi\"}}";
    AS_CLEANUP(as_buf_deinit) struct as_buf patch = AS_BUF_INIT(4000);
    struct as_error error = AS_ERROR_INIT;
    cr_expect_eq(as_kube_field_encode_patch(json, strlen(json), "PersistentVolumeClaim", &sized, 3,
                                            &patch, &error),
                 -EBADMSG);
    cr_expect_str_eq(error.text, "a PersistentVolumeClaim never shrinks");
    cr_expect_eq(as_kube_field_encode_patch(json, strlen(json), "PersistentVolumeClaim", &sized, 5,
                                            &patch, &error),
                 0);
}

Test(kube_field, no_such_object)
{
    const struct row row = {.field = "spec.n", .unit = "", .absent = -1};
    const struct as_sized sized = make_sized(&row);
    static const char *const cases[][2] = {
        {"[]", "expected a JSON object"},
        {"{\"kind\":\"Other\"}", "kind: expected Thing"},
        {"{\"kind\":\"Thing\",\"metadata\":{},\"spec\":{\"n\":1}}",
         "metadata.resourceVersion: missing"},
        {"", "not JSON"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_kube_scale scale;
        struct as_error error = AS_ERROR_INIT;
        cr_expect_eq(
            as_kube_field_decode(cases[i][0], strlen(cases[i][0]), "Thing", &sized, &scale, &error),
            -EBADMSG);
        cr_expect(strstr(error.text, cases[i][1]), "%zu: %s", i, error.text);
    }
}
