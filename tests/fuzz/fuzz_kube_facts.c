/* Any bytes as each kind of object, in JSON: put or refused with a reason; what was put has names,
 * amounts within their range, and no more than its limits; and it can be deleted again. */
#include "fuzz_kube_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_objects(AS_KUBE_JSON, data, size);
    return 0;
}
