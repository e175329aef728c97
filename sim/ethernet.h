// SPDX-License-Identifier: Apache-2.0
//
// The Ethernet MAC and line of the simulated device: frames to beats and back, at the line rate.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "nacelle_sim.h"

namespace nacelle {

// How many bytes of beats may pass in a cycle. Each frame costs 24 bytes more: FCS, preamble and inter-frame gap.
class LineRate {
  public:
    static constexpr int64_t kFrameOverhead = 24;

    // bits_per_cycle in thousandths; 0: no limit.
    explicit LineRate(int64_t millibits_per_cycle) : per_cycle_(millibits_per_cycle), burst_(millibits_per_cycle + 8000 * 64) {}

    void tick(uint64_t cycles = 1) {
        if (per_cycle_ == 0) return;
        const int64_t room = burst_ - credit_;
        credit_ = static_cast<uint64_t>(room / per_cycle_) < cycles ? burst_ : credit_ + per_cycle_ * static_cast<int64_t>(cycles);
    }
    bool open() const { return per_cycle_ == 0 || credit_ >= 0; }
    void spend(size_t bytes, bool last) {
        if (per_cycle_ != 0) credit_ -= 8000 * (static_cast<int64_t>(bytes) + (last ? kFrameOverhead : 0));
    }

  private:
    int64_t per_cycle_;
    int64_t burst_;
    int64_t credit_ = 0;
};

// Frames on their way into the device.
template <size_t Bytes>
class FrameSource {
  public:
    static constexpr size_t kQueue = 1024;

    explicit FrameSource(LineRate rate) : rate_(rate) {}

    bool full() const { return frames_.size() >= kQueue; }
    bool empty() const { return frames_.empty(); }
    void push(const uint8_t *frame, size_t length) { frames_.emplace_back(frame, frame + length); }

    bool valid() const { return valid_; }
    bool last() const { return offset_ + Bytes >= frames_.front().size(); }
    size_t size() const { return last() ? frames_.front().size() - offset_ : Bytes; }
    void copy(uint8_t *to) const {
        std::memset(to + size(), 0, Bytes - size());
        std::memcpy(to, frames_.front().data() + offset_, size());
    }

    // The beat that was offered is gone, taken or not.
    void taken(uint64_t cycle) {
        if (offset_ == 0) first_beat_ = cycle;
        rate_.spend(size(), last());
        valid_ = false;
        if (last()) {
            stamps.push_back({first_beat_, cycle});
            frames_.pop_front();
            offset_ = 0;
        } else {
            offset_ += Bytes;
        }
    }

    void tick() {
        rate_.tick();
        valid_ = valid_ || (!frames_.empty() && rate_.open());
    }
    void skip(uint64_t cycles) { rate_.tick(cycles); }

    std::deque<nacelle_sim_stamp> stamps;

  private:
    LineRate rate_;
    std::deque<std::vector<uint8_t>> frames_;
    size_t offset_ = 0;
    uint64_t first_beat_ = 0;
    bool valid_ = false;
};

struct SentFrame {
    std::vector<uint8_t> bytes;
    nacelle_sim_stamp stamp;
};

// Frames that come out of the device.
template <size_t Bytes>
class FrameSink {
  public:
    explicit FrameSink(LineRate rate) : rate_(rate) {}

    bool ready() const { return rate_.open(); }
    bool in_frame() const { return !partial_.empty(); }

    // A beat; `bad` with the last one: the MAC sends a wrong FCS, so the frame arrives nowhere.
    void take(const uint8_t *data, size_t size, bool last, bool bad, uint64_t cycle) {
        if (partial_.empty()) first_beat_ = cycle;
        partial_.insert(partial_.end(), data, data + size);
        rate_.spend(size, last);
        if (last) {
            if (!bad) sent.push_back({std::move(partial_), {first_beat_, cycle}});
            partial_.clear();
        }
    }
    void tick() { rate_.tick(); }
    void skip(uint64_t cycles) { rate_.tick(cycles); }

    std::deque<SentFrame> sent;

  private:
    LineRate rate_;
    std::vector<uint8_t> partial_;
    uint64_t first_beat_ = 0;
};

}  // namespace nacelle
