/*
 * core/target.h: which ids name the same target.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/core/scope.h>
#include <alertscaler/core/target.h>

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
