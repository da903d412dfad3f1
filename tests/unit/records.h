/*
 * Small records for the tests of the chain and the storage.
 */
#ifndef ALERTSCALER_TESTS_RECORDS_H
#define ALERTSCALER_TESTS_RECORDS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/log/log_chain.h>

struct test_record {
    char json[256];
    struct as_audit_record record;
};

/* {"id":N,"kind":"test","time":"..."}: `hash` goes in front, `prev` and `seq` before `time`. */
static inline struct as_audit_record *test_record_make(struct test_record *made, uint64_t id)
{
    int size = snprintf(made->json, sizeof(made->json),
                        "{\"id\":%llu,\"kind\":\"test\",\"time\":\"2026-11-20T10:00:00.000000Z\"}",
                        (unsigned long long)id);
    size_t at = (size_t)(strstr(made->json, "\"time\"") - made->json);

    made->record = (struct as_audit_record){
        .json = made->json, .size = (size_t)size, .at_hash = 1, .at_prev = at, .at_seq = at};
    return &made->record;
}

#endif
