/*
 * model/field_path.h: paths of fields.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/model/field_path.h>

Test(field_path, equal_paths_are_printed_alike)
{
    static const char *const rows[][2] = {
        {"spec.minReplicas", "spec.minReplicas"},
        {"spec['minReplicas']", "spec.minReplicas"},
        {"['spec']['minReplicas']", "spec.minReplicas"},
        {"metadata.annotations['example.com/n']", "metadata.annotations['example.com/n']"},
        {"spec.containers[name=app].env[name=N].value",
         "spec.containers[name=app].env[name=N].value"},
        {"spec.containers['name'='app'].env[name='N'].value",
         "spec.containers[name=app].env[name=N].value"},
        {"a[b='c d']['e.f'].g", "a[b='c d']['e.f'].g"},
        {"a[image=registry:5000/x@sha256~1].b", "a[image=registry:5000/x@sha256~1].b"},
        {"a[0=x].b", "a[0=x].b"},
        {"a['[]']", "a['[]']"},
        {"a['\xC3\xA9']", "a['\xC3\xA9']"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(1000);
        struct as_field_path path;
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(as_field_path_parse(rows[i][0], &path, &error), 0, "%s: %s", rows[i][0],
                     error.text);
        as_field_path_print(&path, path.count, &out);
        cr_expect_str_eq(out.data, rows[i][1]);
    }
}

Test(field_path, an_error_has_its_place)
{
    static const char *const rows[][2] = {
        {"", "offset 0: expected the name of a member"},
        {".spec", "offset 0: expected the name of a member"},
        {"spec.", "offset 5: expected the name of a member"},
        {"spec..a", "offset 5: expected the name of a member"},
        {"spec.'a'", "offset 5: expected the name of a member"},
        {"spec a", "offset 4: expected `.` or `[`"},
        {"spec[0].a", "offset 6: expected `=`: an element is selected by a member"},
        {"spec[name].a", "offset 9: expected `=`"},
        {"spec[name=].a", "offset 10: expected the value of the member"},
        {"spec[name=a b].a", "offset 11: expected `]`"},
        {"spec[name=a", "offset 11: expected `]`"},
        {"spec['a", "offset 6: expected a name and a closing quote"},
        {"spec[''].a", "offset 6: expected a name and a closing quote"},
        {"spec[name=a]", "offset 12: expected a member of the selected element"},
        {"[name=a].b", "offset 0: expected a member: an object is no list"},
        {"spec[*].a", "offset 5: expected a member and its value"},
        {"spec.\x01", "offset 5: expected no control character"},
        {"spec['\xFF']", "expected UTF-8"},
        {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a",
         "expected at most 32 steps"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_field_path path;
        struct as_error error = AS_ERROR_INIT;
        cr_expect_eq(as_field_path_parse(rows[i][0], &path, &error), -EINVAL, "%s", rows[i][0]);
        cr_expect_eq(strncmp(error.text, rows[i][1], strlen(rows[i][1])), 0, "%s: %s", rows[i][0],
                     error.text);
    }
}

Test(field_path, a_path_has_a_limit)
{
    char text[AS_FIELD_PATH_MAX + 2];
    struct as_field_path path;
    memset(text, 'a', sizeof(text));
    text[AS_FIELD_PATH_MAX] = '\0';
    cr_expect_eq(as_field_path_parse(text, &path, NULL), 0);
    text[AS_FIELD_PATH_MAX] = 'a';
    text[AS_FIELD_PATH_MAX + 1] = '\0';
    cr_expect_eq(as_field_path_parse(text, &path, NULL), -EINVAL);
}
