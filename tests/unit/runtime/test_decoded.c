/*
 * The cache of decoded bodies: a cached result equals decoding, the memory has a bound, and a
 * notification that is too large evicts nothing.
 */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/monitoring/payload.h>
#include <alertscaler/runtime/requests.h>

#define MAX ((size_t)1 << 20)

static struct as_decoded *decoded;

static void begin(void)
{
    decoded = as_decoded_new(MAX);
}

static void end(void)
{
    as_decoded_free(decoded);
}

TestSuite(decoded, .init = begin, .fini = end);

/* A body with one alert; `text` is an annotation. In static memory. */
static const char *print_body(int number, const char *text)
{
    static char body[4096];
    (void)snprintf(
        body, sizeof(body),
        "{\"version\":\"4\",\"alerts\":[{\"status\":\"firing\",\"labels\":{\"alertname\":"
        "\"A\",\"n\":\"%d\"},\"annotations\":{\"text\":\"%s\"},\"startsAt\":"
        "\"2026-11-20T10:00:00Z\"}]}",
        number, text);
    return body;
}

static struct as_notification *get_of(const char *sender, const char *body)
{
    struct as_notification *notification = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_decoded_get(decoded, body, strlen(body), sender, &notification, &error), 0,
                 "%s", error.text);
    return notification;
}

static struct as_notification *get(const char *body)
{
    return get_of(NULL, body);
}

static void expect(uint64_t hits, uint64_t misses)
{
    const struct as_decoded_counts counts = as_decoded_get_counts(decoded);
    cr_assert_eq(counts.hits, hits, "%llu hits", (unsigned long long)counts.hits);
    cr_assert_eq(counts.misses, misses, "%llu misses", (unsigned long long)counts.misses);
}

Test(decoded, the_same_bytes_are_decoded_once)
{
    const struct as_notification *first = get(print_body(1, ""));
    cr_assert_str_eq(as_labels_get(first->alerts[0].labels, "n"), "1");
    cr_assert_eq(first->body_size, strlen(print_body(1, "")));
    cr_assert_eq(strlen(first->body_sha256), 64);
    (void)get(print_body(2, ""));
    expect(0, 2);
    cr_assert_eq(get(print_body(1, "")), first);
    expect(1, 2);
    cr_assert_str_eq(as_labels_get(get(print_body(2, ""))->alerts[0].labels, "n"), "2");
    expect(2, 2);
}

Test(decoded, one_byte_more_is_another_body)
{
    (void)get(print_body(1, "a"));
    cr_assert_str_eq(as_labels_get(get(print_body(1, "ab"))->alerts[0].annotations, "text"), "ab");
    expect(0, 2);
}

Test(decoded, what_is_refused_is_refused_again)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_notification *notification = NULL;
    for (int i = 0; i < 2; i++) {
        cr_assert_lt(as_decoded_get(decoded, "{}", 2, NULL, &notification, &error), 0);
        cr_assert_not_null(strstr(error.text, "alerts"));
    }
    expect(0, 2);
    cr_assert_eq(as_decoded_get_counts(decoded).bytes, 0);
}

Test(decoded, what_was_used_longest_ago_goes_first)
{
    (void)get(print_body(1, ""));
    const size_t one = as_decoded_get_counts(decoded).bytes;
    as_decoded_set_max(decoded, 2 * one);
    (void)get(print_body(2, ""));
    (void)get(print_body(1, ""));
    (void)get(print_body(3, "")); /* in the place of the second */
    expect(1, 3);
    (void)get(print_body(1, ""));
    (void)get(print_body(3, ""));
    expect(3, 3);
    (void)get(print_body(2, ""));
    expect(3, 4);
    as_decoded_set_max(decoded, 2 * one);
    cr_assert_leq(as_decoded_get_counts(decoded).bytes, 2 * one);
}

Test(decoded, a_narrowed_sender_displaces_its_own_entries)
{
    (void)get(print_body(100, ""));
    const size_t one = as_decoded_get_counts(decoded).bytes;
    as_decoded_set_max(decoded, 8 * one);
    for (int i = 101; i < 104; i++)
        (void)get(print_body(i, ""));
    for (int i = 200; i < 300; i++)
        (void)get_of("flood", print_body(i, ""));
    expect(0, 104);
    for (int i = 100; i < 104; i++)
        (void)get(print_body(i, ""));
    expect(4, 104);
    (void)get_of("flood", print_body(300, ""));
    (void)get(print_body(299, "")); /* it is no longer of the narrowed sender alone */
    for (int i = 400; i < 410; i++)
        (void)get_of("flood", print_body(i, ""));
    (void)get(print_body(299, ""));
    expect(6, 115);
}

Test(decoded, what_is_too_large_takes_nobodys_place)
{
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)get(print_body(1, ""));
    as_decoded_set_max(decoded, 2 * as_decoded_get_counts(decoded).bytes);
    cr_assert_eq(strlen(as_labels_get(get(print_body(2, text))->alerts[0].annotations, "text")),
                 sizeof(text) - 1);
    (void)get(print_body(1, ""));
    expect(1, 2);
    (void)get(print_body(2, text));
    expect(1, 3);
}

Test(decoded, without_room_each_is_decoded)
{
    as_decoded_set_max(decoded, 0);
    for (int i = 0; i < 3; i++)
        cr_assert_str_eq(as_labels_get(get(print_body(1, ""))->alerts[0].labels, "n"), "1");
    expect(0, 3);
}
