// SPDX-License-Identifier: Apache-2.0
//
// A fixed program that loads a machine as a Verilated model does: some 400 KB of straight code that runs once a round, over 256 KiB of
// state. The simulator's speed is quoted as a ratio to this one's, measured in turn with it, so that it says something about the
// device and its build, whatever the machine. It is never changed: a change would make all earlier ratios void.

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

namespace {

constexpr unsigned WORDS = 1u << 16;
constexpr unsigned STEPS = 32;    // of a block
constexpr unsigned BLOCKS = 400;  // of a round

struct State {
    std::array<uint32_t, WORDS> w;
    uint32_t rounds;
};

constexpr uint64_t mixed(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Operand `which` of a step: near the block's own part of the state, as a module's signals are.
constexpr unsigned at(uint64_t seed, unsigned which, unsigned block) {
    const auto r = mixed(seed + 0x9e3779b97f4a7c15u * (which + 1));
    const bool far = (r >> 40) % 4 == 0;
    return (far ? r % (WORDS - 64) : (block * 48 + r % 512) % (WORDS - 64));
}

// One statement such as Verilator writes: logic, selection, arithmetic, shifts, a wide copy, a table, a reduction.
template <uint64_t SEED, unsigned BLOCK>
[[gnu::always_inline]] inline void step(State &s) {
    constexpr unsigned a = at(SEED, 0, BLOCK), b = at(SEED, 1, BLOCK), c = at(SEED, 2, BLOCK), d = at(SEED, 3, BLOCK);
    constexpr unsigned shift = 1 + mixed(SEED) % 30;
    constexpr unsigned kind = mixed(SEED + 77) % 10;
    auto &w = s.w;
    if constexpr (kind <= 2) {
        w[a] = (w[b] & w[c]) | (~w[b] & w[d]);
    } else if constexpr (kind == 3) {
        if (w[b] & (1u << shift)) w[a] = w[c] + w[d];
    } else if constexpr (kind == 4) {
        w[a] = (w[b] << shift) | (w[c] >> (32 - shift));
    } else if constexpr (kind == 5) {
        const uint64_t q = (uint64_t{w[b]} << 32 | w[c]) + (uint64_t{w[d]} << shift);
        w[a] = static_cast<uint32_t>(q);
        w[a + 1] = static_cast<uint32_t>(q >> 32);
    } else if constexpr (kind == 6) {
        const auto from = (w[b] >> shift & 1) ? c : d;
        for (unsigned i = 0; i < 16; ++i) w[a + i] = w[from + i];
    } else if constexpr (kind == 7) {
        w[a] ^= w[(w[b] >> shift) & 1023];
    } else if constexpr (kind == 8) {
        w[a] = static_cast<uint32_t>(__builtin_parity(w[b] & w[c])) | (w[a] << 1);
    } else {
        w[a] = (w[b] == w[c] ? w[d] : w[a]) + (w[c] > w[d]);
    }
}

template <unsigned BLOCK, unsigned... I>
[[gnu::noinline]] void block(State &s, std::integer_sequence<unsigned, I...>) {
    // Some of a model's processes are not due in a cycle.
    if ((s.w[BLOCK % WORDS] & 7) == 7 && (s.rounds & 1)) return;
    (step<mixed(BLOCK * 1000003u + I), BLOCK>(s), ...);
}

template <unsigned... B>
void round_of(State &s, std::integer_sequence<unsigned, B...>) {
    (block<B>(s, std::make_integer_sequence<unsigned, STEPS>{}), ...);
    ++s.rounds;
}

}  // namespace

// Runs `rounds` rounds from a fixed state; returns a value that depends on all of it.
extern "C" uint32_t reference_run(uint32_t rounds) {
    auto s = std::make_unique<State>();
    for (unsigned i = 0; i < WORDS; ++i) s->w[i] = static_cast<uint32_t>(mixed(i + 1));
    s->rounds = 0;
    for (uint32_t r = 0; r < rounds; ++r) round_of(*s, std::make_integer_sequence<unsigned, BLOCKS>{});
    uint32_t sum = 0;
    for (const auto word : s->w) sum = sum * 31 + word;
    return sum;
}
