// SPDX-License-Identifier: Apache-2.0
// Messages of the region set-up (MRSP), as docs/reference/wire.md has them: big-endian, the payload of one SEND.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MRSP_ERR = 0, MRSP_AAR = 1, MRSP_A = 2 };
enum { MRSP_INTERNAL = 1, MRSP_SINGLE_SEND = 2, MRSP_INPUT = 4, MRSP_OUTPUT = 8 };
enum { MRSP_MAX_REGIONS = 31, MRSP_MAX_MESSAGE = 768, MRSP_HEAD = 4, MRSP_AAR_REGION = 24, MRSP_A_REGION = 16 };
enum { MRSP_MALFORMED = 1, MRSP_NO_MEMORY = 2, MRSP_NO_WINDOW = 5, MRSP_WINDOW_TOO_SMALL = 6 };
// A proposed address that names a window, together with its number (docs/reference/transfers.md).
#define MRSP_WINDOW (UINT64_C(0x4e4157) << 32)

// An immediate that starts a function, and those of its results. Calls: docs/reference/wire.md.
enum { MRSP_START = 0x80, MRSP_INCREMENT = 1, MRSP_EMPTY = 3, MRSP_NO_SUCH_FUNCTION = 3, MRSP_TELL = 127 };

// A region of a request.
struct mrsp_aar_region {
    uint8_t flags;
    uint64_t proposed;  // 56 bits: where the caller would like it, or the window that it is a part of
    uint64_t address;   // at the caller: where an output goes
    uint32_t rkey;
    uint32_t size;
};

// What it is given.
struct mrsp_a_region {
    uint64_t address;
    uint32_t rkey;
    uint32_t size;
};

// Writes an AAR or an A, and returns its length.
size_t mrsp_write_aar(uint8_t *message, const struct mrsp_aar_region *regions, unsigned count);
size_t mrsp_write_a(uint8_t *message, const struct mrsp_a_region *regions, unsigned count);
// Read an AAR or an A. Return how many regions it has, or -1 if it is something else or its length is wrong.
int mrsp_read_aar(const uint8_t *message, size_t length, struct mrsp_aar_region *regions);
int mrsp_read_a(const uint8_t *message, size_t length, struct mrsp_a_region *regions);
