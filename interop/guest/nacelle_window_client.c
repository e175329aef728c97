// SPDX-License-Identifier: Apache-2.0
// Writes and reads the windows of a host (docs/reference/transfers.md) by nothing but verbs.
//
//     nacelle_window_client ADDRESS PORT
//
// The host is `nacelle-interop windows`: window 1 takes up to 1 MiB, checks it and tells by label; window 1 to be read has 100000 bytes.
// Exit status: 0 if all was right, 1 with a line that says what was not.
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "session.h"

enum { WINDOW = 1, LONGEST = 1 << 20, TABLE = 100000, TABLE_SEED = 7 };
// What the host says of a write with the label 0.
enum { REFUSED = 0x42 };

static struct session_options options = {.timeout_ms = 15000};

// Asks for `size` bytes of a window. Returns the code if the host refuses, 0 if it gives them.
static unsigned ask(struct session *s, uint8_t flags, uint32_t number, uint32_t size, struct mrsp_a_region *given) {
    uint8_t message[MRSP_MAX_MESSAGE], answer[MRSP_MAX_MESSAGE];
    struct mrsp_aar_region region = {.flags = flags, .proposed = MRSP_WINDOW | number, .size = size};
    size_t length = session_ask(s, message, mrsp_write_aar(message, &region, 1), answer);
    if (mrsp_read_a(answer, length, given) == 1) {
        check(given->size == size, "the host gave %u bytes for %u", given->size, size);
        return 0;
    }
    check(length == MRSP_HEAD && answer[0] == MRSP_ERR, "the host answered by type %u, %zu bytes", answer[0], length);
    return answer[1];
}

static struct request request(enum ibv_wr_opcode opcode, const struct mrsp_a_region *to, const void *local, uint32_t length) {
    return (struct request){.opcode = opcode, .id = 1, .local = local, .length = length, .remote = to->address, .rkey = to->rkey};
}

// Writes, tells the owner with a label, and returns what it says.
static uint32_t write_and_notify(struct session *s, const struct mrsp_a_region *to, const void *local, uint32_t length, uint32_t label) {
    session_post_receive(s, NULL, 0);
    struct request write = request(IBV_WR_RDMA_WRITE_WITH_IMM, to, local, length);
    write.imm = label << 8 | MRSP_START | MRSP_TELL;
    session_do(s, write);
    return session_answer(s);
}

static void writes(struct session *s) {
    const uint32_t sizes[] = {1, 4097, LONGEST};
    struct mrsp_a_region part;
    for (uint32_t i = 0; i < 3; i++) {
        unsigned code = ask(s, MRSP_INPUT, WINDOW, sizes[i], &part);
        check(code == 0, "window %d refuses %u bytes with code %u", WINDOW, sizes[i], code);
        uint8_t *bytes = session_take(s, sizes[i]);
        fill(bytes, sizes[i], i + 1);
        uint32_t result = write_and_notify(s, &part, bytes, sizes[i], i + 1);
        check(result == 0, "the owner says %u of %u bytes", result, sizes[i]);
    }
    uint32_t result = write_and_notify(s, &part, NULL, 0, 0);
    check(result == REFUSED, "the owner says %u instead of %u", result, REFUSED);
}

static void reads(struct session *s) {
    struct mrsp_a_region part;
    check(ask(s, MRSP_OUTPUT, WINDOW, TABLE, &part) == 0, "window %d cannot be read", WINDOW);
    uint8_t *got = session_take(s, TABLE), *wanted = session_take(s, TABLE);
    fill(wanted, TABLE, TABLE_SEED);
    session_do(s, request(IBV_WR_RDMA_READ, &part, got, TABLE));
    same(got, wanted, TABLE, "what was read");
    check(write_and_notify(s, &part, NULL, 0, 5) == 0, "the owner does not take that it was read");
}

static void refusals(struct session *s) {
    struct mrsp_a_region part;
    unsigned code = ask(s, MRSP_INPUT, WINDOW + 1, 1, &part);
    check(code == MRSP_NO_WINDOW, "a window that is not there gets code %u", code);
    code = ask(s, MRSP_INPUT, WINDOW, LONGEST + 1, &part);
    check(code == MRSP_WINDOW_TOO_SMALL, "a window that is too small gets code %u", code);
    // What may be read cannot be written.
    check(ask(s, MRSP_OUTPUT, WINDOW, 8, &part) == 0, "window %d cannot be read", WINDOW);
    struct request write = request(IBV_WR_RDMA_WRITE, &part, session_take(s, 8), 8);
    write.flags = IBV_SEND_SIGNALED;
    session_post(s, write);
    session_expect(s, 1, IBV_WC_REM_ACCESS_ERR);
}

int main(int argc, char **argv) {
    check(argc == 3, "usage: nacelle_window_client ADDRESS PORT");
    options.address = argv[1];
    options.port = argv[2];
    struct session s;
    session_open(&s, &options, 1 << 20);
    refusals(&s);
    session_destroy(&s);
    session_open(&s, &options, 8 << 20);
    writes(&s);
    reads(&s);
    session_close(&s);
    session_destroy(&s);
    puts("ok: windows written and read");
    return 0;
}
