// SPDX-License-Identifier: Apache-2.0
// Holds a device against Linux' verbs: every operation with its contents, every error with its status, every way to part.
//
//     nacelle_verbs_client [OPTION...] ADDRESS PORT [CASE...]
//     nacelle_verbs_client -l
//
//     -t MS    longest wait for any one event [10000]
//     -a CODE  send again after 4.096 us x 2^CODE without an ACK [what the kernel takes]
//     -x       frames get lost: "retry count exceeded" is taken for a refusal, whose NAK is sent once only (IBTA 9.9.3)
//
// Each case runs in a process of its own on connections of its own, and prints "case NAME ok|FAIL DETAIL". CASEs are names or shell
// patterns; without one all are run.
// Exit status: 0 if all have passed, 1 if not, 2 if none has run.
#include <endian.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "session.h"

// A length in path MTUs and bytes, since the path MTU is known only when connected.
struct size {
    int mtus;
    int bytes;
};

// A connection, a region of the device with known contents, and these: what nearly every case begins with.
struct scene {
    struct session s;
    struct region *region;
    uint8_t *background;
    uint32_t length;  // the case's size in bytes
    const struct test *test;
};

// A request that the device must refuse.
struct wrong {
    enum ibv_wr_opcode opcode;
    uint32_t length;
    int64_t offset;             // from the region's begin
    bool from_end;              // no, from its end
    uint64_t address;           // if not 0: there, wherever the region is
    uint32_t key;               // bits of the key that are changed
    enum ibv_wc_status status;  // how it completes; IBV_WC_SUCCESS: IBV_WC_REM_ACCESS_ERR
};

// A case of the table.
struct test {
    const char *name;
    // Runs in a scene, which is made before it and closed behind it: with a region of `size` times `pieces`, or with none.
    void (*run)(struct scene *scene);
    struct size size;
    uint32_t pieces;  // 0: one
    bool no_region;
    struct wrong wrong;  // what refuse() does
    // Or makes its connections itself; `number` of whatever it is about.
    void (*alone)(int number);
    int number;
};

// Where in a region the sizes are tried: neither at its begin nor at a multiple of anything.
enum { OFFSET = 5, MARGIN = 64 };
enum { SMALL = 1 << 16, MAX_SIZE = 1 << 20, MEMORY = 5 * MAX_SIZE };
// A case may take as long as so many waits.
enum { CASE_WAITS = 8 };
// REJ reasons (IBTA 12.6.7.2).
enum { REJ_NO_QP = 1, REJ_NO_RESOURCES = 3, REJ_INVALID_SERVICE_ID = 8, REJ_CONSUMER = 28 };

static struct session_options options = {.timeout_ms = 10000};
static bool frames_get_lost;

static uint32_t in_bytes(const struct session *s, struct size size) { return (uint32_t)(size.mtus * (int)s->mtu + size.bytes); }

// Requests one region of `size` bytes at least, filled with a background that is also returned.
static struct region *begin(struct session *s, uint32_t size, uint8_t **background) {
    struct region *region = session_region(s, size + MARGIN);
    *background = session_take(s, region->size);
    fill(*background, region->size, 1);
    session_do(s, (struct request){.opcode = IBV_WR_RDMA_WRITE,
                                   .id = 1000,
                                   .local = *background,
                                   .length = region->size,
                                   .remote = region->address,
                                   .rkey = region->rkey});
    return region;
}

// Fetches the region by a call that changes nothing, and compares.
static void contents(struct session *s, const struct region *region, const uint8_t *wanted) {
    memset(region->here, 0xee, region->size);
    uint32_t result = session_call(s, MRSP_EMPTY);
    check(result == 0, "the call to fetch the region returned %u", result);
    same(region->here, wanted, region->size, "the region");
}

static struct request to_region(enum ibv_wr_opcode opcode, uint64_t id, const struct region *region, uint64_t offset,
                                const void *local, uint32_t length) {
    return (struct request){.opcode = opcode,
                            .id = id,
                            .flags = IBV_SEND_SIGNALED,
                            .local = local,
                            .length = length,
                            .remote = region->address + offset,
                            .rkey = region->rkey};
}

// A refusal is a NAK, which is sent once.
static void expect_refusal(struct session *s, uint64_t id, enum ibv_wc_status status) {
    struct ibv_wc wc = session_completion(s, s->sends);
    check(wc.wr_id == id && (wc.status == status || (frames_get_lost && wc.status == IBV_WC_RETRY_EXC_ERR)),
          "the request completed with \"%s\" instead of \"%s\"", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

// ---- connections ----

static void connect_disconnect(int unused) {
    (void)unused;
    for (int i = 0; i < 3; i++) {
        struct session s;
        session_open(&s, &options, 0);
        session_close(&s);
        session_destroy(&s);
    }
}

static void reject_port(int unused) {
    (void)unused;
    struct session_options wrong = options;
    wrong.port = "4444";
    struct session s;
    session_prepare(&s, &wrong, 0);
    int status;
    enum rdma_cm_event_type type = session_connect(&s, &status);
    check(type == RDMA_CM_EVENT_REJECTED && status == REJ_INVALID_SERVICE_ID, "%s, status %d, instead of a REJ with %d",
          rdma_event_str(type), status, REJ_INVALID_SERVICE_ID);
    session_destroy(&s);
    session_open(&s, &options, 0);
    session_close(&s);
}

static void connect_many(int count) {
    struct session sessions[128];
    int open = 0;
    for (int i = 0; i < count; i++) {
        session_prepare(&sessions[i], &options, 0);
        int status;
        enum rdma_cm_event_type type = session_connect(&sessions[i], &status);
        if (type == RDMA_CM_EVENT_ESTABLISHED) {
            check(open == i, "connection %d is taken after %d was refused", i, open);
            open++;
        } else {
            check(type == RDMA_CM_EVENT_REJECTED &&
                      (status == REJ_NO_QP || status == REJ_NO_RESOURCES || status == REJ_CONSUMER),
                  "connection %d: %s, status %d", i, rdma_event_str(type), status);
        }
    }
    check(open > 0, "no connection was taken");
    for (int i = 0; i < open; i++) {
        session_close(&sessions[i]);
        session_destroy(&sessions[i]);
    }
    // All of them are free again.
    struct session s;
    session_open(&s, &options, 0);
    session_close(&s);
}

static void calls_side_by_side(int unused) {
    (void)unused;
    enum { CALLERS = 4 };
    struct session sessions[CALLERS];
    struct region *regions[CALLERS];
    uint8_t *backgrounds[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        session_open(&sessions[i], &options, SMALL);
        regions[i] = begin(&sessions[i], 3000, &backgrounds[i]);
        fill(backgrounds[i], regions[i]->size, 100 + (uint64_t)i);
        session_do(&sessions[i],
                   to_region(IBV_WR_RDMA_WRITE, 1, regions[i], 0, backgrounds[i], regions[i]->size));
    }
    for (int i = 0; i < CALLERS; i++) {
        contents(&sessions[i], regions[i], backgrounds[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        session_close(&sessions[i]);
    }
}

static void disconnect_during_call(int unused) {
    (void)unused;
    struct session s;
    session_open(&s, &options, MEMORY);
    struct region *region = session_region(&s, SMALL);
    session_post_receive(&s, NULL, 0);
    session_do(&s, (struct request){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                    .remote = region->address,
                                    .rkey = region->rkey,
                                    .imm = MRSP_START | MRSP_INCREMENT});
    session_close(&s);
    session_destroy(&s);
    uint8_t *background;
    session_open(&s, &options, MEMORY);
    region = begin(&s, SMALL, &background);
    contents(&s, region, background);
    session_close(&s);
}

static void after_disconnect(int unused) {
    (void)unused;
    struct session s;
    uint8_t *background;
    session_open(&s, &options, SMALL);
    struct region region = *begin(&s, 100, &background);
    session_close(&s);
    session_post(&s, to_region(IBV_WR_RDMA_WRITE, 7, &region, 0, background, 8));
    session_expect(&s, 7, IBV_WC_WR_FLUSH_ERR);
    // The key has ended with its connection.
    session_destroy(&s);
    session_open(&s, &options, SMALL);
    session_post(&s, to_region(IBV_WR_RDMA_WRITE, 8, &region, 0, s.memory->addr, 8));
    expect_refusal(&s, 8, IBV_WC_REM_ACCESS_ERR);
}

// The device must not write where it has no right to, and ends the connection in that case.
static void disconnected_by_device(int unused) {
    (void)unused;
    struct session s;
    session_open(&s, &options, SMALL);
    struct mrsp_aar_region asked = {.flags = MRSP_INPUT | MRSP_OUTPUT,
                                    .address = (uintptr_t)s.memory->addr,
                                    .rkey = s.memory->rkey ^ 0x5500,
                                    .size = 64};
    uint8_t message[MRSP_MAX_MESSAGE], answer[MRSP_MAX_MESSAGE];
    struct mrsp_a_region given;
    size_t length = session_ask(&s, message, mrsp_write_aar(message, &asked, 1), answer);
    check(mrsp_read_a(answer, length, &given) == 1, "no region");
    session_post_receive(&s, NULL, 0);
    session_do(&s, (struct request){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                    .remote = given.address,
                                    .rkey = given.rkey,
                                    .imm = MRSP_START | MRSP_EMPTY});
    enum rdma_cm_event_type type = session_event(&s, NULL);
    check(type == RDMA_CM_EVENT_DISCONNECTED, "%s instead of a disconnect", rdma_event_str(type));
    rdma_disconnect(s.id);  // answers
    struct ibv_wc wc = session_completion(&s, s.receives);
    check(wc.status != IBV_WC_SUCCESS, "an answer came");
    session_destroy(&s);
    session_open(&s, &options, 0);
    session_close(&s);
}

// ---- region set-up ----

static void set_up(int count) {
    struct session s;
    session_open(&s, &options, MEMORY);
    uint8_t flags[MRSP_MAX_REGIONS], *wanted[MRSP_MAX_REGIONS];
    uint32_t sizes[MRSP_MAX_REGIONS];
    for (int i = 0; i < count; i++) {
        flags[i] = MRSP_INPUT | MRSP_OUTPUT;
        sizes[i] = 1 + 37 * (uint32_t)i;
    }
    session_regions(&s, (unsigned)count, flags, sizes);
    for (int i = 0; i < count; i++) {
        wanted[i] = session_take(&s, sizes[i]);
        fill(wanted[i], sizes[i], (uint64_t)i);
        session_do(&s, to_region(IBV_WR_RDMA_WRITE, (uint64_t)i, &s.regions[i], 0, wanted[i], sizes[i]));
    }
    check(session_call(&s, MRSP_EMPTY) == 0, "the call failed");
    for (int i = 0; i < count; i++) {
        same(s.regions[i].here, wanted[i], sizes[i], "a region");
    }
    session_close(&s);
}

static void set_up_internal(struct scene *scene) {
    struct session *s = &scene->s;
    session_regions(s, 3, (uint8_t[]){MRSP_INPUT, MRSP_OUTPUT, MRSP_INTERNAL}, (uint32_t[]){100, 200, 4096});
    check(s->count == 2, "%u regions instead of 2", s->count);
    check(session_call(s, MRSP_EMPTY) == 0, "the call failed");
}

// What is refused leaves the connection as it was.
static void set_up_refused(struct scene *scene) {
    struct session *s = &scene->s;
    uint8_t message[MRSP_MAX_MESSAGE] = {7, 1, 0, 0}, answer[MRSP_MAX_MESSAGE];
    size_t length = session_ask(s, message, MRSP_HEAD, answer);
    check(length == MRSP_HEAD && answer[0] == MRSP_ERR && answer[1] == MRSP_MALFORMED, "type 7 is answered by %02x %02x, %zu bytes",
          answer[0], answer[1], length);
    struct mrsp_aar_region asked[8];
    for (int i = 0; i < 8; i++) {
        asked[i] = (struct mrsp_aar_region){.flags = MRSP_INPUT, .size = 0xffffffff};
    }
    length = session_ask(s, message, mrsp_write_aar(message, asked, 8), answer);
    check(length == MRSP_HEAD && answer[0] == MRSP_ERR, "32 GiB are answered by %02x %02x, %zu bytes", answer[0], answer[1],
          length);
    uint8_t *background;
    struct region *region = begin(s, 100, &background);
    contents(s, region, background);
}

static void set_up_again(int unused) {
    (void)unused;
    struct session s;
    uint8_t *background;
    session_open(&s, &options, MEMORY);
    struct region old = *begin(&s, 1000, &background);
    struct region *region = begin(&s, 2000, &background);
    contents(&s, region, background);
    session_post(&s, to_region(IBV_WR_RDMA_WRITE, 5, &old, 0, background, 8));
    expect_refusal(&s, 5, IBV_WC_REM_ACCESS_ERR);
}

// ---- calls ----

static void call_empty(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    for (int i = 0; i < 20; i++) {
        contents(s, region, background);
    }
}

static void call_increment(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    for (int i = 0; i < 3; i++) {
        uint32_t result = session_call(s, MRSP_INCREMENT);
        check(result == 0, "the call returned %u", result);
        for (uint32_t at = 0; at < region->size; at++) {
            background[at]++;
        }
        same(region->here, background, region->size, "the region");
    }
}

static void call_without_output(struct scene *scene) {
    struct session *s = &scene->s;
    session_regions(s, 1, (uint8_t[]){MRSP_INPUT}, (uint32_t[]){100});
    memset(s->regions[0].here, 0xee, 100);
    uint32_t result = session_call(s, MRSP_INCREMENT);
    check(result == 0, "the call returned %u", result);
    check(s->regions[0].here[0] == 0xee, "a region that is no output was written");
}

static void call_unknown(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint32_t result = session_call(s, 99);
    check(result == MRSP_NO_SUCH_FUNCTION, "function 99 returned %u", result);
    contents(s, region, background);
}

// Neither an immediate of 0 nor one without the start bit is a call; the connection goes on.
static void call_not_started(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    for (uint32_t imm = 0; imm < 2; imm++) {
        struct request request = to_region(IBV_WR_RDMA_WRITE_WITH_IMM, imm, region, 0, NULL, 0);
        request.imm = imm;
        session_do(s, request);
    }
    contents(s, region, background);
}

// The device's answer finds no receive for a while.
static void answer_waits_for_receive(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    memset(region->here, 0xee, region->size);
    session_do(s, (struct request){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                   .remote = region->address,
                                   .rkey = region->rkey,
                                   .imm = MRSP_START | MRSP_EMPTY});
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    session_post_receive(s, NULL, 0);
    check(session_answer(s) == 0, "the call failed");
    same(region->here, background, region->size, "the region");
}

// ---- RDMA WRITE ----

static void write_size(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint32_t length = scene->length;
    fill(background + OFFSET, length, 2);
    session_do(s, to_region(IBV_WR_RDMA_WRITE, 1, region, OFFSET, background + OFFSET, length));
    contents(s, region, background);
}

static void write_imm_size(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint32_t length = scene->length;
    fill(background + OFFSET, length, 3);
    memset(region->here, 0xee, region->size);
    session_post_receive(s, NULL, 0);
    struct request request = to_region(IBV_WR_RDMA_WRITE_WITH_IMM, 1, region, OFFSET, background + OFFSET, length);
    request.imm = MRSP_START | MRSP_EMPTY;
    request.flags |= IBV_SEND_SOLICITED;
    session_do(s, request);
    check(session_answer(s) == 0, "the call failed");
    same(region->here, background, region->size, "the region");
}

// Only one work request in sixteen is signalled; the others may not complete visibly.
static void write_outstanding(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint32_t length = scene->length, pieces = scene->test->pieces;
    fill(background, pieces * length, 4);
    for (uint32_t i = 0; i < pieces; i++) {
        struct request request = to_region(IBV_WR_RDMA_WRITE, i, region, i * length, background + i * length, length);
        request.flags = i % 16 == 15 ? IBV_SEND_SIGNALED : 0;
        session_post(s, request);
    }
    for (uint64_t i = 15; i < pieces; i += 16) {
        session_expect(s, i, IBV_WC_SUCCESS);
    }
    contents(s, region, background);
    struct ibv_wc wc;
    check(ibv_poll_cq(s->sends, 1, &wc) == 0, "request %lu completed, which was not signalled", (unsigned long)wc.wr_id);
}

static void write_inline(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint32_t at = 0;
    for (uint32_t length = 1; length <= SESSION_INLINE; length += 3) {
        uint8_t bytes[SESSION_INLINE];
        fill(bytes, length, length);
        memcpy(background + at, bytes, length);
        struct request request = to_region(IBV_WR_RDMA_WRITE, length, region, at, bytes, length);
        request.flags |= IBV_SEND_INLINE;
        session_post(s, request);
        memset(bytes, 0xdd, sizeof(bytes));  // they have been taken
        session_expect(s, length, IBV_WC_SUCCESS);
        at += length;
    }
    contents(s, region, background);
}

static void write_gather(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint8_t *pieces = session_take(s, 4096);
    const uint32_t lengths[SESSION_GATHER] = {1, 1025, 3, 700};
    struct ibv_sge list[SESSION_GATHER];
    fill(pieces, 4096, 5);
    uint8_t *to = background + OFFSET;
    for (int i = 0; i < SESSION_GATHER; i++) {
        const uint8_t *from = pieces + 1000 * i + i;
        list[i] = (struct ibv_sge){.addr = (uintptr_t)from, .length = lengths[i], .lkey = s->memory->lkey};
        memcpy(to, from, lengths[i]);
        to += lengths[i];
    }
    struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .sg_list = list,
                                   .num_sge = SESSION_GATHER,
                                   .wr.rdma = {.remote_addr = region->address + OFFSET, .rkey = region->rkey}};
    check(ibv_post_send(s->id->qp, &wr, &bad) == 0, "ibv_post_send failed");
    session_expect(s, 1, IBV_WC_SUCCESS);
    contents(s, region, background);
}

// ---- RDMA READ ----

static void read_size(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint32_t length = scene->length;
    uint8_t *got = session_take(s, length + 2 * MARGIN), *wanted = session_take(s, length + 2 * MARGIN);
    memset(got, 0xcc, length + 2 * MARGIN);
    memset(wanted, 0xcc, length + 2 * MARGIN);
    memcpy(wanted + MARGIN, background + OFFSET, length);
    session_do(s, to_region(IBV_WR_RDMA_READ, 1, region, OFFSET, got + MARGIN, length));
    same(got, wanted, length + 2 * MARGIN, "what was read, with 64 bytes around it");
}

static void read_outstanding(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint32_t length = scene->length, pieces = scene->test->pieces;
    uint8_t *got = session_take(s, pieces * length);
    for (uint32_t i = 0; i < pieces; i++) {
        session_post(s, to_region(IBV_WR_RDMA_READ, i, region, i * length, got + i * length, length));
    }
    for (uint32_t i = 0; i < pieces; i++) {
        session_expect(s, i, IBV_WC_SUCCESS);
    }
    same(got, background, pieces * length, "what was read");
}

// Each READ sees the WRITE before it, and not the one behind it, which is fenced.
static void read_between_writes(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    enum { ROUNDS = 16, LENGTH = 1500 };
    uint8_t *sent = session_take(s, ROUNDS * LENGTH), *got = session_take(s, ROUNDS * LENGTH);
    fill(sent, ROUNDS * LENGTH, 6);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct request request = to_region(IBV_WR_RDMA_WRITE, 2 * i, region, 0, sent + i * LENGTH, LENGTH);
        request.flags = IBV_SEND_FENCE;
        session_post(s, request);
        session_post(s, to_region(IBV_WR_RDMA_READ, 2 * i + 1, region, 0, got + i * LENGTH, LENGTH));
    }
    for (uint32_t i = 0; i < ROUNDS; i++) {
        session_expect(s, 2 * i + 1, IBV_WC_SUCCESS);
    }
    same(got, sent, ROUNDS * LENGTH, "what was read");
}

static void read_result(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    check(session_call(s, MRSP_INCREMENT) == 0, "the call failed");
    uint8_t *got = session_take(s, region->size);
    session_do(s, to_region(IBV_WR_RDMA_READ, 1, region, 0, got, region->size));
    for (uint32_t at = 0; at < region->size; at++) {
        background[at]++;
    }
    same(got, background, region->size, "what was read");
}

// ---- atomics ----

static struct request atomic(enum ibv_wr_opcode opcode, uint64_t id, const struct region *region, uint64_t offset, void *old,
                             uint64_t compare_add, uint64_t swap) {
    struct request request = to_region(opcode, id, region, offset, old, sizeof(uint64_t));
    request.compare_add = compare_add;
    request.swap = swap;
    return request;
}

static void fetch_add(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint64_t *old = (uint64_t *)(void *)session_take(s, 64), value;
    memcpy(&value, background + 64, sizeof(value));
    const uint64_t added[] = {1, 0, 0xffffffff, 0x123456789abcdef0, UINT64_MAX};
    for (int i = 0; i < 5; i++) {
        session_do(s, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, (uint64_t)i, region, 64, old, added[i], 0));
        check(*old == value, "the old value is %016lx instead of %016lx", (unsigned long)*old, (unsigned long)value);
        value += added[i];
    }
    memcpy(background + 64, &value, sizeof(value));
    contents(s, region, background);
}

static void compare_swap(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    uint64_t *old = (uint64_t *)(void *)session_take(s, 64), value;
    memcpy(&value, background + 8, sizeof(value));
    for (int i = 0; i < 6; i++) {
        uint64_t compare = i % 2 ? value ^ 0x100 : value, swap = 0x1122334455667700 + (uint64_t)i;
        session_do(s, atomic(IBV_WR_ATOMIC_CMP_AND_SWP, (uint64_t)i, region, 8, old, compare, swap));
        check(*old == value, "the old value is %016lx instead of %016lx", (unsigned long)*old, (unsigned long)value);
        value = compare == value ? swap : value;
    }
    memcpy(background + 8, &value, sizeof(value));
    contents(s, region, background);
}

// Each is done once, in order, whatever is lost.
static void atomics_outstanding(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    enum { COUNT = 100 };
    uint64_t *old = (uint64_t *)(void *)session_take(s, COUNT * sizeof(uint64_t)), value;
    memcpy(&value, background, sizeof(value));
    for (uint64_t i = 0; i < COUNT; i++) {
        session_post(s, atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, i, region, 0, old + i, 1, 0));
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        session_expect(s, i, IBV_WC_SUCCESS);
        check(old[i] == value + i, "addition %lu found %016lx instead of %016lx", (unsigned long)i, (unsigned long)old[i],
              (unsigned long)(value + i));
    }
    value += COUNT;
    memcpy(background, &value, sizeof(value));
    contents(s, region, background);
}

// ---- what is wrong ----

// Posts a request that the device must refuse, and checks what becomes of it and of those behind it. The connection that is there
// afterwards is another one.
static void refused(struct session *s, struct request wrong, enum ibv_wc_status status) {
    if (status == IBV_WC_REM_INV_REQ_ERR) {
        session_post_unchecked_atomic(s, wrong);
    } else {
        session_post(s, wrong);
    }
    expect_refusal(s, wrong.id, status);
    session_post(s, (struct request){.opcode = IBV_WR_RDMA_WRITE, .id = 77, .flags = IBV_SEND_SIGNALED});
    session_expect(s, 77, IBV_WC_WR_FLUSH_ERR);
    session_destroy(s);
    uint8_t *background;
    session_open(s, &options, MEMORY);
    struct region *region = begin(s, 100, &background);
    contents(s, region, background);
}

static void refuse(struct scene *scene) {
    const struct wrong *wrong = &scene->test->wrong;
    uint64_t base = wrong->from_end ? scene->region->size : 0;
    struct request request =
        to_region(wrong->opcode, 9, scene->region, base + (uint64_t)wrong->offset, scene->background, wrong->length);
    request.compare_add = request.swap = 1;
    request.rkey ^= wrong->key;
    if (wrong->address) {
        request.remote = wrong->address;
    }
    refused(&scene->s, request, wrong->status == IBV_WC_SUCCESS ? IBV_WC_REM_ACCESS_ERR : wrong->status);
}

static void key_of_another(int unused) {
    (void)unused;
    struct session owner, s;
    uint8_t *background;
    session_open(&owner, &options, MEMORY);
    struct region region = *begin(&owner, 4096, &background);
    session_open(&s, &options, MEMORY);
    refused(&s, to_region(IBV_WR_RDMA_WRITE, 9, &region, 0, s.memory->addr, 8), IBV_WC_REM_ACCESS_ERR);
    session_close(&s);
    contents(&owner, &region, background);
    session_close(&owner);
}

static void any_key_for_nothing(struct scene *scene) {
    struct session *s = &scene->s;
    struct region *region = scene->region;
    uint8_t *background = scene->background;
    session_do(s, (struct request){.opcode = IBV_WR_RDMA_WRITE, .id = 9, .remote = 0x1234, .rkey = 0xabcdef});
    contents(s, region, background);
}

// ---- the table ----

static const struct test tests[] = {
    {"connect", .alone = connect_disconnect},
    {"connect-refused-port", .alone = reject_port},
    {"connect-5", .alone = connect_many, .number = 5},
    {"connect-80", .alone = connect_many, .number = 80},
    {"calls-side-by-side", .alone = calls_side_by_side},
    {"disconnect-during-call", .alone = disconnect_during_call},
    {"disconnect-then-post", .alone = after_disconnect},
    {"disconnect-by-device", .alone = disconnected_by_device},
    {"regions-1", .alone = set_up, .number = 1},
    {"regions-31", .alone = set_up, .number = MRSP_MAX_REGIONS},
    {"regions-internal", set_up_internal, .no_region = true},
    {"regions-refused", set_up_refused, .no_region = true},
    {"regions-again", .alone = set_up_again},
    {"call-empty", call_empty, .size = {0, 1000}},
    {"call-increment", call_increment, .size = {0, 1000}},
    {"call-increment-64k", call_increment, .size = {0, 65536}},
    {"call-without-output", call_without_output, .no_region = true},
    {"call-unknown", call_unknown, .size = {0, 100}},
    {"call-not-started", call_not_started, .size = {0, 100}},
    {"call-answer-rnr", answer_waits_for_receive, .size = {0, 1000}},
    {"write-0", write_size, .size = {0, 0}},
    {"write-1", write_size, .size = {0, 1}},
    {"write-mtu-1", write_size, .size = {1, -1}},
    {"write-mtu", write_size, .size = {1, 0}},
    {"write-mtu+1", write_size, .size = {1, 1}},
    {"write-64k", write_size, .size = {0, 65536}},
    {"write-1m", write_size, .size = {0, MAX_SIZE}},
    {"write-imm-0", write_imm_size, .size = {0, 0}},
    {"write-imm-1", write_imm_size, .size = {0, 1}},
    {"write-imm-mtu-1", write_imm_size, .size = {1, -1}},
    {"write-imm-mtu", write_imm_size, .size = {1, 0}},
    {"write-imm-mtu+1", write_imm_size, .size = {1, 1}},
    {"write-imm-64k", write_imm_size, .size = {0, 65536}},
    {"write-imm-1m", write_imm_size, .size = {0, MAX_SIZE}},
    {"write-outstanding", write_outstanding, .size = {0, 1000}, .pieces = 96},
    {"write-outstanding-mtu+1", write_outstanding, .size = {1, 1}, .pieces = 96},
    {"write-inline", write_inline, .size = {0, 4096}},
    {"write-gather", write_gather, .size = {0, 4096}},
    {"read-0", read_size, .size = {0, 0}},
    {"read-1", read_size, .size = {0, 1}},
    {"read-mtu-1", read_size, .size = {1, -1}},
    {"read-mtu", read_size, .size = {1, 0}},
    {"read-mtu+1", read_size, .size = {1, 1}},
    {"read-64k", read_size, .size = {0, 65536}},
    {"read-1m", read_size, .size = {0, MAX_SIZE}},
    {"read-outstanding", read_outstanding, .size = {0, 1000}, .pieces = 64},
    {"read-outstanding-mtu+1", read_outstanding, .size = {1, 1}, .pieces = 64},
    {"read-fence", read_between_writes, .size = {0, 1500}},
    {"read-result", read_result, .size = {0, 1000}},
    {"fetch-add", fetch_add, .size = {0, 1000}},
    {"compare-swap", compare_swap, .size = {0, 1000}},
    {"atomics-outstanding", atomics_outstanding, .size = {0, 1000}},
    {"error-key-write", refuse, .size = {0, 4096},
     .wrong = {IBV_WR_RDMA_WRITE, .length = 8, .key = 0x00410000}},
    {"error-key-read", refuse, .size = {0, 4096},
     .wrong = {IBV_WR_RDMA_READ, .length = 8, .key = 0x00410000}},
    {"error-key-atomic", refuse, .size = {0, 4096},
     .wrong = {IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .key = 0x00410000}},
    {"error-key-of-another", .alone = key_of_another},
    {"error-no-key-for-nothing", any_key_for_nothing, .size = {0, 100}},
    {"error-bounds-write-end", refuse, .size = {0, 8192},
     .wrong = {IBV_WR_RDMA_WRITE, .length = 2, .offset = -1, .from_end = true}},
    {"error-bounds-write-begin", refuse, .size = {0, 8192},
     .wrong = {IBV_WR_RDMA_WRITE, .length = 2, .offset = -1}},
    {"error-bounds-write-long", refuse, .size = {0, 8192},
     .wrong = {IBV_WR_RDMA_WRITE, .length = 3000, .offset = -1, .from_end = true}},
    {"error-bounds-read-end", refuse, .size = {0, 8192},
     .wrong = {IBV_WR_RDMA_READ, .length = 2, .offset = -1, .from_end = true}},
    {"error-bounds-read-long", refuse, .size = {0, 8192},
     .wrong = {IBV_WR_RDMA_READ, .length = 3000, .offset = -1, .from_end = true}},
    {"error-bounds-atomic", refuse, .size = {0, 8192},
     .wrong = {IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .offset = 8, .from_end = true}},
    {"error-bounds-wrap", refuse, .size = {0, 4096},
     .wrong = {IBV_WR_RDMA_WRITE, .length = 64, .address = UINT64_MAX - 15}},
    {"error-unaligned-fetch-add", refuse, .size = {0, 4096},
     .wrong = {IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .offset = 4, .status = IBV_WC_REM_INV_REQ_ERR}},
    {"error-unaligned-compare-swap", refuse, .size = {0, 4096},
     .wrong = {IBV_WR_ATOMIC_CMP_AND_SWP, .length = 8, .offset = 4, .status = IBV_WC_REM_INV_REQ_ERR}},
};
enum { TESTS = sizeof(tests) / sizeof(tests[0]) };

static void out_of_time(int signal) {
    (void)signal;
    static const char text[] = "the case takes too long";
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    _exit(1);
}

// Runs a case in this process, which ends.
__attribute__((noreturn)) static void run_here(const struct test *test, int out) {
    dup2(out, STDOUT_FILENO);
    signal(SIGALRM, out_of_time);
    alarm((unsigned)(CASE_WAITS * options.timeout_ms / 1000));
    if (test->alone) {
        test->alone(test->number);
        exit(0);
    }
    struct scene scene = {.test = test};
    session_open(&scene.s, &options, MEMORY);
    if (!test->no_region) {
        scene.length = in_bytes(&scene.s, test->size);
        scene.region = begin(&scene.s, scene.length * (test->pieces ? test->pieces : 1), &scene.background);
    }
    test->run(&scene);
    session_close(&scene.s);
    exit(0);
}

// Runs one case in a process of its own and prints its line. Returns true if it has passed.
static bool run(const struct test *test) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    int said[2];
    check(pipe(said) == 0, "pipe: %s", strerror(errno));
    pid_t child = fork();
    check(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
        run_here(test, said[1]);
    }
    close(said[1]);
    char detail[512];
    size_t length = 0;
    ssize_t more;
    while ((more = read(said[0], detail + length, sizeof(detail) - 1 - length)) > 0) {
        length += (size_t)more;
    }
    detail[length] = 0;
    close(said[0]);
    int status;
    waitpid(child, &status, 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (passed) {
        printf("case %s ok %.2f s\n", test->name, seconds);
    } else if (WIFSIGNALED(status)) {
        printf("case %s FAIL signal %d %s\n", test->name, WTERMSIG(status), detail);
    } else {
        printf("case %s FAIL %s (%.2f s)\n", test->name, detail, seconds);
    }
    fflush(stdout);
    return passed;
}

static bool chosen(const struct test *test, int count, char **patterns) {
    for (int i = 0; i < count; i++) {
        if (fnmatch(patterns[i], test->name, 0) == 0) {
            return true;
        }
    }
    return count == 0;
}

__attribute__((noreturn)) static void usage(void) {
    fputs("usage: nacelle_verbs_client [-t MS] [-a CODE] [-x] ADDRESS PORT [CASE...]\n"
          "       nacelle_verbs_client -l\n",
          stderr);
    exit(2);
}

int main(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "t:a:xl")) != -1) {
        switch (option) {
        case 't':
            options.timeout_ms = atoi(optarg);
            break;
        case 'a':
            options.ack_timeout = (uint8_t)atoi(optarg);
            break;
        case 'x':
            frames_get_lost = true;
            break;
        case 'l':
            for (int i = 0; i < TESTS; i++) {
                puts(tests[i].name);
            }
            return 0;
        default:
            usage();
        }
    }
    if (argc - optind < 2 || options.timeout_ms < 1) {
        usage();
    }
    options.address = argv[optind];
    options.port = argv[optind + 1];
    int ran = 0, passed = 0;
    for (int i = 0; i < TESTS; i++) {
        if (chosen(&tests[i], argc - optind - 2, argv + optind + 2)) {
            ran++;
            passed += run(&tests[i]);
        }
    }
    printf("%d of %d passed\n", passed, ran);
    return ran == 0 ? 2 : passed != ran;
}
