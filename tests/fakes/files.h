/*
 * Files that tests write.
 */
#ifndef ALERTSCALER_TESTS_FAKES_FILES_H
#define ALERTSCALER_TESTS_FAKES_FILES_H

#include <stdio.h>

#include <criterion/criterion.h>

static inline void write_file(const char *path, const char *text)
{
    char temporary[256];
    snprintf(temporary, sizeof(temporary), "%s.new", path);
    FILE *file = fopen(temporary, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
    rename(temporary, path); /* another inode, as rotations do */
}

#endif
