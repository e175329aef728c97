// SPDX-License-Identifier: Apache-2.0

// A board's netlist (tools/netlist.py) under Verilator, behind a C interface: frames go in and come out by the pins of RGMII, and the clocks run.
// A step of time is 4 ns, half a cycle of RGMII; the device's clock is half of that of RGMII. The PHY's clock has the phase of the PLL's.
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "Vnetlist.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

constexpr unsigned GAP = 12, PREAMBLE = 8, FCS = 4, SHORTEST = 60;

uint32_t crc32(const uint8_t *data, size_t length) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

struct Board {
    VerilatedContext context;
    Vnetlist top{&context};
    std::deque<uint16_t> to_send;               // bytes for the device, and GAP_BYTE between frames
    std::vector<uint8_t> coming;                // bytes of the frame that it sends
    std::deque<std::vector<uint8_t>> frames;
    uint64_t steps = 0, bad_frames = 0;
    unsigned noise_left = 1;
    std::mt19937 random;
    uint8_t low = 0, now = 0;
    bool valid = false;

    static constexpr uint16_t GAP_BYTE = 0x100;

    void half_cycle() {
        bool rising = steps % 2 == 0;
        if (rising) {
            valid = !to_send.empty() && to_send.front() != GAP_BYTE;
            now = valid ? to_send.front() : 0;
            if (!to_send.empty()) to_send.pop_front();
        }
        top.eth_rx_data = rising ? now & 15 : now >> 4;
        top.eth_rx_ctl = valid;
        top.eth_rx_clk = top.pll_clkop = rising;
        top.pll_clkos = steps % 4 < 2;
#ifndef NO_OSCILLATOR
        if (--noise_left == 0) {                 // 3 to 5 cycles of the device
            top.oscillator_osc = !top.oscillator_osc;
            noise_left = 12 + random() % 8;
        }
#endif
        top.eval();
        steps++;
        // In the middle of what the device sends: each half comes with the edge of the clock.
        if (rising) {
            low = top.eth_tx_data;
        } else if (top.eth_tx_ctl) {
            coming.push_back(low | top.eth_tx_data << 4);
        } else if (!coming.empty()) {
            take();
        }
    }

    void take() {
        bool good = coming.size() >= PREAMBLE + SHORTEST + FCS && coming[PREAMBLE - 1] == 0xd5;
        if (good) {
            size_t length = coming.size() - PREAMBLE - FCS;
            uint32_t fcs;
            memcpy(&fcs, &coming[PREAMBLE + length], FCS);
            good = fcs == crc32(&coming[PREAMBLE], length);
            if (good) frames.emplace_back(coming.begin() + PREAMBLE, coming.begin() + PREAMBLE + length);
        }
        bad_frames += !good;
        coming.clear();
    }
};

}  // namespace

extern "C" {

// A board after its PLL has locked. It runs the device's cycles in board_step only.
Board *board_create(uint64_t seed) {
    auto board = new Board;
    board->random.seed(seed);
    board->top.clk30 = 0;
    board->top.pll_lock = 0;
    for (int i = 0; i < 64; i++) board->half_cycle();
    board->top.pll_lock = 1;
    return board;
}

void board_destroy(Board *board) { delete board; }

uint64_t board_step(Board *board, uint64_t cycles, int stop_on_frame) {
    for (uint64_t i = 0; i < cycles; i++) {
        for (int half = 0; half < 4; half++) board->half_cycle();
        if (stop_on_frame && !board->frames.empty()) return i + 1;
    }
    return cycles;
}

void board_push(Board *board, const uint8_t *frame, size_t length) {
    std::vector<uint8_t> padded(frame, frame + length);
    if (padded.size() < SHORTEST) padded.resize(SHORTEST);
    uint32_t fcs = crc32(padded.data(), padded.size());
    auto &line = board->to_send;
    for (unsigned i = 0; i < GAP; i++) line.push_back(Board::GAP_BYTE);
    for (unsigned i = 0; i < PREAMBLE - 1; i++) line.push_back(0x55);
    line.push_back(0xd5);
    line.insert(line.end(), padded.begin(), padded.end());
    for (unsigned i = 0; i < FCS; i++) line.push_back(fcs >> 8 * i & 255);
}

// Takes the oldest frame that the device has sent, without FCS. Returns its length, 0 if there is none.
size_t board_pull(Board *board, uint8_t *frame, size_t capacity) {
    if (board->frames.empty() || board->frames.front().size() > capacity) return 0;
    auto oldest = std::move(board->frames.front());
    board->frames.pop_front();
    memcpy(frame, oldest.data(), oldest.size());
    return oldest.size();
}

uint64_t board_bad_frames(const Board *board) { return board->bad_frames; }
}
