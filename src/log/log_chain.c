/*
 * Sealing and checking of single records. The hash covers the bytes of a line: nothing is parsed
 * and printed again. So that two JSON texts of different meaning never pass for one line, the form
 * is strict: top-level keys are plain and ascending (so there are no duplicates), no white space.
 * Deeper levels are covered by the hash as they are, and not checked here.
 */
#include <alertscaler/log/log_chain.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>

#define HASH_DIGITS 64

struct as_chain {
    EVP_MD *sha256;
    EVP_MD_CTX *context;
};

struct as_chain *as_chain_new(void)
{
    struct as_chain *chain = as_xmalloc(sizeof(*chain));

    chain->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    chain->context = EVP_MD_CTX_new();
    if (!chain->sha256 || !chain->context)
        abort(); /* without its own hash function OpenSSL is useless */
    return chain;
}

struct as_chain *as_chain_free(struct as_chain *chain)
{
    if (chain) {
        EVP_MD_CTX_free(chain->context);
        EVP_MD_free(chain->sha256);
        free(chain);
    }
    return NULL;
}

static void digest_begin(struct as_chain *chain)
{
    if (!EVP_DigestInit_ex2(chain->context, chain->sha256, NULL))
        abort();
}

static void digest_add(struct as_chain *chain, const char *data, size_t size)
{
    if (!EVP_DigestUpdate(chain->context, data, size))
        abort();
}

static void digest_end(struct as_chain *chain, char hash_out[AS_AUDIT_HASH_SIZE])
{
    unsigned char bytes[HASH_DIGITS / 2];

    if (!EVP_DigestFinal_ex(chain->context, bytes, NULL))
        abort();
    as_encode_hex_digits(hash_out, bytes, sizeof(bytes));
    hash_out[HASH_DIGITS] = '\0';
}

/* `"hash":"<64 digits>",` */
#define HASH_MEMBER_SIZE (sizeof("\"hash\":\"\",") - 1 + HASH_DIGITS)

void as_chain_seal(struct as_chain *chain, const struct as_audit_record *record,
                   struct as_audit_head *head, struct as_buf *lines)
{
    size_t start = lines->size;

    /* The line, with room for the hash, which is computed last. */
    as_buf_append(lines, record->json, record->at_hash);
    as_buf_append_str(lines, "\"hash\":\"");
    as_buf_append(lines, head->hash, HASH_DIGITS);
    as_buf_append_str(lines, "\",");
    as_buf_append(lines, record->json + record->at_hash, record->at_prev - record->at_hash);
    as_buf_append_str(lines, "\"prev\":\"");
    as_buf_append(lines, head->hash, HASH_DIGITS);
    as_buf_append_str(lines, "\",");
    as_buf_append(lines, record->json + record->at_prev, record->at_seq - record->at_prev);
    as_buf_append_str(lines, "\"seq\":");
    as_buf_append_i64(lines, (int64_t)(head->seq + 1));
    as_buf_append_char(lines, ',');
    as_buf_append(lines, record->json + record->at_seq, record->size - record->at_seq);
    if (lines->failed)
        return;

    char *line = lines->data + start;
    size_t rest = record->at_hash + HASH_MEMBER_SIZE;
    digest_begin(chain);
    digest_add(chain, line, record->at_hash);
    digest_add(chain, line + rest, lines->size - start - rest);
    digest_end(chain, head->hash);
    head->seq++;
    memcpy(line + record->at_hash + strlen("\"hash\":\""), head->hash, HASH_DIGITS);
    as_buf_append_char(lines, '\n');
}

struct span {
    const char *at;
    size_t size;
};

struct member { /* of the top level */
    struct span key, value;
};

/* Skips the string whose opening quote is at `at`. Returns its end, or NULL if it does not end. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && (unsigned char)*at >= 0x20; at++) {
        if (*at == '"')
            return at + 1;
        if (*at == '\\')
            at++;
    }
    return NULL;
}

/* Skips a value, up to the next ',' or '}' of the top level. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            if (!at)
                return NULL;
            continue;
        }
        if (depth == 0 && (*at == ',' || *at == '}'))
            return at;
        if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0)
                return NULL;
            depth--;
        } else if ((unsigned char)*at <= ' ') {
            return NULL;
        }
        at++;
    }
    return NULL;
}

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Reads one `"key":value` at `at`. Returns its end, or NULL if it has another form. */
static const char *scan_member(const char *at, const char *end, struct member *member)
{
    if (at == end || *at != '"')
        return NULL;
    member->key.at = ++at;
    while (at < end && is_key_char(*at))
        at++;
    member->key.size = (size_t)(at - member->key.at);
    if (end - at < 2 || at[0] != '"' || at[1] != ':' || !member->key.size)
        return NULL;
    member->value.at = at + 2;
    at = skip_value(at + 2, end);
    if (at)
        member->value.size = (size_t)(at - member->value.at);
    return at;
}

static bool key_is(const struct member *member, const char *key)
{
    return member->key.size == strlen(key) && !memcmp(member->key.at, key, member->key.size);
}

static bool keys_ascend(const struct span *a, const struct span *b)
{
    size_t shorter = a->size < b->size ? a->size : b->size;
    int order = memcmp(a->at, b->at, shorter);

    return order < 0 || (order == 0 && a->size < b->size);
}

static bool read_hash(const struct span *value, char hash_out[AS_AUDIT_HASH_SIZE])
{
    unsigned char bytes[HASH_DIGITS / 2];

    if (value->size != HASH_DIGITS + 2 || value->at[0] != '"' ||
        !as_decode_hex(value->at + 1, HASH_DIGITS, bytes))
        return false;
    memcpy(hash_out, value->at + 1, HASH_DIGITS);
    hash_out[HASH_DIGITS] = '\0';
    return true;
}

struct fields {
    struct member hash, prev, seq; /* value.at NULL if absent */
};

/* Finds the three members of the chain. False if the line is not in canonical form. */
static bool scan_line(const char *line, size_t size, struct fields *fields)
{
    const char *at = line, *end = line + size;
    struct span last = {.at = "", .size = 0};

    if (size < 2 || *at != '{')
        return false;
    do {
        struct member member;
        at = scan_member(at + 1, end, &member);
        if (!at || !keys_ascend(&last, &member.key))
            return false;
        last = member.key;
        if (key_is(&member, "hash"))
            fields->hash = member;
        else if (key_is(&member, "prev"))
            fields->prev = member;
        else if (key_is(&member, "seq"))
            fields->seq = member;
    } while (*at == ',');
    return at == end - 1;
}

int as_chain_check_line(struct as_chain *chain, const char *line, size_t size,
                        struct as_audit_head *head_out, char prev_out[AS_AUDIT_HASH_SIZE],
                        struct as_error *error)
{
    struct fields fields = {0};
    struct as_audit_head head;
    char prev[AS_AUDIT_HASH_SIZE], hash[AS_AUDIT_HASH_SIZE];
    int64_t seq;

    if (!scan_line(line, size, &fields) || !fields.hash.value.at || !fields.prev.value.at ||
        !fields.seq.value.at) {
        as_error_set(error, "not a whole record in canonical form with hash, prev and seq");
        return AS_CHAIN_MALFORMED;
    }
    const char *after = fields.hash.value.at + fields.hash.value.size;
    if (!read_hash(&fields.hash.value, head.hash) || !read_hash(&fields.prev.value, prev) ||
        as_number_parse_i64(fields.seq.value.at, fields.seq.value.size, &seq) || seq < 1 ||
        *after != ',') {
        as_error_set(error, "hash, prev or seq is not of its form");
        return AS_CHAIN_MALFORMED;
    }
    const char *before = fields.hash.key.at - 1; /* its opening quote */
    digest_begin(chain);
    digest_add(chain, line, (size_t)(before - line));
    digest_add(chain, after + 1, (size_t)(line + size - after - 1));
    digest_end(chain, hash);
    if (memcmp(hash, head.hash, HASH_DIGITS) != 0) {
        as_error_set(error, "record %" PRId64 " was changed: its hash does not fit its content",
                     seq);
        return AS_CHAIN_CHANGED;
    }
    head.seq = (uint64_t)seq;
    *head_out = head;
    memcpy(prev_out, prev, sizeof(prev));
    return AS_CHAIN_OK;
}

int as_chain_verify_line(struct as_chain_verify *verify, const char *line, size_t size,
                         struct as_error *error)
{
    struct as_audit_head head;
    char prev[AS_AUDIT_HASH_SIZE];
    int outcome = as_chain_check_line(verify->chain, line, size, &head, prev, error);

    if (outcome)
        return outcome;
    if (!verify->started && head.seq > 1) {
        verify->head.seq = head.seq - 1; /* the records before are in files that are not here */
        memcpy(verify->head.hash, prev, sizeof(prev));
    } else if (!verify->started) {
        verify->head = AS_AUDIT_HEAD_INIT;
    }
    if (head.seq != verify->head.seq + 1) {
        as_error_set(error, "record %" PRIu64 " follows record %" PRIu64 ": %s", head.seq,
                     verify->head.seq,
                     head.seq > verify->head.seq ? "records are missing between them"
                                                 : "it is there twice or out of order");
        return AS_CHAIN_BROKEN;
    }
    if (memcmp(prev, verify->head.hash, HASH_DIGITS) != 0) {
        as_error_set(error, "record %" PRIu64 " does not continue the record before it", head.seq);
        return AS_CHAIN_BROKEN;
    }
    if (!verify->started)
        verify->first_seq = head.seq;
    verify->started = true;
    verify->head = head;
    return AS_CHAIN_OK;
}
