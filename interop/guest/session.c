// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum { PAGE = 4096 };

enum rdma_cm_event_type session_event(struct session *s, int *status) {
    struct pollfd fd = {.fd = s->events->fd, .events = POLLIN};
    int ready = poll(&fd, 1, s->options->timeout_ms);
    check(ready == 1, "no event of the connection manager came in %d ms", s->options->timeout_ms);
    struct rdma_cm_event *event;
    check(rdma_get_cm_event(s->events, &event) == 0, "rdma_get_cm_event: %s", strerror(errno));
    enum rdma_cm_event_type type = event->event;
    if (status) {
        *status = event->status;
    }
    rdma_ack_cm_event(event);
    return type;
}

static void expect_event(struct session *s, enum rdma_cm_event_type wanted) {
    int status;
    enum rdma_cm_event_type type = session_event(s, &status);
    check(type == wanted, "%s (status %d) instead of %s", rdma_event_str(type), status, rdma_event_str(wanted));
}

static void make_queues(struct session *s) {
    s->completions = ibv_create_comp_channel(s->id->verbs);
    check(s->completions, "ibv_create_comp_channel: %s", strerror(errno));
    s->sends = ibv_create_cq(s->id->verbs, SESSION_SENDS + 1, NULL, s->completions, 0);
    s->receives = ibv_create_cq(s->id->verbs, SESSION_RECEIVES + 1, NULL, s->completions, 0);
    check(s->sends && s->receives, "ibv_create_cq: %s", strerror(errno));
    struct ibv_qp_init_attr_ex attributes = {
        .send_cq = s->sends,
        .recv_cq = s->receives,
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = s->id->pd,
        .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
        .cap = {.max_send_wr = SESSION_SENDS,
                .max_recv_wr = SESSION_RECEIVES,
                .max_send_sge = SESSION_GATHER,
                .max_recv_sge = 1,
                .max_inline_data = SESSION_INLINE},
    };
    check(rdma_create_qp_ex(s->id, &attributes) == 0, "rdma_create_qp_ex: %s", strerror(errno));
}

void session_prepare(struct session *s, const struct session_options *options, size_t size) {
    *s = (struct session){.options = options};
    s->events = rdma_create_event_channel();
    check(s->events, "rdma_create_event_channel: %s", strerror(errno));
    check(rdma_create_id(s->events, &s->id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id: %s", strerror(errno));
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found;
    check(rdma_getaddrinfo(options->address, options->port, &hints, &found) == 0, "no address: %s", options->address);
    check(rdma_resolve_addr(s->id, NULL, found->ai_dst_addr, 2000) == 0, "rdma_resolve_addr: %s", strerror(errno));
    rdma_freeaddrinfo(found);
    expect_event(s, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (options->ack_timeout) {
        uint8_t code = options->ack_timeout;
        check(rdma_set_option(s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &code, sizeof(code)) == 0,
              "RDMA_OPTION_ID_ACK_TIMEOUT: %s", strerror(errno));
    }
    check(rdma_resolve_route(s->id, 2000) == 0, "rdma_resolve_route: %s", strerror(errno));
    expect_event(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_queues(s);

    size_t all = size + 4 * PAGE;
    void *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    check(memory != MAP_FAILED, "no memory: %s", strerror(errno));
    s->memory = ibv_reg_mr(s->id->pd, memory, all, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    check(s->memory, "ibv_reg_mr: %s", strerror(errno));
}

enum rdma_cm_event_type session_connect(struct session *s, int *status) {
    // rxe takes 7 retries for any number, as for RNR.
    struct rdma_conn_param wanted = {.responder_resources = 16, .initiator_depth = 16, .retry_count = 6, .rnr_retry_count = 7};
    check(rdma_connect(s->id, &wanted) == 0, "rdma_connect: %s", strerror(errno));
    enum rdma_cm_event_type type = session_event(s, status);
    if (type == RDMA_CM_EVENT_ESTABLISHED) {
        struct ibv_qp_attr attributes;
        struct ibv_qp_init_attr initial;
        check(ibv_query_qp(s->id->qp, &attributes, IBV_QP_PATH_MTU, &initial) == 0, "ibv_query_qp failed");
        s->mtu = 128U << attributes.path_mtu;
    }
    return type;
}

void session_open(struct session *s, const struct session_options *options, size_t size) {
    session_prepare(s, options, size);
    int status;
    enum rdma_cm_event_type type = session_connect(s, &status);
    check(type == RDMA_CM_EVENT_ESTABLISHED, "cannot connect: %s (status %d)", rdma_event_str(type), status);
}

void session_close(struct session *s) {
    check(rdma_disconnect(s->id) == 0, "rdma_disconnect: %s", strerror(errno));
    expect_event(s, RDMA_CM_EVENT_DISCONNECTED);
}

void session_destroy(struct session *s) {
    void *memory = s->memory->addr;
    size_t size = s->memory->length;
    rdma_destroy_qp(s->id);
    ibv_dereg_mr(s->memory);
    munmap(memory, size);
    ibv_destroy_cq(s->sends);
    ibv_destroy_cq(s->receives);
    ibv_destroy_comp_channel(s->completions);
    rdma_destroy_id(s->id);
    rdma_destroy_event_channel(s->events);
}

uint8_t *session_take(struct session *s, size_t size) {
    uint8_t *taken = (uint8_t *)s->memory->addr + s->used;
    s->used += (size + PAGE - 1) / PAGE * PAGE;
    check(s->used <= s->memory->length, "the test case uses more memory than it has requested");
    return taken;
}

void session_post(struct session *s, struct request request) {
    struct ibv_sge piece = {.addr = (uintptr_t)request.local, .length = request.length, .lkey = s->memory->lkey};
    struct ibv_send_wr wr = {
        .wr_id = request.id,
        .opcode = request.opcode,
        .send_flags = request.flags,
        .sg_list = &piece,
        .num_sge = request.length ? 1 : 0,
        .imm_data = htobe32(request.imm),
    };
    if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = request.remote;
        wr.wr.atomic.rkey = request.rkey;
        wr.wr.atomic.compare_add = request.compare_add;
        wr.wr.atomic.swap = request.swap;
    } else {
        wr.wr.rdma.remote_addr = request.remote;
        wr.wr.rdma.rkey = request.rkey;
    }
    struct ibv_send_wr *bad;
    int error = ibv_post_send(s->id->qp, &wr, &bad);
    check(error == 0, "ibv_post_send: %s", strerror(error));
}

void session_post_unchecked_atomic(struct session *s, struct request request) {
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(s->id->qp);
    ibv_wr_start(qp);
    qp->wr_id = request.id;
    qp->wr_flags = (unsigned)request.flags;
    if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        ibv_wr_atomic_fetch_add(qp, request.rkey, request.remote, request.compare_add);
    } else {
        ibv_wr_atomic_cmp_swp(qp, request.rkey, request.remote, request.compare_add, request.swap);
    }
    ibv_wr_set_sge(qp, s->memory->lkey, (uintptr_t)request.local, request.length);
    int error = ibv_wr_complete(qp);
    check(error == 0, "ibv_wr_complete: %s", strerror(error));
}

void session_post_receive(struct session *s, void *buffer, uint32_t length) {
    struct ibv_sge piece = {.addr = (uintptr_t)buffer, .length = length, .lkey = s->memory->lkey};
    struct ibv_recv_wr wr = {.sg_list = &piece, .num_sge = length ? 1 : 0}, *bad;
    int error = ibv_post_recv(s->id->qp, &wr, &bad);
    check(error == 0, "ibv_post_recv: %s", strerror(error));
}

struct ibv_wc session_completion(struct session *s, struct ibv_cq *cq) {
    struct ibv_wc wc;
    for (;;) {
        int count = ibv_poll_cq(cq, 1, &wc);
        check(count >= 0, "ibv_poll_cq failed");
        if (count) {
            return wc;
        }
        check(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq failed");
        // There is no notification of one that came before the notification was requested.
        if (ibv_poll_cq(cq, 1, &wc)) {
            return wc;
        }
        struct pollfd fd = {.fd = s->completions->fd, .events = POLLIN};
        int ready = poll(&fd, 1, s->options->timeout_ms);
        check(ready == 1, "no completion of a %s came in %d ms", cq == s->sends ? "request" : "receive", s->options->timeout_ms);
        struct ibv_cq *told;
        void *context;
        check(ibv_get_cq_event(s->completions, &told, &context) == 0, "ibv_get_cq_event: %s", strerror(errno));
        ibv_ack_cq_events(told, 1);
    }
}

void session_expect(struct session *s, uint64_t id, enum ibv_wc_status status) {
    struct ibv_wc wc = session_completion(s, s->sends);
    check(wc.wr_id == id && wc.status == status, "request %lu completed with \"%s\", instead of %lu with \"%s\"",
          (unsigned long)wc.wr_id, ibv_wc_status_str(wc.status), (unsigned long)id, ibv_wc_status_str(status));
}

void session_do(struct session *s, struct request request) {
    request.flags |= IBV_SEND_SIGNALED;
    session_post(s, request);
    session_expect(s, request.id, IBV_WC_SUCCESS);
}

size_t session_ask(struct session *s, const uint8_t *message, size_t length, uint8_t *answer) {
    uint8_t *here = session_take(s, MRSP_MAX_MESSAGE), *there = session_take(s, MRSP_MAX_MESSAGE);
    memcpy(here, message, length);
    session_post_receive(s, there, MRSP_MAX_MESSAGE);
    session_do(s, (struct request){.opcode = IBV_WR_SEND, .flags = IBV_SEND_SOLICITED, .local = here, .length = length});
    struct ibv_wc wc = session_completion(s, s->receives);
    check(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV, "the answer to the set-up came with \"%s\", opcode %d",
          ibv_wc_status_str(wc.status), wc.opcode);
    memcpy(answer, there, wc.byte_len);
    s->used -= 2 * PAGE;
    return wc.byte_len;
}

void session_regions(struct session *s, unsigned count, const uint8_t *flags, const uint32_t *sizes) {
    struct mrsp_aar_region asked[MRSP_MAX_REGIONS] = {0};
    struct mrsp_a_region given[MRSP_MAX_REGIONS];
    unsigned parameters = 0;
    s->count = 0;
    for (unsigned i = 0; i < count; i++) {
        bool internal = flags[i] & MRSP_INTERNAL;
        uint8_t *here = internal ? NULL : session_take(s, sizes[i]);
        asked[i] = (struct mrsp_aar_region){.flags = flags[i],
                                            .address = (uintptr_t)here,
                                            .rkey = internal ? 0 : s->memory->rkey,
                                            .size = sizes[i]};
        parameters += !internal;
    }
    uint8_t message[MRSP_MAX_MESSAGE], answer[MRSP_MAX_MESSAGE];
    size_t length = session_ask(s, message, mrsp_write_aar(message, asked, count), answer);
    int found = mrsp_read_a(answer, length, given);
    check(found == (int)parameters, "the set-up of %u regions is answered by type %u, count %u, %zu bytes", count, answer[0],
          answer[1], length);
    for (unsigned i = 0; i < parameters; i++) {
        check(given[i].size == asked[i].size, "region %u has %u bytes instead of %u", i, given[i].size, asked[i].size);
        s->regions[i] = (struct region){given[i].address, given[i].rkey, given[i].size, (uint8_t *)(uintptr_t)asked[i].address};
    }
    s->count = parameters;
}

struct region *session_region(struct session *s, uint32_t size) {
    session_regions(s, 1, (uint8_t[]){MRSP_INPUT | MRSP_OUTPUT}, &size);
    return &s->regions[0];
}

uint32_t session_answer(struct session *s) {
    struct ibv_wc wc = session_completion(s, s->receives);
    check(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM, "the call's answer came with \"%s\", opcode %d",
          ibv_wc_status_str(wc.status), wc.opcode);
    return be32toh(wc.imm_data) >> 8;
}

uint32_t session_call(struct session *s, unsigned function) {
    session_post_receive(s, NULL, 0);
    session_do(s, (struct request){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                   .flags = IBV_SEND_SOLICITED,
                                   .remote = s->regions[0].address,
                                   .rkey = s->regions[0].rkey,
                                   .imm = MRSP_START | function});
    return session_answer(s);
}

void fill(uint8_t *bytes, size_t length, uint64_t seed) {
    uint64_t x = seed * 0x9e3779b97f4a7c15U + 1;
    for (size_t i = 0; i < length; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes[i] = (uint8_t)(x >> 32);
    }
}

void same(const uint8_t *got, const uint8_t *wanted, size_t length, const char *what) {
    for (size_t i = 0; i < length; i++) {
        check(got[i] == wanted[i], "%s: byte %zu of %zu is %02x instead of %02x", what, i, length, got[i], wanted[i]);
    }
}
