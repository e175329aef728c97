// SPDX-License-Identifier: Apache-2.0
//
// What the sensors of the simulated board give (docs/reference/sensors.md): of each, what the description of the device says for an idle and for
// a busy one, and between them by the part of its sockets that have had a call lately. Temperatures follow slowly.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace nacelle {

// What a sensor gives when no socket has a call, and when all have one, in thousandths of its unit.
struct SensorRange {
    uint32_t number;  // of the sensor
    bool slow;
    int32_t idle, busy;
};

class SensorModel {
  public:
    static constexpr uint64_t kPeriod = 1 << 15;                     // cycles between two values of a sensor, at least
    static constexpr double kSeconds = 100e-6, kSlowSeconds = 10e-3; // in which a value follows by 63 percent

    SensorModel(std::vector<SensorRange> sensors, uint32_t sockets, uint32_t clock_hz)
        : sensors_(std::move(sensors)), sockets_(sockets), clock_hz_(clock_hz), left_(sensors_.size()) {
        give();
    }

    // Cycles have passed up to `now`, in each of which so many sockets had a call.
    void tick(uint64_t now, uint32_t busy) {
        busy_cycles_ += busy * (now - now_);
        now_ = now;
        const uint64_t cycles = now - begin_;
        if (cycles < kPeriod) return;
        const double load = double(busy_cycles_) / (double(cycles) * sockets_), seconds = double(cycles) / clock_hz_;
        load_ += (load - load_) * -std::expm1(-seconds / kSeconds);
        slow_load_ += (load - slow_load_) * -std::expm1(-seconds / kSlowSeconds);
        busy_cycles_ = 0;
        begin_ = now;
        const bool waits = valid();
        left_ = sensors_.size();
        if (!waits) give();
    }

    // The value stays until it is taken.
    bool valid() const { return left_ != 0; }
    uint32_t number() const { return number_; }
    int32_t value() const { return value_; }
    void taken() {
        --left_;
        give();
    }

  private:
    // Takes the next sensor's value, if there is one to be given.
    void give() {
        if (!left_) return;
        const SensorRange &of = sensors_[next_];
        next_ = (next_ + 1) % sensors_.size();
        number_ = of.number;
        value_ = of.idle + int32_t(std::lround(double(int64_t(of.busy) - of.idle) * (of.slow ? slow_load_ : load_)));
    }

    std::vector<SensorRange> sensors_;
    uint32_t sockets_, clock_hz_;
    uint64_t now_ = 0, begin_ = 0;  // of the last tick, and of the time over which the load is taken
    uint64_t busy_cycles_ = 0;      // of all sockets since then
    double load_ = 0, slow_load_ = 0;
    size_t next_ = 0, left_;  // values that are to be given, in turn
    uint32_t number_ = 0;
    int32_t value_ = 0;
};

}  // namespace nacelle
