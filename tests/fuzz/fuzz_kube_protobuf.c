/* As fuzz_kube_facts.c, with messages of Protocol Buffers. */
#include "fuzz_kube_facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_objects(AS_KUBE_PROTOBUF, data, size);
    return 0;
}
