/*
 * Compiler attributes used everywhere, and scope-bound ownership.
 *
 * AS_CLEANUP(fn) on a local variable calls fn(&variable) at the end of its scope.
 * AS_DEFINE_CLEANUP(type, fn) makes `fn_p` for it; fn frees its argument and returns NULL.
 */
#ifndef ALERTSCALER_BASE_ATTR_H
#define ALERTSCALER_BASE_ATTR_H

#define AS_MUST_USE        __attribute__((warn_unused_result))
#define AS_PRINTF(fmt, at) __attribute__((format(printf, fmt, at)))
#define AS_RARE            __attribute__((cold, noinline)) /* rarely called: not inlined */
/* unused: clang warns about a variable that only owns memory. */
#define AS_CLEANUP(fn) __attribute__((cleanup(fn), unused))

#define AS_DEFINE_CLEANUP(type, fn)                                                                \
    static inline void fn##_p(type *as_owner)                                                      \
    {                                                                                              \
        if (*as_owner)                                                                             \
            *as_owner = fn(*as_owner);                                                             \
    }

#define AS_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
