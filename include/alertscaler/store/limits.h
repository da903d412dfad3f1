/*
 * Every limit of the store in an API server. What is refused beyond them is said in
 * docs/high-availability.md.
 */
#ifndef ALERTSCALER_STORE_LIMITS_H
#define ALERTSCALER_STORE_LIMITS_H

#include <stddef.h>

#include <alertscaler/base/time.h>

/* One request; and all tries of one write, pauses between them included. */
#define AS_STORE_KUBE_TIMEOUT_US   (5 * AS_US_PER_S)
#define AS_STORE_KUBE_TRYING_US    (20 * AS_US_PER_S)
#define AS_STORE_KUBE_PAUSE_US     (AS_US_PER_S / 10) /* doubles with each try, up to */
#define AS_STORE_KUBE_PAUSE_MAX_US (2 * AS_US_PER_S)

/* Bytes of an object's texts. Kubernetes allows 1 MiB. */
#define AS_STORE_KUBE_OBJECT_MAX ((size_t)900000)
/* A record is put where it stays below this; objects stay small, as each change writes all of one.
 */
#define AS_STORE_KUBE_SHARD_FILL ((size_t)128 * 1024)
/* A larger value is cut into pieces. */
#define AS_STORE_KUBE_PIECE_MAX ((size_t)192 * 1024)

/* The journal: the part in the head, which every commit writes again; one commit alone in the head;
 * one object of the older part. */
#define AS_STORE_KUBE_TAIL_FILL   ((size_t)32 * 1024)
#define AS_STORE_KUBE_TAIL_MAX    ((size_t)128 * 1024)
#define AS_STORE_KUBE_SEGMENT_MAX ((size_t)768 * 1024)
/* From so many objects on shards are written when nobody waits, so many of them at a time. */
#define AS_STORE_KUBE_TIDY_SEGMENTS 8
#define AS_STORE_KUBE_TIDY_SHARDS   4

/* Answers: one object; one page of the list and its objects. */
#define AS_STORE_KUBE_RESPONSE_MAX ((size_t)4 * 1024 * 1024)
#define AS_STORE_KUBE_PAGE_MAX     ((size_t)64 * 1024 * 1024)
#define AS_STORE_KUBE_PAGE         20

#endif
