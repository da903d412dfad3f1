/*
 * The table of adapters: see target_registry.h. In a file of its own, so that a test may have one
 * of its own.
 */
#include <alertscaler/cloud/target_registry.h>

#include <alertscaler/kube/kube_target.h>

const struct as_target_adapter as_target_adapters[] = {
    {&as_target_kind_kubernetes, as_kubernetes_new},
    {0},
};
