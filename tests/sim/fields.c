/*
 * Targets that are a field of an object, counted in a unit: the real codec reads the object and
 * makes the JSON Patch, and here is the API server that carries it out, or finds a conflict. Values
 * that others set are no multiples of the unit. The object's scale is another target: what changes
 * one of them is a conflict for the other, but each has its own locks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/kube/kube_field.h>

#include "sim.h"

#define UNIT   (INT64_C(64) << 20)
#define ABSENT 2 /* the size of a field that is not there */

static const char behind[] = ":field/";

void fields_randomize(struct world *world, struct target_spec *target)
{
    (void)world;
    target->address = "web";
    target->field = "spec.size";
    target->absent = "2";
}

bool fields_is(const char *id)
{
    return strstr(id, behind) != NULL;
}

struct server_target *fields_find_sibling(struct world *world, const struct server_target *target)
{
    const size_t size = strcspn(target->id, ":");
    for (size_t i = 0; i < world->target_count; i++) {
        struct server_target *other = &world->targets[i];
        if (other != target && strncmp(other->id, target->id, size) == 0 &&
            (other->id[size] == ':' || other->id[size] == '\0'))
            return other;
    }
    return NULL;
}

void fields_choose(struct world *world, struct server_target *target)
{
    struct server_target *sibling = fields_find_sibling(world, target);
    if (sibling) {
        target->exists = sibling->exists;
        target->version = sibling->version;
        target->object = sibling->object;
        target->has_no_version = sibling->has_no_version;
    }
    if (!fields_is(target->id))
        return;
    target->field.is_there = true;
    target->has_no_version = false;
    if (sibling)
        sibling->has_no_version = false;
    target->own_min = target->own_max = -1;
    fields_set(world, target, target->size);
    if (chance(world, 300)) {
        target->field.is_absent = true;
        target->size = ABSENT;
    }
}

void fields_set(struct world *world, struct server_target *target, int32_t size)
{
    target->field.is_absent = false;
    target->field.amount = size > 0 ? (size - 1) * UNIT + between(world, 1, UNIT) : 0;
}

void fields_note_version(struct world *world, const struct server_target *target)
{
    struct server_target *sibling = world->has_fields ? fields_find_sibling(world, target) : NULL;
    if (!sibling)
        return;
    sibling->version = target->version;
    sibling->exists = target->exists;
}

static int print_object(const struct server_target *target, char *out, size_t size)
{
    char field[64] = "";
    if (!target->field.is_absent)
        (void)snprintf(field, sizeof(field), "\"size\":\"%lld\"", (long long)target->field.amount);
    return snprintf(out, size,
                    "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":"
                    "\"web\",\"namespace\":\"shop\",\"uid\":\"uid-%u\",\"resourceVersion\":\"%llu\""
                    "},\"spec\":{%s}}",
                    target->object, (unsigned long long)target->version, field);
}

static struct as_sized get_sized(void)
{
    struct as_sized sized = {.what = AS_SIZED_FIELD, .field = "spec.size", .absent = ABSENT};
    struct as_error error = AS_ERROR_INIT;
    sized.status_field = "";
    if (as_unit_parse("64Mi", &sized.unit, &error) != 0)
        abort();
    return sized;
}

void fields_check_observed(struct world *world, const struct server_target *target)
{
    const struct as_sized sized = get_sized();
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_scale scale;
    char object[512];
    const int size = print_object(target, object, sizeof(object));
    if (as_kube_field_decode(object, (size_t)size, "Deployment", &sized, &scale, &error) != 0)
        fail(world, "%s: %s", target->id, error.text);
    else if (scale.replicas != target->size)
        fail(world, "%s: %s is %d units, and read as %d", target->id, object, target->size,
             scale.replicas);
}

void fields_make_patch(struct world *world, const struct server_target *target, int32_t to,
                       char *patch_out, size_t size)
{
    const struct as_sized sized = get_sized();
    AS_CLEANUP(as_buf_deinit) struct as_buf patch = AS_BUF_INIT(4096);
    struct as_error error = AS_ERROR_INIT;
    char object[512];
    const int length = print_object(target, object, sizeof(object));
    if (as_kube_field_encode_patch(object, (size_t)length, "Deployment", &sized, to, &patch,
                                   &error) != 0)
        fail(world, "%s: %s", target->id, error.text);
    (void)snprintf(patch_out, size, "%.*s", (int)patch.size, patch.data);
}

/* False: a conflict, 409 or 422. */
static bool test(const struct server_target *target, const json_t *operation)
{
    char amount[32], version[32];
    const char *path = log_text(operation, "path"), *value = log_text(operation, "value");
    (void)snprintf(amount, sizeof(amount), "%lld", (long long)target->field.amount);
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)target->version);
    if (strcmp(path, "/metadata/resourceVersion") == 0)
        return strcmp(value, version) == 0;
    if (strcmp(log_text(operation, "op"), "test") == 0 && strcmp(path, "/spec/size") == 0)
        return !target->field.is_absent && strcmp(value, amount) == 0;
    return true;
}

static int64_t read_amount(const char *text)
{
    char *end;
    const long long number = strtoll(text, &end, 10);
    return strcmp(end, "Mi") == 0 ? number << 20 : strcmp(end, "Gi") == 0 ? number << 30 : number;
}

bool fields_carry_out(struct world *world, struct server_target *target, const char *patch,
                      int32_t to)
{
    json_t *operations = json_loads(patch, 0, NULL), *operation;
    int64_t amount = -1;
    bool is_met = true;
    size_t i;
    json_array_foreach(operations, i, operation)
    {
        is_met = is_met && test(target, operation);
        if (strcmp(log_text(operation, "op"), "test") != 0 &&
            strcmp(log_text(operation, "path"), "/spec/size") == 0)
            amount = read_amount(log_text(operation, "value"));
        else if (strcmp(log_text(operation, "path"), "/metadata/resourceVersion") != 0 &&
                 strcmp(log_text(operation, "path"), "/spec/size") != 0)
            fail(world, "%s: changes more than its field: %s", target->id, patch);
    }
    json_decref(operations);
    if (!is_met) {
        trouble_note(world, TROUBLE_FIELD_CONFLICT);
        return false;
    }
    if (amount != to * UNIT)
        fail(world, "%s: %d is not what is set by %s", target->id, to, patch);
    trouble_note(world, target->field.is_absent ? TROUBLE_FIELD_ADDED : TROUBLE_FIELD_SET);
    target->field.is_absent = false;
    target->field.amount = amount;
    return true;
}
