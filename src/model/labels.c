/*
 * Label sets: one block of memory with the sorted array, followed by the texts.
 *
 * Alertmanager sends its labels sorted. So sorting is the exception: it is done only if a pair is
 * out of order.
 *
 * Digests follow at the end. The module keeps no table of label sets.
 */
#include <alertscaler/model/labels.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>

#define BYTES_MAX (UINT32_C(16) << 20)

static int labels_compare_names(const void *a, const void *b)
{
    return strcmp(((const struct as_label *)a)->name, ((const struct as_label *)b)->name);
}

/* Sorts if necessary; -EEXIST if a name comes twice. */
static int labels_sort(struct as_label *items, size_t count)
{
    int order = -1;

    for (size_t i = 1; i < count && order < 0; i++)
        order = labels_compare_names(&items[i - 1], &items[i]);
    if (order < 0)
        return 0;
    if (order == 0)
        return -EEXIST;
    qsort(items, count, sizeof(*items), labels_compare_names);
    for (size_t i = 1; i < count; i++) {
        if (labels_compare_names(&items[i - 1], &items[i]) == 0)
            return -EEXIST;
    }
    return 0;
}

static const char *move_text(char **end, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*end, text, size);

    *end += size;
    return copy;
}

/* Bytes of names and values; -EMSGSIZE where they are too many. */
static int labels_measure_texts(const struct as_label *pairs, size_t count, size_t *bytes_out)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += strlen(pairs[i].name) + strlen(pairs[i].value) + 2;
        if (bytes > BYTES_MAX)
            return -EMSGSIZE;
    }
    *bytes_out = bytes;
    return 0;
}

/* `labels` has room for all of it. */
static int labels_fill(struct as_labels *labels, const struct as_label *pairs, size_t count,
                       size_t bytes)
{
    labels->count = (uint32_t)count;
    labels->bytes = (uint32_t)bytes;
    if (count)
        memcpy(labels->items, pairs, count * sizeof(*pairs));

    int status = labels_sort(labels->items, count);
    if (status < 0)
        return status;

    char *end = (char *)&labels->items[count];
    for (size_t i = 0; i < count; i++) {
        labels->items[i].name = move_text(&end, labels->items[i].name);
        labels->items[i].value = move_text(&end, labels->items[i].value);
    }
    return 0;
}

int as_labels_new(const struct as_label *pairs, size_t count, struct as_labels **labels_out)
{
    size_t bytes;
    int status = labels_measure_texts(pairs, count, &bytes);

    if (status < 0)
        return status;
    AS_CLEANUP(as_labels_free_p)
    struct as_labels *labels = as_xmalloc(sizeof(*labels) + count * sizeof(*pairs) + bytes);
    if ((status = labels_fill(labels, pairs, count, bytes)) < 0)
        return status;
    *labels_out = labels;
    labels = NULL;
    return 0;
}

int as_labels_new_in(struct as_arena *arena, const struct as_label *pairs, size_t count,
                     const struct as_labels **labels_out)
{
    size_t bytes;
    int status = labels_measure_texts(pairs, count, &bytes);

    if (status < 0)
        return status;
    struct as_labels *labels =
        as_arena_alloc_raw(arena, sizeof(*labels) + count * sizeof(*pairs) + bytes);
    if ((status = labels_fill(labels, pairs, count, bytes)) == 0)
        *labels_out = labels;
    return status;
}

struct as_labels *as_labels_free(struct as_labels *labels)
{
    free(labels);
    return NULL;
}

static size_t labels_get_size(const struct as_labels *labels)
{
    return sizeof(*labels) + labels->count * sizeof(labels->items[0]) + labels->bytes;
}

static struct as_labels *copy_into(struct as_labels *copy, const struct as_labels *labels)
{
    ptrdiff_t offset = (char *)copy - (const char *)labels;

    memcpy(copy, labels, labels_get_size(labels));
    for (uint32_t i = 0; i < copy->count; i++) {
        copy->items[i].name += offset;
        copy->items[i].value += offset;
    }
    return copy;
}

struct as_labels *as_labels_copy(const struct as_labels *labels)
{
    return copy_into(as_xmalloc(labels_get_size(labels)), labels);
}

struct as_labels *as_labels_copy_to(struct as_arena *arena, const struct as_labels *labels)
{
    return copy_into(as_arena_alloc_raw(arena, labels_get_size(labels)), labels);
}

const char *as_labels_find(const struct as_labels *labels, const char *name)
{
    size_t low = 0, high = labels->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, labels->items[middle].name);
        if (order == 0)
            return labels->items[middle].value;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *as_labels_get(const struct as_labels *labels, const char *name)
{
    const char *value = as_labels_find(labels, name);

    return value ? value : "";
}

bool as_labels_equal(const struct as_labels *a, const struct as_labels *b)
{
    if (a->count != b->count || a->bytes != b->bytes)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->items[i].name, b->items[i].name) != 0 ||
            strcmp(a->items[i].value, b->items[i].value) != 0)
            return false;
    }
    return true;
}

/* FNV-1a over the text and the separator after it. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    const uint64_t prime = UINT64_C(0x100000001b3);

    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * prime;
    return (hash ^ 0xFF) * prime;
}

uint64_t as_labels_get_fingerprint(const struct as_labels *labels)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (uint32_t i = 0; i < labels->count; i++) {
        hash = hash_text(hash, labels->items[i].name);
        hash = hash_text(hash, labels->items[i].value);
    }
    return hash;
}

bool as_labels_are_own(const struct as_labels *labels)
{
    return as_labels_find(labels, AS_OWN_ALERT_LABEL) != NULL;
}

const char *as_annotations_find_state(const struct as_labels *annotations)
{
    const char *state = annotations ? as_labels_get(annotations, AS_STATE_REASON) : "";
    return *state ? state : NULL;
}

size_t as_labels_measure(const struct as_labels *labels)
{
    return labels ? AS_ALLOC_EXTRA + labels_get_size(labels) : 0;
}

/* Kubernetes' rules */

#define KEY_PREFIX_MAX 253 /* bytes */
#define KEY_NAME_MAX   63
#define DIGITS         "0123456789"
#define LOWER          "abcdefghijklmnopqrstuvwxyz"
#define UPPER          "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* All `inner` characters, with an `outer` one at both ends. */
static bool is_word(const char *text, size_t size, const char *inner, const char *outer)
{
    return size > 0 && strspn(text, inner) >= size && strchr(outer, text[0]) &&
           strchr(outer, text[size - 1]);
}

static bool labels_is_name(const char *text)
{
    const size_t size = strlen(text);
    return size <= KEY_NAME_MAX &&
           is_word(text, size, DIGITS LOWER UPPER "-_.", DIGITS LOWER UPPER);
}

/* A subdomain of DNS: words of lower-case letters, digits and `-`, with points between them. */
static bool is_subdomain(const char *text, size_t size)
{
    if (size > KEY_PREFIX_MAX)
        return false;
    for (const char *end = text + size, *word = text; word <= end;) {
        const char *point = memchr(word, '.', (size_t)(end - word));
        const size_t word_size = (size_t)((point ? point : end) - word);
        if (!is_word(word, word_size, DIGITS LOWER "-", DIGITS LOWER))
            return false;
        word += word_size + 1;
    }
    return true;
}

bool as_label_is_kubernetes_key(const char *text)
{
    const char *slash = strchr(text, '/');
    return slash ? is_subdomain(text, (size_t)(slash - text)) && labels_is_name(slash + 1)
                 : labels_is_name(text);
}

bool as_label_is_kubernetes_value(const char *text)
{
    return !*text || labels_is_name(text);
}

/*
 * Digests of label sets. The texts of a set are stored after its array in exactly the form that is
 * hashed, so one pass hashes them.
 */

struct as_labels_hasher {
    EVP_MD_CTX *context;
};

/* Never changes and is never freed: fetching it takes longer than hashing an alert's labels. */
static EVP_MD *sha256;

static void labels_fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!sha256)
        abort(); /* without SHA-256 OpenSSL is useless here */
}

static const EVP_MD *get_sha256(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, labels_fetch_sha256);
    return sha256;
}

struct as_labels_hasher *as_labels_hasher_new(void)
{
    struct as_labels_hasher *hasher = as_xmalloc(sizeof(*hasher));
    hasher->context = EVP_MD_CTX_new();
    if (!hasher->context)
        abort(); /* only without memory */
    return hasher;
}

struct as_labels_hasher *as_labels_hasher_free(struct as_labels_hasher *hasher)
{
    if (hasher) {
        EVP_MD_CTX_free(hasher->context);
        free(hasher);
    }
    return NULL;
}

struct as_digest as_labels_hasher_get(struct as_labels_hasher *hasher,
                                      const struct as_labels *labels)
{
    struct as_digest digest;
    if (!EVP_DigestInit_ex2(hasher->context, get_sha256(), NULL) ||
        !EVP_DigestUpdate(hasher->context, &labels->items[labels->count], labels->bytes) ||
        !EVP_DigestFinal_ex(hasher->context, digest.bytes, NULL))
        abort();
    return digest;
}

struct as_digest as_digest_get(const void *data, size_t size)
{
    struct as_digest digest;
    if (!EVP_Digest(data, size, digest.bytes, NULL, get_sha256(), NULL))
        abort();
    return digest;
}

struct as_digest as_labels_get_digest(const struct as_labels *labels)
{
    AS_CLEANUP(as_labels_hasher_free_p)
    struct as_labels_hasher *hasher = as_labels_hasher_new();
    return as_labels_hasher_get(hasher, labels);
}
