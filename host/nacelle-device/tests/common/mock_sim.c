// SPDX-License-Identifier: Apache-2.0
// A stand-in for the simulated device: the whole C ABI, but a "device" that only answers ARP and ICMP echo. It serves to
// test the wrapper and the host program where there is no simulator.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nacelle_registers.h"
#include "nacelle_sim.h"

#define MAX_FRAME 9234
#define QUEUE 16 // smaller than the real one, so that tests reach the end of it
#define CYCLES_PER_FRAME 10
#define DRAM 4096
#define REGISTERS 0x12000

typedef struct {
    uint8_t data[MAX_FRAME];
    size_t length;
    nacelle_sim_stamp stamp;
} frame_t;

typedef struct {
    frame_t frames[QUEUE];
    unsigned first, count;
} queue_t;

struct nacelle_sim {
    uint32_t registers[REGISTERS / 4];
    uint8_t dram[DRAM];
    nacelle_sim_stats stats;
    queue_t in, out;
    nacelle_sim_stamp entered[4 * QUEUE];
    unsigned entered_first, entered_count;
};

void nacelle_sim_get_info(nacelle_sim_info *info) {
    *info = (nacelle_sim_info){NACELLE_SIM_ABI, 512, 1000000, MAX_FRAME, DRAM};
}

/* The words that a block begins with. */
static void put_block(nacelle_sim *sim, uint32_t address, uint32_t type, uint32_t version, uint32_t next) {
    const uint32_t words[] = {type, version, next};
    memcpy(&sim->registers[address / 4], words, sizeof words);
}

nacelle_sim *nacelle_sim_create(const nacelle_sim_config *config, char *error, size_t error_size) {
    if (config->abi != NACELLE_SIM_ABI || config->line_rate_mbps == 13) {
        snprintf(error, error_size, "this device does not like the number %u", config->line_rate_mbps);
        return NULL;
    }
    nacelle_sim *sim = calloc(1, sizeof *sim);
    put_block(sim, NACELLE_DEVICE_BASE, NACELLE_DEVICE_BLOCK_TYPE, NACELLE_DEVICE_BLOCK_VERSION, NACELLE_MANAGEMENT_BASE);
    put_block(sim, NACELLE_MANAGEMENT_BASE, NACELLE_MANAGEMENT_BLOCK_TYPE, NACELLE_MANAGEMENT_BLOCK_VERSION, NACELLE_SOCKET_BASE);
    put_block(sim, NACELLE_SOCKET_BASE, 0x4e455721, 0, NACELLE_SOCKET_BASE + NACELLE_SOCKET_BLOCK_STRIDE); // "NEW!"
    put_block(sim, NACELLE_SOCKET_BASE + NACELLE_SOCKET_BLOCK_STRIDE, NACELLE_SOCKET_BLOCK_TYPE, NACELLE_SOCKET_BLOCK_VERSION, 0);
    sim->registers[NACELLE_DEVICE_MESSAGES_BYTES / 4] = 4096;
    sim->registers[(NACELLE_SOCKET_BASE + NACELLE_SOCKET_BLOCK_STRIDE + NACELLE_SOCKET_JOBS) / 4] = 7;
    sim->registers[NACELLE_DEVICE_PACKET_RX_FRAME / 4] = 42;
    return sim;
}

void nacelle_sim_destroy(nacelle_sim *sim) { free(sim); }

static bool push(queue_t *queue, const uint8_t *data, size_t length, nacelle_sim_stamp stamp) {
    if (queue->count == QUEUE) return false;
    frame_t *frame = &queue->frames[(queue->first + queue->count++) % QUEUE];
    memcpy(frame->data, data, length);
    frame->length = length;
    frame->stamp = stamp;
    return true;
}

static frame_t *pop(queue_t *queue) {
    if (queue->count == 0) return NULL;
    frame_t *frame = &queue->frames[queue->first];
    queue->first = (queue->first + 1) % QUEUE;
    queue->count--;
    return frame;
}

static void swap(uint8_t *a, uint8_t *b, size_t length) {
    while (length--) {
        uint8_t byte = a[length];
        a[length] = b[length];
        b[length] = byte;
    }
}

// Turns an ARP request or a ping for this device into its answer.
static bool answer(const nacelle_sim *sim, uint8_t *f, size_t length) {
    uint8_t mac[6], ip[4];
    for (int i = 0; i < 2; i++) mac[i] = (uint8_t)(sim->registers[NACELLE_DEVICE_MAC_HI / 4] >> (8 - 8 * i));
    for (int i = 0; i < 4; i++) mac[2 + i] = (uint8_t)(sim->registers[NACELLE_DEVICE_MAC_LO / 4] >> (24 - 8 * i));
    for (int i = 0; i < 4; i++) ip[i] = (uint8_t)(sim->registers[NACELLE_DEVICE_IP / 4] >> (24 - 8 * i));
    if (!(sim->registers[NACELLE_DEVICE_CTRL / 4] & NACELLE_DEVICE_CTRL_ENABLE_MASK)) return false;
    if (length >= 42 && f[12] == 8 && f[13] == 6 && f[21] == 1 && memcmp(&f[38], ip, 4) == 0) {
        f[21] = 2;
        memcpy(&f[32], &f[22], 10);
        memcpy(&f[22], mac, 6);
        memcpy(&f[28], ip, 4);
    } else if (length >= 42 && f[12] == 8 && f[13] == 0 && f[23] == 1 && f[34] == 8 && memcmp(&f[30], ip, 4) == 0) {
        f[34] = 0;
        unsigned sum = (unsigned)(f[36] << 8 | f[37]) + 0x800; // RFC 1624
        sum = (sum & 0xffff) + (sum >> 16);
        f[36] = (uint8_t)(sum >> 8);
        f[37] = (uint8_t)sum;
        swap(&f[26], &f[30], 4);
    } else {
        return false;
    }
    memcpy(f, &f[6], 6);
    memcpy(&f[6], mac, 6);
    return true;
}

uint64_t nacelle_sim_step(nacelle_sim *sim, uint64_t cycles, int stop_on_frame) {
    uint64_t passed = 0;
    while (passed + CYCLES_PER_FRAME <= cycles && sim->in.count != 0 && sim->out.count < QUEUE) {
        frame_t *frame = pop(&sim->in);
        uint64_t now = sim->stats.cycles + passed;
        if (sim->entered_count < 4 * QUEUE) {
            sim->entered[(sim->entered_first + sim->entered_count++) % (4 * QUEUE)] =
                (nacelle_sim_stamp){now, now + 1};
        }
        sim->stats.rx_frames++;
        sim->stats.rx_bytes += frame->length;
        passed += CYCLES_PER_FRAME;
        if (answer(sim, frame->data, frame->length)) {
            push(&sim->out, frame->data, frame->length, (nacelle_sim_stamp){now + 7, now + 8});
            sim->stats.tx_frames++;
            sim->stats.tx_bytes += frame->length;
            if (stop_on_frame) break;
        }
    }
    if (sim->in.count == 0 && !stop_on_frame) passed = cycles;
    sim->stats.cycles += passed;
    sim->stats.cycles_simulated += passed;
    return passed;
}

int nacelle_sim_idle(const nacelle_sim *sim) { return sim->in.count == 0; }

uint64_t nacelle_sim_skip(nacelle_sim *sim, uint64_t cycles) {
    if (sim->in.count != 0) return 0;
    sim->stats.cycles += cycles;
    return cycles;
}

int nacelle_sim_push_frame(nacelle_sim *sim, const uint8_t *frame, size_t length) {
    if (length == 0 || length > MAX_FRAME) return -1;
    return push(&sim->in, frame, length, (nacelle_sim_stamp){0, 0}) ? 0 : -2;
}

int nacelle_sim_pop_rx_stamp(nacelle_sim *sim, nacelle_sim_stamp *stamp) {
    if (sim->entered_count == 0) return 0;
    *stamp = sim->entered[sim->entered_first];
    sim->entered_first = (sim->entered_first + 1) % (4 * QUEUE);
    sim->entered_count--;
    return 1;
}

int64_t nacelle_sim_pull_frame(nacelle_sim *sim, uint8_t *frame, size_t capacity, nacelle_sim_stamp *stamp) {
    if (sim->out.count != 0 && sim->out.frames[sim->out.first].length > capacity) return -1;
    frame_t *oldest = pop(&sim->out);
    if (oldest == NULL) return 0;
    memcpy(frame, oldest->data, oldest->length);
    *stamp = oldest->stamp;
    return (int64_t)oldest->length;
}

int nacelle_sim_reg_read(nacelle_sim *sim, uint32_t address, uint32_t *value) {
    if (address >= REGISTERS || address % 4) return -1;
    *value = sim->registers[address / 4];
    return 0;
}

int nacelle_sim_reg_write(nacelle_sim *sim, uint32_t address, uint32_t value) {
    if (address >= REGISTERS || address % 4) return -1;
    sim->registers[address / 4] = value;
    return 0;
}

int nacelle_sim_dram_read(nacelle_sim *sim, uint64_t address, void *data, size_t length) {
    if (address > DRAM || length > DRAM - address) return -1;
    memcpy(data, &sim->dram[address], length);
    return 0;
}

int nacelle_sim_dram_write(nacelle_sim *sim, uint64_t address, const void *data, size_t length) {
    if (address > DRAM || length > DRAM - address) return -1;
    memcpy(&sim->dram[address], data, length);
    return 0;
}

// As a device with a memory that it corrects itself.
int nacelle_sim_set_faults(nacelle_sim *sim, uint32_t memory, const nacelle_sim_faults *faults) {
    if (memory > 0 || faults->controller_ecc) return -1;
    sim->stats.dram_flips = faults->one_ppm;
    return 0;
}

void nacelle_sim_get_stats(const nacelle_sim *sim, nacelle_sim_stats *stats) { *stats = sim->stats; }

/* It is in no slot. */
int nacelle_sim_slot_set(nacelle_sim *sim, const nacelle_sim_slot *slot, char *error, size_t error_size) {
    (void)sim, (void)slot;
    snprintf(error, error_size, "it is in no slot");
    return -1;
}
int nacelle_sim_slot_get_facts(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_facts *facts) { return (void)function, (void)sim, (void)facts, -1; }
int nacelle_sim_slot_set_space(nacelle_sim *sim, uint32_t function, const nacelle_sim_slot_space *space) { return (void)function, (void)sim, (void)space, -1; }
int nacelle_sim_slot_reset(nacelle_sim *sim, uint32_t function) { return (void)function, (void)sim, -1; }
int nacelle_sim_slot_reset_done(nacelle_sim *sim, uint32_t function) { return (void)function, (void)sim, -1; }
int nacelle_sim_slot_map(nacelle_sim *sim, uint32_t function, uint64_t address, uint64_t size, void *memory, uint32_t access) {
    return (void)function, (void)sim, (void)address, (void)size, (void)memory, (void)access, -1;
}
int nacelle_sim_slot_unmap(nacelle_sim *sim, uint32_t function, uint64_t address, uint64_t size) { return (void)function, (void)sim, (void)address, (void)size, -1; }
int64_t nacelle_sim_slot_read(nacelle_sim *sim, uint32_t function, uint32_t bar, uint64_t offset, uint32_t length) {
    return (void)function, (void)sim, (void)bar, (void)offset, (void)length, -1;
}
int64_t nacelle_sim_slot_write(nacelle_sim *sim, uint32_t function, uint32_t bar, uint64_t offset, const void *data, uint32_t length) {
    return (void)function, (void)sim, (void)bar, (void)offset, (void)data, (void)length, -1;
}
int nacelle_sim_slot_pull_answer(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_answer *answer) { return (void)function, (void)sim, (void)answer, 0; }
int nacelle_sim_slot_pull_interrupt(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_interrupt *interrupt) { return (void)function, (void)sim, (void)interrupt, 0; }
int nacelle_sim_slot_pull_message(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_message *message) { return (void)function, (void)sim, (void)message, 0; }
int nacelle_sim_slot_answer_message(nacelle_sim *sim, uint64_t token, const void *data) { return (void)sim, (void)token, (void)data, -1; }
int nacelle_sim_slot_pull_fault(nacelle_sim *sim, uint32_t function, nacelle_sim_slot_fault *fault) { return (void)function, (void)sim, (void)fault, 0; }
int nacelle_sim_slot_get_stats(nacelle_sim *sim, nacelle_sim_slot_stats *stats) { return (void)sim, (void)stats, -1; }
int64_t nacelle_sim_slot_violation(nacelle_sim *sim, char *text, size_t size) { return (void)sim, (void)text, (void)size, 0; }

/* Nor on a line. */
nacelle_sim_line *nacelle_sim_line_create(nacelle_sim *a, nacelle_sim *b, const nacelle_sim_line_config *config, char *error, size_t error_size) {
    (void)a, (void)b, (void)config;
    snprintf(error, error_size, "it has no line");
    return NULL;
}
void nacelle_sim_line_destroy(nacelle_sim_line *line) { (void)line; }
uint64_t nacelle_sim_line_run(nacelle_sim_line *line, uint64_t cycles, int stop) { return (void)line, (void)stop, cycles; }
void nacelle_sim_line_get_stats(const nacelle_sim_line *line, int direction, nacelle_sim_line_stats *stats) { (void)line, (void)direction, (void)stats; }
