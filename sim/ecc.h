// SPDX-License-Identifier: Apache-2.0
//
// The check bits of rtl/memory/ecc_pkg.sv, for what is put into memory by the back door.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace nacelle {

// By byte of the word and value of this byte.
constexpr std::array<std::array<uint8_t, 256>, 8> kEccTable = [] {
    std::array<uint8_t, 64> column{};
    size_t n = 0;
    for (unsigned value = 0; value < 256; ++value)
        if (std::popcount(value) == 3) column[n++] = uint8_t(value);
    for (unsigned turn = 0; turn < 8; ++turn) column[n++] = uint8_t(0x1f1f >> turn);
    std::array<std::array<uint8_t, 256>, 8> table{};
    for (size_t i = 0; i < 8; ++i)
        for (unsigned value = 0; value < 256; ++value)
            for (size_t bit = 0; bit < 8; ++bit)
                if (value >> bit & 1) table[i][value] ^= column[i * 8 + bit];
    return table;
}();

inline uint8_t ecc_check(uint64_t word) {
    uint8_t check = 0;
    for (size_t i = 0; i < 8; ++i) check ^= kEccTable[i][word >> 8 * i & 0xff];
    return check;
}

}  // namespace nacelle
