// SPDX-License-Identifier: Apache-2.0
// A device made of Linux' verbs: gives regions and runs calls as docs/reference/wire.md has it, so that callers can be held against
// Linux. Serves any number of connections one event after the other, until it is killed. Prints a line for each event.
//
//     nacelle_verbs_server [OPTION...] PORT
//
//     -6        listen on IPv6 instead of IPv4
//     -e        echo every SEND instead of reading it as a region set-up
//     -r        reject every connection
//     -d COUNT  disconnect a caller after COUNT messages and calls
//     -n MS     post no receive for so long after a connection is made: the caller meets RNR NAKs
//     -g RIGHTS what callers may do with regions: letters of "wra" for write, read and atomics [wra]
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "check.h"
#include "mrsp.h"

enum { RECEIVES = 16, SENDS = 64, MESSAGE = 4096, CONNECTIONS = 64, BACKLOG = 16, ATOMICS = 16 };
enum { REQUEST = RECEIVES };  // wr_id of what is sent; less is the number of a receive

// A region of a caller, and its memory here.
struct held {
    struct mrsp_aar_region asked;
    struct ibv_mr *memory;
};

struct connection {
    struct rdma_cm_id *id;
    struct ibv_pd *pd;  // of its own: no caller's key opens another's regions
    struct ibv_cq *cq;
    struct ibv_comp_channel *channel;
    struct ibv_mr *messages;  // RECEIVES to receive into, and as many to answer from
    unsigned count;
    struct held regions[MRSP_MAX_REGIONS];
    unsigned handled;
    long receives_at;  // ms; 0: they are posted
};

static struct {
    bool ipv6, echo, reject;
    unsigned disconnect_after;
    long no_receives_ms;
    int rights;
} options = {.rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};

static struct connection *connections[CONNECTIONS];

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint8_t *buffer(const struct connection *c, unsigned number) {
    return (uint8_t *)c->messages->addr + (size_t)number * MESSAGE;
}

static struct ibv_mr *allocate(const struct connection *c, size_t size, int rights) {
    void *memory = NULL;
    check(posix_memalign(&memory, 4096, size ? size : 1) == 0, "no memory for %zu bytes", size);
    memset(memory, 0, size);
    struct ibv_mr *registered = ibv_reg_mr(c->pd, memory, size ? size : 1, rights);
    check(registered, "ibv_reg_mr: %s", strerror(errno));
    return registered;
}

static void release(struct ibv_mr *memory) {
    void *address = memory->addr;
    ibv_dereg_mr(memory);
    free(address);
}

static void post_receive(const struct connection *c, unsigned number) {
    struct ibv_sge piece = {.addr = (uintptr_t)buffer(c, number), .length = MESSAGE, .lkey = c->messages->lkey};
    struct ibv_recv_wr wr = {.wr_id = number, .sg_list = &piece, .num_sge = 1}, *bad;
    check(ibv_post_recv(c->id->qp, &wr, &bad) == 0, "ibv_post_recv failed");
}

// What cannot be posted belongs to a connection that has failed; the connection manager reports its end.
static void post(const struct connection *c, struct ibv_send_wr wr, const void *local, uint32_t length, uint32_t lkey) {
    struct ibv_sge piece = {.addr = (uintptr_t)local, .length = length, .lkey = lkey};
    struct ibv_send_wr *bad;
    wr.wr_id = REQUEST;
    wr.sg_list = &piece;
    wr.num_sge = length ? 1 : 0;
    int error = ibv_post_send(c->id->qp, &wr, &bad);
    if (error) {
        printf("ibv_post_send: %s\n", strerror(error));
    }
}

static void answer(const struct connection *c, unsigned number, size_t length) {
    const struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED};
    post(c, wr, buffer(c, RECEIVES + number), (uint32_t)length, c->messages->lkey);
}

static void release_regions(struct connection *c) {
    for (unsigned i = 0; i < c->count; i++) {
        release(c->regions[i].memory);
    }
    c->count = 0;
}

static void set_up(struct connection *c, unsigned number, size_t length) {
    struct mrsp_aar_region asked[MRSP_MAX_REGIONS];
    struct mrsp_a_region given[MRSP_MAX_REGIONS];
    uint8_t *message = buffer(c, RECEIVES + number);
    int count = mrsp_read_aar(buffer(c, number), length, asked);
    uint64_t bytes = 0;
    unsigned parameters = 0;
    for (int i = 0; i < count; i++) {
        bytes += asked[i].size;
        parameters += !(asked[i].flags & MRSP_INTERNAL);
    }
    if (parameters == 0 || bytes > 64 << 20) {
        memcpy(message, (uint8_t[]){MRSP_ERR, parameters ? MRSP_NO_MEMORY : MRSP_MALFORMED, 0, 0}, MRSP_HEAD);
        answer(c, number, MRSP_HEAD);
        return;
    }
    release_regions(c);
    parameters = 0;
    for (int i = 0; i < count; i++) {
        struct ibv_mr *memory = allocate(c, asked[i].size, options.rights);
        c->regions[i] = (struct held){asked[i], memory};
        if (!(asked[i].flags & MRSP_INTERNAL)) {
            given[parameters++] = (struct mrsp_a_region){(uintptr_t)memory->addr, memory->rkey, asked[i].size};
        }
    }
    c->count = (unsigned)count;
    answer(c, number, mrsp_write_a(message, given, parameters));
}

static uint32_t run(struct connection *c, unsigned function) {
    switch (function) {
    case MRSP_EMPTY:
        return 0;
    case MRSP_INCREMENT:
        for (unsigned i = 0; i < c->count; i++) {
            for (uint32_t at = 0; at < c->regions[i].asked.size; at++) {
                ((uint8_t *)c->regions[i].memory->addr)[at]++;
            }
        }
        return 0;
    default:
        return MRSP_NO_SUCH_FUNCTION;
    }
}

static void call(struct connection *c, uint32_t imm) {
    unsigned function = imm & 0x7f;
    if (!(imm & MRSP_START) || function == 0 || c->count == 0) {
        return;
    }
    uint32_t result = run(c, function);
    const struct held *last = NULL;
    for (unsigned i = 0; i < c->count && result == 0; i++) {
        if ((c->regions[i].asked.flags & (MRSP_OUTPUT | MRSP_INTERNAL)) == MRSP_OUTPUT) {
            last = &c->regions[i];
        }
    }
    for (const struct held *held = c->regions; last && held <= last; held++) {
        if ((held->asked.flags & (MRSP_OUTPUT | MRSP_INTERNAL)) == MRSP_OUTPUT) {
            struct ibv_send_wr wr = {.opcode = held == last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
                                     .send_flags = held == last ? IBV_SEND_SIGNALED | IBV_SEND_SOLICITED : 0,
                                     .wr.rdma = {.remote_addr = held->asked.address, .rkey = held->asked.rkey}};
            post(c, wr, held->memory->addr, held->asked.size, held->memory->lkey);
        }
    }
    if (!last) {
        const struct ibv_send_wr wr = {
            .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
            .imm_data = htobe32(result << 8),
            .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
            .wr.rdma = {.remote_addr = c->regions[0].asked.address, .rkey = c->regions[0].asked.rkey},
        };
        post(c, wr, NULL, 0, 0);
    }
}

static void received(struct connection *c, const struct ibv_wc *wc) {
    unsigned number = (unsigned)wc->wr_id;
    if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        call(c, be32toh(wc->imm_data));
    } else if (options.echo) {
        memcpy(buffer(c, RECEIVES + number), buffer(c, number), wc->byte_len);
        answer(c, number, wc->byte_len);
    } else {
        set_up(c, number, wc->byte_len);
    }
    post_receive(c, number);
    if (++c->handled == options.disconnect_after) {
        printf("disconnecting after %u\n", c->handled);
        rdma_disconnect(c->id);
    }
}

static void complete(struct connection *c) {
    struct ibv_wc wc;
    while (ibv_poll_cq(c->cq, 1, &wc) > 0) {
        if (wc.status != IBV_WC_SUCCESS) {
            if (wc.status != IBV_WC_WR_FLUSH_ERR) {
                printf("%s: %s\n", wc.wr_id < RECEIVES ? "receive" : "request", ibv_wc_status_str(wc.status));
                rdma_disconnect(c->id);
            }
        } else if (wc.wr_id < RECEIVES) {
            received(c, &wc);
        }
    }
}

// ---- connections ----

static void open_connection(struct rdma_cm_id *id, const struct rdma_conn_param *asked) {
    unsigned slot = 0;
    while (slot < CONNECTIONS && connections[slot]) {
        slot++;
    }
    if (options.reject || slot == CONNECTIONS) {
        printf("rejected\n");
        check(rdma_reject(id, "refused", 8) == 0, "rdma_reject: %s", strerror(errno));
        rdma_destroy_id(id);
        return;
    }
    struct connection *c = calloc(1, sizeof(*c));
    check(c, "no memory");
    c->id = id;
    id->context = (void *)(uintptr_t)slot;
    c->pd = ibv_alloc_pd(id->verbs);
    check(c->pd, "ibv_alloc_pd: %s", strerror(errno));
    c->channel = ibv_create_comp_channel(id->verbs);
    check(c->channel, "ibv_create_comp_channel: %s", strerror(errno));
    c->cq = ibv_create_cq(id->verbs, RECEIVES + SENDS + 1, NULL, c->channel, 0);
    check(c->cq && ibv_req_notify_cq(c->cq, 0) == 0, "ibv_create_cq: %s", strerror(errno));
    struct ibv_qp_init_attr attributes = {
        .send_cq = c->cq,
        .recv_cq = c->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
    };
    check(rdma_create_qp(id, c->pd, &attributes) == 0, "rdma_create_qp: %s", strerror(errno));
    c->messages = allocate(c, (size_t)2 * RECEIVES * MESSAGE, IBV_ACCESS_LOCAL_WRITE);
    connections[slot] = c;
    if (options.no_receives_ms) {
        c->receives_at = now_ms() + options.no_receives_ms;
    } else {
        for (unsigned i = 0; i < RECEIVES; i++) {
            post_receive(c, i);
        }
    }
    struct rdma_conn_param given = {
        .responder_resources = asked->responder_resources < ATOMICS ? asked->responder_resources : ATOMICS,
        .initiator_depth = asked->initiator_depth < ATOMICS ? asked->initiator_depth : ATOMICS,
        .rnr_retry_count = 7,
    };
    check(rdma_accept(id, &given) == 0, "rdma_accept: %s", strerror(errno));
}

static void close_connection(struct rdma_cm_id *id) {
    struct connection *c = connections[(uintptr_t)id->context];
    connections[(uintptr_t)id->context] = NULL;
    rdma_disconnect(id);
    rdma_destroy_qp(id);
    release_regions(c);
    release(c->messages);
    ibv_destroy_cq(c->cq);
    ibv_destroy_comp_channel(c->channel);
    ibv_dealloc_pd(c->pd);
    rdma_destroy_id(id);
    free(c);
}

static void manage(struct rdma_event_channel *events) {
    struct rdma_cm_event *event;
    check(rdma_get_cm_event(events, &event) == 0, "rdma_get_cm_event: %s", strerror(errno));
    struct rdma_cm_id *id = event->id;
    enum rdma_cm_event_type type = event->event;
    struct rdma_conn_param asked = event->param.conn;
    printf("%s (status %d)\n", rdma_event_str(type), event->status);
    rdma_ack_cm_event(event);
    switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        open_connection(id, &asked);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
        close_connection(id);
        break;
    default:
        break;
    }
}

// Waits for the next event of anything and handles it.
static void serve(struct rdma_event_channel *events) {
    struct pollfd fds[1 + CONNECTIONS] = {{.fd = events->fd, .events = POLLIN}};
    int timeout = -1;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        struct connection *c = connections[i];
        fds[1 + i] = (struct pollfd){.fd = c ? c->channel->fd : -1, .events = POLLIN};
        if (c && c->receives_at) {
            long left = c->receives_at - now_ms();
            timeout = left < 0 ? 0 : timeout < 0 || left < timeout ? (int)left : timeout;
        }
    }
    check(poll(fds, 1 + CONNECTIONS, timeout) >= 0, "poll: %s", strerror(errno));
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        struct connection *c = connections[i];
        if (c && c->receives_at && c->receives_at <= now_ms()) {
            c->receives_at = 0;
            for (unsigned number = 0; number < RECEIVES; number++) {
                post_receive(c, number);
            }
        }
        if (c && fds[1 + i].revents) {
            struct ibv_cq *told;
            void *context;
            check(ibv_get_cq_event(c->channel, &told, &context) == 0, "ibv_get_cq_event: %s", strerror(errno));
            ibv_ack_cq_events(told, 1);
            check(ibv_req_notify_cq(c->cq, 0) == 0, "ibv_req_notify_cq failed");
            complete(c);
        }
    }
    if (fds[0].revents) {
        manage(events);
    }
}

__attribute__((noreturn)) static void usage(void) {
    fputs("usage: nacelle_verbs_server [-6] [-e] [-r] [-d COUNT] [-n MS] [-g RIGHTS] PORT\n", stderr);
    exit(2);
}

static int rights(const char *letters) {
    int all = IBV_ACCESS_LOCAL_WRITE;
    for (; *letters; letters++) {
        switch (*letters) {
        case 'w':
            all |= IBV_ACCESS_REMOTE_WRITE;
            break;
        case 'r':
            all |= IBV_ACCESS_REMOTE_READ;
            break;
        case 'a':
            all |= IBV_ACCESS_REMOTE_ATOMIC;
            break;
        default:
            usage();
        }
    }
    return all;
}

int main(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "6erd:n:g:")) != -1) {
        switch (option) {
        case '6':
            options.ipv6 = true;
            break;
        case 'e':
            options.echo = true;
            break;
        case 'r':
            options.reject = true;
            break;
        case 'd':
            options.disconnect_after = (unsigned)atoi(optarg);
            break;
        case 'n':
            options.no_receives_ms = atol(optarg);
            break;
        case 'g':
            options.rights = rights(optarg);
            break;
        default:
            usage();
        }
    }
    if (argc - optind != 1) {
        usage();
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct rdma_event_channel *events = rdma_create_event_channel();
    check(events, "rdma_create_event_channel: %s", strerror(errno));
    struct rdma_cm_id *listener;
    check(rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id: %s", strerror(errno));
    uint16_t port = htobe16((uint16_t)atoi(argv[optind]));
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = port};
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = port};
    struct sockaddr *own = options.ipv6 ? (struct sockaddr *)&any6 : (struct sockaddr *)&any;
    check(rdma_bind_addr(listener, own) == 0, "rdma_bind_addr: %s", strerror(errno));
    check(rdma_listen(listener, BACKLOG) == 0, "rdma_listen: %s", strerror(errno));
    printf("listening on %s\n", argv[optind]);
    for (;;) {
        serve(events);
    }
}
