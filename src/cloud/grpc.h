/*
 * Unary calls of gRPC as requests of a talk:
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 * One message is sent, one comes back, without compression. The result is in grpc-status, in the
 * trailer or, without a message, in the head.
 */
#ifndef ALERTSCALER_SRC_CLOUD_GRPC_H
#define ALERTSCALER_SRC_CLOUD_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/protobuf.h>
#include <alertscaler/cloud/talk.h>

/* Begins a request that calls `method` ("/package.Service/Method") at `base` (without a slash at
 * its end), with the message. `timeout_us`: sent to the other side; 0: not sent. */
void grpc_ask(struct as_talk *talk, const char *base, const char *method,
              const struct as_buf *message, int64_t timeout_us);

/* The message of a good answer, to be read at once. False after failing the talk with the other
 * side's words; ambiguous if a change may have been made. */
bool grpc_take_message(struct as_talk *talk, struct as_protobuf_reader *message_out) AS_MUST_USE;

/* Fails the talk: the message in a good answer is invalid. */
void grpc_fail_message(struct as_talk *talk, const char *why);

#endif
