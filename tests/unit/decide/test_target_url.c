/*
 * decide/target.h: what templates and labels may do in a URL.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/target.h>

static struct as_template *make_template(const char *text)
{
    struct as_template *template = NULL;
    cr_assert_eq(as_template_new(text, &template, NULL), 0, "%s", text);
    return template;
}

Test(target_url, a_template_stands_behind_the_host_and_in_no_escape)
{
    static const struct {
        const char *url, *fault; /* a part of it; NULL: none */
    } rows[] = {
        {"http://h/g", NULL},
        {"http://h/a/../g#x", NULL},
        {"http://h/{{ .Labels.a }}", NULL},
        {"http://h/g-{{ .Labels.a }}.{{ .Labels.b }}/x?y={{ .Labels.c }}", NULL},
        {"http://h/%2F{{ .Labels.a }}", NULL},
        {"{{ .Labels.a }}", "behind http://host/"},
        {"http://{{ .Labels.a }}/g", "behind http://host/"},
        {"http://h{{ .Labels.a }}/g", "behind http://host/"},
        {"http://h:80{{ .Labels.a }}", "behind http://host/"},
        {"http://h\\{{ .Labels.a }}", "behind http://host/"},
        {"http://h#/{{ .Labels.a }}", "behind http://host/"},
        {"http://h/g#{{ .Labels.a }}", "no fragment"},
        {"http://h/a b/{{ .Labels.a }}", "no spaces"},
        {"http://h/%{{ .Labels.a }}", "escape"},
        {"http://h/%2{{ .Labels.a }}", "escape"},
        {"http://h/{{ .Labels.a }}%{{ .Labels.b }}", "escape"},
        {"http://h/../{{ .Labels.a }}", "segment of dots"},
        {"http://h/{{ .Labels.a }}/..", "segment of dots"},
        {"http://h/{{ .Labels.a }}/%2e/x", "segment of dots"},
        {"http://h/.%2E/{{ .Labels.a }}", "segment of dots"},
        {"http://h/...{{ .Labels.a }}?x=/../", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AS_CLEANUP(as_template_free_p) struct as_template *url = make_template(rows[i].url);
        const char *fault = as_target_url_find_fault(url);
        cr_expect_eq(!fault, !rows[i].fault, "%s: %s", rows[i].url, fault);
        cr_expect(!fault || !rows[i].fault || strstr(fault, rows[i].fault), "%s: %s", rows[i].url,
                  fault);
    }
}

Test(target_url, where_templates_stand)
{
    static const struct {
        const char *url;
        bool is_at_end;
    } rows[] = {
        {"http://h/g/{{ .Labels.a }}", true},
        {"http://h/{{ .Labels.a }}", true},
        {"http://h/g/{{ .Labels.a }}-{{ .Labels.b }}.x", true},
        {"http://h/g/{{ .Labels.a }}/", true},
        {"http://h/g/{{ .Labels.a }}//?x=/y", true},
        {"http://h/g/{{ .Labels.a }}?x=/y", true},
        {"http://h/g%2F{{ .Labels.a }}", true},
        {"http://h/{{ .Labels.a }}/g", false},
        {"http://h/{{ .Labels.a }}/{{ .Labels.b }}", false},
        {"http://h/{{ .Labels.a }}/{{ .Labels.b }}/", false},
        {"http://h/g?x={{ .Labels.a }}", false},
        {"http://h/g/{{ .Labels.a }}?x={{ .Labels.b }}", false},
        {"http://h/g/{{ .Labels.a }}/?{{ .Labels.b }}", false},
        {"http://h?{{ .Labels.a }}", false},
        {"http://h/g", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AS_CLEANUP(as_template_free_p) struct as_template *url = make_template(rows[i].url);
        cr_expect_eq(as_target_url_varies_at_end(url), rows[i].is_at_end, "%s", rows[i].url);
    }
}

Test(target_url, the_end_is_the_last_segment_of_the_normal_form)
{
    static const char *const rows[][2] = {
        {"http://h/a/b", "b"},   {"http://H:80/a/b/", "b"},   {"http://h/a/b?x=/c", "b"},
        {"http://h/a/%62", "b"}, {"http://h/a%2fb", "a%2Fb"}, {"http://h", ""},
        {"http://h?x=/c", ""},   {"http://h/a/b/..", "a"},    {"web", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AS_CLEANUP(as_free_p) char *end = as_target_url_get_end(rows[i][0]);
        cr_expect_str_eq(end, rows[i][1], "%s: %s", rows[i][0], end);
    }
}

/* A label may neither leave its segment nor say another host. */
Test(target_url, what_a_label_may_give)
{
    static const char *const urls[] = {"http://h/g/{{ .Labels.a }}", "http://h/{{ .Labels.a }}/g",
                                       "http://h/%2e{{ .Labels.a }}/g",
                                       "http://h/g?x={{ .Labels.a }}"};
    static const struct {
        const char *value;
        unsigned allowed; /* in which of the urls, as bits */
    } rows[] = {
        {"web", 15},  {"Web-1_2.x", 15}, {"..", 12}, {".", 8},        {"...", 15},
        {"a/b", 0},   {"a?b", 0},        {"a#b", 0}, {"a@b", 0},      {"a:b", 0},
        {"%2e", 0},   {"%2f", 0},        {"a b", 0}, {"a\\b", 0},     {"a;b", 0},
        {"a&b=c", 0}, {"a+b", 0},        {"~", 0},   {"\xc3\xa4", 0}, {"a\nb", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct as_label pair = {"a", rows[i].value};
        AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
        cr_assert_eq(as_labels_new(&pair, 1, &labels), 0);
        for (size_t k = 0; k < sizeof(urls) / sizeof(*urls); k++) {
            AS_CLEANUP(as_template_free_p) struct as_template *url = make_template(urls[k]);
            AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(1000);
            struct as_error error = AS_ERROR_INIT;
            cr_assert_eq(as_template_expand(url, labels, labels, &out, &error), 0);
            const bool is_allowed = as_target_url_check(url, labels, labels, out.data, &error) == 0;
            cr_expect_eq(is_allowed, rows[i].allowed >> k & 1, "%s in %s", rows[i].value, urls[k]);
            cr_expect(is_allowed || *error.text);
        }
    }
}
