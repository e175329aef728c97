// SPDX-License-Identifier: Apache-2.0
// One RC connection to a device, by the RDMA connection manager: memory, requests, completions, region set-up and calls.
// Every function fails the test case (check.h) on what it does not expect.
#pragma once

#include <rdma/rdma_cma.h>

#include "mrsp.h"

enum { SESSION_SENDS = 128, SESSION_RECEIVES = 64, SESSION_INLINE = 64, SESSION_GATHER = 4 };

// How sessions behave; the same for all.
struct session_options {
    const char *address;
    const char *port;
    int timeout_ms;       // longest wait for any one event or completion
    uint8_t ack_timeout;  // 4.096 us x 2^n; 0: what the kernel takes
};

// A region of a device and its counterpart here.
struct region {
    uint64_t address;
    uint32_t rkey;
    uint32_t size;
    uint8_t *here;  // where an output comes to
};

struct session {
    const struct session_options *options;
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    struct ibv_comp_channel *completions;
    struct ibv_cq *sends;
    struct ibv_cq *receives;
    struct ibv_mr *memory;  // all local buffers
    size_t used;
    uint32_t mtu;  // path MTU in bytes
    unsigned count;
    struct region regions[MRSP_MAX_REGIONS];
};

// A request to post. Requests are numbered by the poster.
struct request {
    enum ibv_wr_opcode opcode;
    uint64_t id;
    int flags;  // IBV_SEND_*; SIGNALED has to be named
    const void *local;
    uint32_t length;
    uint64_t remote;
    uint32_t rkey;
    uint32_t imm;
    uint64_t compare_add;
    uint64_t swap;
};

// Resolves the address and makes the queue pair, but does not connect. `size` bytes of memory are registered.
void session_prepare(struct session *s, const struct session_options *options, size_t size);
// Sends the REQ, and waits for the answer: returns the event's type, and its status in *status if that is not null.
enum rdma_cm_event_type session_connect(struct session *s, int *status);
// Both; fails unless connected.
void session_open(struct session *s, const struct session_options *options, size_t size);
// Waits for an event of the connection manager and returns its type.
enum rdma_cm_event_type session_event(struct session *s, int *status);
// Disconnects and waits until that is done.
void session_close(struct session *s);
// Frees everything. Nothing is said to the device if it is disconnected.
void session_destroy(struct session *s);

// Takes bytes from the session's memory, at a multiple of 4096.
uint8_t *session_take(struct session *s, size_t size);

void session_post(struct session *s, struct request request);
// Posts an atomic operation by the interface that does not look at the alignment of its address.
void session_post_unchecked_atomic(struct session *s, struct request request);
// Posts a receive, with a buffer or without.
void session_post_receive(struct session *s, void *buffer, uint32_t length);
// Waits for the next completion.
struct ibv_wc session_completion(struct session *s, struct ibv_cq *cq);
// Waits for the completion of a request and checks number and status.
void session_expect(struct session *s, uint64_t id, enum ibv_wc_status status);
// Posts a signalled request and waits for its success.
void session_do(struct session *s, struct request request);

// Sends a message of the region set-up and returns the answer's length.
size_t session_ask(struct session *s, const uint8_t *message, size_t length, uint8_t *answer);
// Requests regions, which are then in s->regions. Their counterparts here are taken from the session's memory.
void session_regions(struct session *s, unsigned count, const uint8_t *flags, const uint32_t *sizes);
// Requests one region that is input and output.
struct region *session_region(struct session *s, uint32_t size);
// Waits for the answer of a call, whose receive is posted, and returns the result.
uint32_t session_answer(struct session *s);
// Calls a function and returns its result.
uint32_t session_call(struct session *s, unsigned function);

// Fills with bytes that follow from the seed.
void fill(uint8_t *bytes, size_t length, uint64_t seed);
// Fails with the place of the first difference.
void same(const uint8_t *got, const uint8_t *wanted, size_t length, const char *what);
