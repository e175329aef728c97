// SPDX-License-Identifier: Apache-2.0
//
// One direction of a line between two simulated devices: a delay, a rate with a queue that marks and drops, and chance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "nacelle_sim.h"

namespace nacelle {

class LineDirection {
  public:
    LineDirection(const nacelle_sim_line_config &config, uint32_t clock_hz, uint64_t seed)
        : config_(config), bytes_per_cycle_(config.rate_mbps * 125000.0 / clock_hz), random_(seed) {}

    // A frame whose last beat left in this cycle.
    void send(std::vector<uint8_t> frame, uint64_t cycle) {
        ++stats.sent;
        if (chance(config_.loss_ppm)) {
            ++stats.lost;
            return;
        }
        if (config_.rate_mbps != 0 && !queue(frame, cycle)) return;
        uint64_t arrival = std::max(cycle, static_cast<uint64_t>(free_at_)) + 1 + config_.delay_cycles;
        if (chance(config_.corrupt_ppm)) {
            ++stats.corrupted;
            const uint64_t bit = random_() % (frame.size() * 8);
            frame[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
        }
        if (chance(config_.duplicate_ppm)) {
            ++stats.duplicated;
            under_way_.emplace(arrival + random_() % (config_.reorder_cycles + 1), frame);
        }
        if (chance(config_.reorder_ppm)) {
            ++stats.delayed;
            arrival += random_() % (config_.reorder_cycles + 1);
        }
        under_way_.emplace(arrival, std::move(frame));
    }

    bool empty() const { return under_way_.empty(); }
    uint64_t next_arrival() const { return under_way_.begin()->first; }
    std::vector<uint8_t> take() {
        auto first = under_way_.begin();
        std::vector<uint8_t> frame = std::move(first->second);
        under_way_.erase(first);
        return frame;
    }

    nacelle_sim_line_stats stats{};

  private:
    bool chance(uint32_t ppm) { return ppm != 0 && random_() % 1'000'000 < ppm; }

    // A switch with this rate: the frame waits behind those before it. False: there is no room.
    bool queue(std::vector<uint8_t> &frame, uint64_t cycle) {
        const double waiting = std::max(0.0, free_at_ - static_cast<double>(cycle)) * bytes_per_cycle_;
        if (config_.queue_bytes != 0 && waiting + static_cast<double>(frame.size()) > config_.queue_bytes) {
            ++stats.overflowed;
            return false;
        }
        if (config_.mark_bytes != 0 && waiting > config_.mark_bytes) mark(frame);
        free_at_ = std::max(free_at_, static_cast<double>(cycle)) + (static_cast<double>(frame.size()) + kFrameOverhead) / bytes_per_cycle_;
        return true;
    }

    // Congestion experienced, if the packet allows it (RFC 3168), with the checksum as it then must be (RFC 1624).
    void mark(std::vector<uint8_t> &frame) {
        constexpr size_t kIp = 14;
        constexpr uint8_t kEcn = 3;
        if (frame.size() < kIp + 20 || frame[12] != 0x08 || frame[13] != 0x00) return;
        const uint8_t ecn = frame[kIp + 1] & kEcn;
        if (ecn == 0 || ecn == kEcn) return;
        ++stats.marked;
        frame[kIp + 1] |= kEcn;
        uint32_t sum = static_cast<uint32_t>(frame[kIp + 10] << 8 | frame[kIp + 11]);
        sum = (~sum & 0xffff) + static_cast<uint32_t>(kEcn - ecn);
        sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
        frame[kIp + 10] = static_cast<uint8_t>(sum >> 8);
        frame[kIp + 11] = static_cast<uint8_t>(sum);
    }

    static constexpr double kFrameOverhead = 24;  // FCS, preamble and inter-frame gap

    nacelle_sim_line_config config_;
    double bytes_per_cycle_;
    double free_at_ = 0;  // when the last frame in the queue has left
    std::mt19937_64 random_;
    std::multimap<uint64_t, std::vector<uint8_t>> under_way_;  // by arrival; equal ones in the order in which they were sent
};

}  // namespace nacelle
