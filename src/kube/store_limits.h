/*
 * Every limit of the store in an API server. docs/high-availability.md says what is refused beyond
 * them.
 */
#ifndef ALERTSCALER_SRC_KUBE_STORE_LIMITS_H
#define ALERTSCALER_SRC_KUBE_STORE_LIMITS_H

#include <stddef.h>

#include <alertscaler/base/time.h>

/* Time of one request; and of all tries of one write, with the pauses between them. */
#define AS_STORE_KUBE_TIMEOUT_US   (5 * AS_US_PER_S)
#define AS_STORE_KUBE_TRYING_US    (20 * AS_US_PER_S)
#define AS_STORE_KUBE_PAUSE_US     (AS_US_PER_S / 10) /* doubles with each try, up to the maximum */
#define AS_STORE_KUBE_PAUSE_MAX_US (2 * AS_US_PER_S)

/* Bytes in an object's texts. Kubernetes allows 1 MiB. */
#define AS_STORE_KUBE_OBJECT_MAX ((size_t)900000)
/* A record goes into a shard that stays below this size. Shards are small, because each change
 * writes a whole shard. */
#define AS_STORE_KUBE_SHARD_FILL ((size_t)128 * 1024)
/* Larger values are cut into pieces of this size. */
#define AS_STORE_KUBE_PIECE_MAX ((size_t)192 * 1024)

/* The journal: its part in the head, which every commit writes again; a single commit in the head;
 * one object of the older part. */
#define AS_STORE_KUBE_TAIL_FILL   ((size_t)32 * 1024)
#define AS_STORE_KUBE_TAIL_MAX    ((size_t)128 * 1024)
#define AS_STORE_KUBE_SEGMENT_MAX ((size_t)768 * 1024)
/* With this many segments, shards are written while no caller waits, TIDY_SHARDS at a time. */
#define AS_STORE_KUBE_TIDY_SEGMENTS 8
#define AS_STORE_KUBE_TIDY_SHARDS   4

/* Bytes of an answer: one object; one page of the list. And the objects on a page. */
#define AS_STORE_KUBE_RESPONSE_MAX ((size_t)4 * 1024 * 1024)
#define AS_STORE_KUBE_PAGE_MAX     ((size_t)64 * 1024 * 1024)
#define AS_STORE_KUBE_PAGE         20

#endif
