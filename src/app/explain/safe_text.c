/*
 * C0, DEL, and C1 in UTF-8 may be terminal commands.
 */
#include <alertscaler/app/safe_text.h>

#include <stdbool.h>
#include <stdlib.h>

void as_safe_text_put(FILE *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool is_c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
        if (*at < 0x20 || *at == 0x7f || is_c1)
            fprintf(out, "\\x%02x", is_c1 ? *++at : *at);
        else
            fputc(*at, out);
    }
}

char *as_safe_text_take(char *text)
{
    char *safe = NULL;
    size_t size;
    FILE *out = open_memstream(&safe, &size);
    if (!out)
        abort(); /* only without memory */
    as_safe_text_put(out, text);
    if (fclose(out) != 0)
        abort();
    free(text);
    return safe;
}
