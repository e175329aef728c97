// SPDX-License-Identifier: Apache-2.0
//
// A transaction-layer packet of PCI Express, as tlp_header_t of rtl/pcie/pcie_pkg.sv with its payload.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace nacelle {

constexpr uint8_t kMemRead = 0, kMemWrite = 1, kCompletion = 2, kCompletionData = 3, kOther = 4, kOtherData = 5, kMessage = 6, kMessageData = 7;
constexpr uint8_t kSuccess = 0, kUnsupported = 1, kRetry = 2, kAbort = 4;
constexpr uint8_t kRelaxed = 2;  // relaxed ordering in `attr`
constexpr uint32_t kFunctions = 2;  // of a device, at most
constexpr uint64_t kPage = 4096;  // what no request crosses

struct Tlp {
    uint8_t kind = kMemRead;
    uint8_t bar = 0, func = 0;  // which function is asked; in the slot of a request of the device: which one asks
    uint64_t address = 0;
    uint8_t first_be = 0, last_be = 0;
    uint16_t completer = 0, requester = 0, tag = 0;
    uint8_t status = kSuccess;
    uint32_t byte_count = 0;
    uint8_t lower_address = 0;
    uint32_t dwords = 0;
    uint8_t tc = 0, attr = 0;
    bool poisoned = false;
    std::vector<uint8_t> data;  // of whole dwords, the byte of the lowest address first

    bool has_data() const { return kind & 1; }
    bool is_completion() const { return kind == kCompletion || kind == kCompletionData; }
    bool is_posted() const { return kind == kMemWrite || kind == kMessage || kind == kMessageData; }
    bool is_request() const { return !is_completion(); }
    uint32_t transaction() const { return uint32_t(requester) << 16 | tag; }  // what its completions are known by
    uint32_t data_credits() const { return has_data() ? (dwords + 3) / 4 : 0; }

    // The bytes that a memory request means: from the first enabled one to the last (table 2-38 of the Base Specification).
    uint64_t first_byte() const { return address + (first_be ? uint64_t(__builtin_ctz(first_be)) : 0); }
    uint32_t enabled_bytes() const {
        const uint8_t last = dwords == 1 ? first_be : last_be;
        const uint32_t behind = last ? 3u - (31u - uint32_t(__builtin_clz(last))) : 3u;
        return dwords * 4 - behind - uint32_t(first_byte() - address);
    }
    bool enabled(uint32_t byte) const {
        const uint8_t be = byte < 4 ? first_be : byte / 4 == dwords - 1 ? last_be : 0xf;
        return be >> byte % 4 & 1;
    }
};

// A request for `length` bytes from any address.
inline Tlp memory_request(uint8_t kind, uint64_t address, uint32_t length) {
    Tlp tlp;
    tlp.kind = kind;
    tlp.address = address & ~3ull;
    tlp.dwords = uint32_t(((address + length + 3) >> 2) - (address >> 2));
    const uint32_t before = address & 3, behind = uint32_t(-(address + length)) & 3;
    tlp.first_be = uint8_t(0xf << before & 0xf);
    tlp.last_be = uint8_t(0xf >> behind);
    if (tlp.dwords == 1) {
        tlp.first_be &= tlp.last_be;
        tlp.last_be = 0;
    }
    return tlp;
}

// The same with the data of a write.
inline Tlp memory_write(uint64_t address, const uint8_t *data, uint32_t length) {
    Tlp tlp = memory_request(kMemWrite, address, length);
    tlp.data.resize(tlp.dwords * 4);
    std::copy(data, data + length, tlp.data.begin() + std::ptrdiff_t(address & 3));
    return tlp;
}

}  // namespace nacelle
