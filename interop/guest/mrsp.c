// SPDX-License-Identifier: Apache-2.0
#include "mrsp.h"

#include <endian.h>
#include <string.h>

static uint8_t *put32(uint8_t *at, uint32_t value) {
    value = htobe32(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static uint8_t *put64(uint8_t *at, uint64_t value) {
    value = htobe64(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static uint32_t get32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return be32toh(value);
}

static uint64_t get64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return be64toh(value);
}

static uint8_t *head(uint8_t *message, uint8_t type, unsigned count) {
    memcpy(message, (uint8_t[]){type, (uint8_t)count, 0, 0}, MRSP_HEAD);
    return message + MRSP_HEAD;
}

size_t mrsp_write_aar(uint8_t *message, const struct mrsp_aar_region *regions, unsigned count) {
    uint8_t *at = head(message, MRSP_AAR, count);
    for (unsigned i = 0; i < count; i++) {
        at = put64(at, (uint64_t)regions[i].flags << 56 | regions[i].proposed);
        at = put64(at, regions[i].address);
        at = put32(at, regions[i].rkey);
        at = put32(at, regions[i].size);
    }
    return (size_t)(at - message);
}

size_t mrsp_write_a(uint8_t *message, const struct mrsp_a_region *regions, unsigned count) {
    uint8_t *at = head(message, MRSP_A, count);
    for (unsigned i = 0; i < count; i++) {
        at = put64(at, regions[i].address);
        at = put32(at, regions[i].rkey);
        at = put32(at, regions[i].size);
    }
    return (size_t)(at - message);
}

static int count_of(const uint8_t *message, size_t length, uint8_t type, size_t region) {
    if (length < MRSP_HEAD || message[0] != type || message[1] == 0 || message[1] > MRSP_MAX_REGIONS ||
        length != MRSP_HEAD + message[1] * region) {
        return -1;
    }
    return message[1];
}

int mrsp_read_aar(const uint8_t *message, size_t length, struct mrsp_aar_region *regions) {
    int count = count_of(message, length, MRSP_AAR, MRSP_AAR_REGION);
    for (int i = 0; i < count; i++) {
        const uint8_t *at = message + MRSP_HEAD + i * MRSP_AAR_REGION;
        regions[i] = (struct mrsp_aar_region){.flags = at[0],
                                              .proposed = get64(at) & (UINT64_MAX >> 8),
                                              .address = get64(at + 8),
                                              .rkey = get32(at + 16),
                                              .size = get32(at + 20)};
    }
    return count;
}

int mrsp_read_a(const uint8_t *message, size_t length, struct mrsp_a_region *regions) {
    int count = count_of(message, length, MRSP_A, MRSP_A_REGION);
    for (int i = 0; i < count; i++) {
        const uint8_t *at = message + MRSP_HEAD + i * MRSP_A_REGION;
        regions[i] = (struct mrsp_a_region){get64(at), get32(at + 8), get32(at + 12)};
    }
    return count;
}
