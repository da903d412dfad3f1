/*
 * decide/target.h: which ids name the same target.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/scope.h>

Test(target, a_key_is_the_same_for_all_ids_of_one_object)
{
    static const char *const rows[][2] = {
        {"kubernetes/default/apps/v1/Deployment/shop/web",
         "kubernetes/default/apps/Deployment/shop/web"},
        {"kubernetes/default/apps/v1beta2/Deployment/shop/web",
         "kubernetes/default/apps/Deployment/shop/web"},
        {"kubernetes/default/extensions/v1beta1/Deployment/shop/web",
         "kubernetes/default/apps/Deployment/shop/web"},
        {"kubernetes/default/v1/ReplicationController/shop/web",
         "kubernetes/default//ReplicationController/shop/web"},
        {"kubernetes/edge/extensions.example.org/v1/Pool/shop/web",
         "kubernetes/edge/extensions.example.org/Pool/shop/web"},
        {"kubernetes/default/autoscaling/v2/HorizontalPodAutoscaler/shop/web:field/"
         "spec.minReplicas",
         "kubernetes/default/autoscaling/HorizontalPodAutoscaler/shop/web:field/spec.minReplicas"},
        {"kubernetes/a:b/v1/ConfigMap/shop/web:field/['data']['a/b:c']",
         "kubernetes/a:b//ConfigMap/shop/web:field/data['a/b:c']"},
        {"kubernetes/default/v1/ConfigMap/shop/web:field/..",
         "kubernetes/default//ConfigMap/shop/web:field/.."},
        {"kubernetes/default/v1/ConfigMap/shop/web:", "kubernetes/default//ConfigMap/shop/web:"},
        {"kubernetes/default/v1/ConfigMap/shop/web:fields/a.b",
         "kubernetes/default//ConfigMap/shop/web:fields/a.b"},
        {"kubernetes/default/v1:field/a/b/c/d", "kubernetes/default/v1:field/a/b/c/d"},
        {"kubernetes/a/b", "kubernetes/a/b"},
        {"kubernetes/a/b/c/d/e/f/g", "kubernetes/a/b/c/d/e/f/g"},
        {"node_group/mine/http://H:80/x/", "node_group/mine/http://h/x"},
        {"node_group/mine/https://h:443/%78", "node_group/mine/https://h/x"},
        {"node_group/mine/pool", "node_group/mine/pool"},
        {"node_group/aws/eu-west-1/ASG/", "node_group/aws/eu-west-1/ASG/"},
        {"node_group/", "node_group/"},
        {"node_group/mine", "node_group/mine"},
        {"web", "web"},
        {"", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p) char *key = as_target_key_make(rows[i][0]);
        cr_expect_str_eq(key, rows[i][1], "%s: %s", rows[i][0], key);
    }
}

Test(target, other_objects_have_other_keys)
{
    static const char *const ids[] = {
        "kubernetes/default/apps/v1/Deployment/shop/web",
        "kubernetes/edge/apps/v1/Deployment/shop/web",
        "kubernetes/default/batch/v1/Deployment/shop/web",
        "kubernetes/default/v1/Deployment/shop/web",
        "kubernetes/default/apps/v1/StatefulSet/shop/web",
        "kubernetes/default/apps/v1/Deployment/Shop/web",
        "kubernetes/default/apps/v1/Deployment/shop/web2",
        "kubernetes/default/apps/v1/Deployment/shop/web:field/spec.minReadySeconds",
        "kubernetes/default/apps/v1/Deployment/shop/web:field/spec.revisionHistoryLimit",
        "node_group/mine/http://h/x",
        "node_group/other/http://h/x",
        "node_group/mine/https://h/x",
        "node_group/mine/http://h:81/x",
        "node_group/mine/http://h/X",
        "node_group/mine/http://h/x?a=b",
        "node_group/mine/http://h/%2Fx",
        "node_group/mine/h/x",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(ids); i++) {
        for (size_t k = 0; k < AS_ARRAY_SIZE(ids); k++)
            cr_expect_eq(as_target_is_same(ids[i], ids[k]), i == k, "%s, %s", ids[i], ids[k]);
    }
}

/* A credential for the object's scale reaches no field of it. */
Test(target, a_pattern_of_an_object_does_not_match_its_fields)
{
    static const char id[] = "kubernetes/default/apps/v1/Deployment/shop/web:field/spec.a";
    cr_expect_not(as_scope_match("kubernetes/default/apps/v1/Deployment/shop/web", id));
    cr_expect_not(as_scope_match("kubernetes/*/shop/web", id));
    cr_expect(as_scope_match("kubernetes/*/shop/web:field/*", id));
}

Test(target, the_end_of_an_id_is_its_name)
{
    static const char *const rows[][2] = {
        {"kubernetes/default/apps/v1/Deployment/shop/web", "web"},
        {"kubernetes/default/apps/v1/Deployment/shop/web:field/metadata.labels['a/b']",
         "web:field/metadata.labels['a/b']"},
        {"node_group/mine/http://h:80/x", "x"},
        {"web", "web"},
        {"", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_str_eq(as_target_id_get_end(rows[i][0]), rows[i][1]);
}

Test(target, a_reference_keeps_its_id_and_has_the_key_of_it)
{
    const struct as_target_field field = {"url", "http://H/x"};
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *ref =
        as_target_ref_make(&as_target_kind_node_group, "node_group/mine/http://H/x", &field, 1);
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *copy = as_target_ref_copy(ref);
    cr_expect_str_eq(copy->id, "node_group/mine/http://H/x");
    cr_expect_str_eq(copy->key, "node_group/mine/http://h/x");
    cr_expect_str_eq(as_target_ref_get(copy, "url"), "http://H/x");
}

/* --- `allow` --- */

static const char *get_template(const char *key)
{
    return strcmp(key, "url") == 0 ? "http://h/{{ .Labels.x }}/g" : "{{ .Labels.x }}";
}

static struct as_template *make_template(const char *text)
{
    struct as_template *template = NULL;
    cr_assert_eq(as_template_new(text, &template, NULL), 0, "%s", text);
    return template;
}

/* Whether an alert may select the key's value "v1". `lists`: those that have it, as bits. */
static bool may_select(const struct as_target_kind *kind, const char *key, unsigned lists)
{
    static char value[] = "v1", url[] = "http://h/*/g";
    static char *values[] = {value}, *urls[] = {url};
    const struct as_label pair = {"x", "v1"};
    struct as_address_field fields[] = {
        {.key = (char *)(uintptr_t)key, .value = make_template(get_template(key))}};
    struct as_target_config config = {
        .name = value, .kind = kind, .address = fields, .address_count = 1, .is_templated = true};
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    struct as_error error = AS_ERROR_INIT;
    for (enum as_allow i = 0; i < AS_ALLOW_COUNT; i++) {
        if (lists >> i & 1)
            config.allowed[i] = (struct as_allowed){i == AS_ALLOW_URLS ? urls : values, 1};
    }
    cr_assert_eq(as_labels_new(&pair, 1, &labels), 0);
    const bool is_ok = as_target_ref_new(&config, labels, labels, &ref, &error) == AS_TARGET_OK;
    cr_expect(is_ok || *error.text);
    as_template_free(fields[0].value);
    return is_ok;
}

/* Of every kind: a template is limited by its own list of `allow`, or is refused. */
Test(target, no_template_is_without_a_limit)
{
    /* All keys that a template may stand in. The others, of any kind, are refused. */
    static const struct {
        const char *kind, *key;
        enum as_allow list;
    } limited[] = {
        {"kubernetes", "cluster", AS_ALLOW_CLUSTERS},
        {"kubernetes", "apiVersion", AS_ALLOW_API_VERSIONS},
        {"kubernetes", "kind", AS_ALLOW_KINDS},
        {"kubernetes", "namespace", AS_ALLOW_NAMESPACES},
        {"kubernetes", "name", AS_ALLOW_NAMES},
        {"node_group", "name", AS_ALLOW_NAMES},
        {"node_group", "url", AS_ALLOW_URLS},
    };
    static const char *const others[] = {
        "cluster", "kind", "namespace", "zone",
        "plan",    "url",  "name"}; /* keys without a row of their own */
    const unsigned all = (1u << AS_ALLOW_COUNT) - 1;
    size_t seen = 0;
    for (size_t i = 0; as_target_kinds[i]; i++) {
        const struct as_target_kind *kind = as_target_kinds[i];
        const char *keys[AS_TARGET_KEYS_MAX + AS_ARRAY_SIZE(others)];
        size_t count = 0;
        for (const struct as_address_key *row = kind->keys; row->is_valid; row++) {
            if (row->key)
                keys[count++] = row->key;
            for (size_t k = 0; !row->key && k < AS_ARRAY_SIZE(others); k++)
                keys[count++] = others[k];
        }
        for (size_t k = 0; k < count; k++) {
            unsigned own = 0;
            for (size_t n = 0; n < AS_ARRAY_SIZE(limited); n++) {
                if (strcmp(limited[n].kind, kind->word) == 0 &&
                    strcmp(limited[n].key, keys[k]) == 0)
                    own = 1u << limited[n].list;
            }
            seen += own != 0;
            cr_expect_not(may_select(kind, keys[k], 0), "%s %s", kind->word, keys[k]);
            cr_expect_not(may_select(kind, keys[k], all & ~own), "%s %s", kind->word, keys[k]);
            cr_expect(!own || may_select(kind, keys[k], own), "%s %s", kind->word, keys[k]);
        }
    }
    cr_expect_eq(seen, AS_ARRAY_SIZE(limited));
}

struct allow_row {
    const char *url, *name, *names, *urls;
    const char *label; /* for {{ .Labels.x }} */
    bool is_allowed;
};

static bool is_reached(const struct allow_row *row)
{
    static char url_key[] = "url", name_key[] = "name", provider_key[] = "provider";
    struct as_address_field fields[3] = {
        {.key = provider_key, .value = make_template("mine")},
        {.key = url_key, .value = make_template(row->url)},
        {.key = name_key, .value = row->name ? make_template(row->name) : NULL},
    };
    char *names[] = {(char *)(uintptr_t)row->names}, *urls[] = {(char *)(uintptr_t)row->urls};
    const struct as_target_config config = {
        .name = name_key,
        .kind = &as_target_kind_node_group,
        .address = fields,
        .address_count = row->name ? 3 : 2,
        .is_templated = strstr(row->url, "{{") || (row->name && strstr(row->name, "{{")),
        .allowed = {[AS_ALLOW_NAMES] = {names, row->names != NULL},
                    [AS_ALLOW_URLS] = {urls, row->urls != NULL}},
    };
    const struct as_label pair = {"x", row->label};
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    cr_assert_eq(as_labels_new(&pair, 1, &labels), 0);
    const bool is_ok = as_target_ref_new(&config, labels, labels, &ref, NULL) == AS_TARGET_OK;
    if (is_ok)
        cr_expect(as_target_allows(&config, ref), "%s", ref->id);
    for (size_t i = 0; i < config.address_count; i++)
        as_template_free(fields[i].value);
    return is_ok;
}

Test(target, allow_limits_names_and_urls_of_http_groups)
{
    static const char at_end[] = "http://H:80/g/{{ .Labels.x }}/",
                      inside[] = "http://H/{{ .Labels.x }}/g", plain[] = "http://h/g",
                      name[] = "{{ .Labels.x }}", other[] = "group-{{ .Labels.x }}";
    static const struct allow_row rows[] = {
        /* `names`: the last path segment, or the URL as written */
        {at_end, NULL, "*", NULL, "web", true},
        {at_end, NULL, "web", NULL, "web", true},
        {at_end, NULL, "web", NULL, "db", false},
        {at_end, NULL, "http://H:80/g/w*", NULL, "web", true},
        {at_end, NULL, "http://H:80/g/w*", NULL, "db", false},
        {at_end, NULL, NULL, NULL, "web", false},
        /* with a name: both */
        {at_end, name, "w*", NULL, "web", true},
        {at_end, name, "w*", NULL, "db", false},
        {at_end, other, "group-*", NULL, "web", false},
        {at_end, other, "*web", NULL, "web", true},
        {at_end, other, "group-*", "http://h/g/*", "web", true},
        {at_end, other, "group-*", "http://h/g/db", "web", false},
        {at_end, "fixed", "fixed", NULL, "web", false},
        /* a template further on needs `urls`, in the normal form */
        {inside, NULL, "*", NULL, "web", false},
        {inside, NULL, NULL, "http://h/*/g", "web", true},
        {inside, NULL, NULL, "http://h/w*/g", "web", true},
        {inside, NULL, NULL, "http://h/w*/g", "db", false},
        {inside, NULL, NULL, "http://H/*/g", "web", false},
        {inside, NULL, NULL, "*", "web", true},
        {inside, name, "*", NULL, "web", false},
        {inside, name, "web", "http://h/*/g", "web", true},
        {inside, name, "web", "http://h/*/g", "db", false},
        {inside, name, NULL, "http://h/*/g", "web", false},
        {inside, name, "*", "http://h/db/g", "web", false},
        /* a template in the name only */
        {plain, name, "web", NULL, "web", true},
        {plain, name, "web", NULL, "db", false},
        {plain, name, NULL, "http://h/g", "web", false},
        {plain, name, "web", "http://h/x", "web", false},
        /* none */
        {plain, NULL, NULL, NULL, "web", true},
        {plain, "fixed", "fixed", NULL, "web", true},
        {plain, NULL, "http://h/*", NULL, "web", true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_eq(is_reached(&rows[i]), rows[i].is_allowed, "row %zu: %s, %s", i, rows[i].url,
                     rows[i].label);
}

Test(target, a_group_has_its_ids_by_url_and_by_name)
{
    static const struct as_target_field fields[] = {
        {"provider", "mine"}, {"url", "http://H/x"}, {"name", "workers"}};
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *ref = as_target_ref_make(&as_target_kind_node_group,
                                                   "node_group/mine/http://H/x", fields, 3),
                         *cloud = as_target_ref_make(&as_target_kind_node_group,
                                                     "node_group/mine/workers", &fields[2], 1);
    AS_CLEANUP(as_free_p) char *by_url = as_target_ref_make_url_id(ref);
    AS_CLEANUP(as_free_p) char *by_name = as_target_ref_make_name_id(ref);
    cr_expect_str_eq(by_url, "node_group/mine/http://H/x");
    cr_expect_str_eq(by_name, "node_group/mine/workers");
    cr_expect(as_target_ref_has_id(ref, "node_group/mine/http://h:80/x/"));
    cr_expect(as_target_ref_has_id(ref, "node_group/mine/workers"));
    cr_expect_not(as_target_ref_has_id(ref, "node_group/theirs/workers"));
    cr_expect_null(as_target_ref_make_url_id(cloud));
    cr_expect_null(as_target_ref_make_name_id(cloud));
}
