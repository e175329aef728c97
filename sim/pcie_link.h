// SPDX-License-Identifier: Apache-2.0
//
// A PCI Express link as the transaction layer sees it: how fast TLPs pass one direction of it, and the credits of a receiver.
//
// The rate is that of pcie-bench (Neugebauer et al., SIGCOMM 2018, doi 10.1145/3230543.3230560): of the raw rate the data link layer takes an
// acknowledgement and an update of flow control in each interval of the Base Specification (3.0, tables 3-7 to 3-9), and SKP ordered sets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nacelle_sim.h"
#include "tlp.h"

namespace nacelle {

// Gb/s that are left for TLPs. Generations 1 to 5, 1 to 16 lanes.
inline double tlp_gbps(uint32_t generation, uint32_t lanes, uint32_t mps) {
    constexpr double kGigatransfers[] = {2.5, 5, 8, 16, 32};
    const double raw = kGigatransfers[generation - 1] * lanes * (generation < 3 ? 8.0 / 10 : 128.0 / 130);
    // Symbol times between acknowledgements: a share of the largest TLP, and the internal delay of a receiver.
    const double share = mps <= 256 ? (lanes < 8 ? 1.4 : lanes == 8 ? 2.5 : 3.0) : (lanes <= 8 ? 1.0 : 2.0);
    const int delay = generation == 1 ? 19 : generation == 2 ? 70 : 115;
    const double interval = int((mps + 28) * share / lanes + delay);
    return raw * (1 - 8 / interval - 8 / interval - 4.0 / 1538);
}

// One direction.
class PcieLink {
  public:
    PcieLink(double gbps, int64_t latency_ps) : ps_per_byte_(8000 / gbps), latency_(latency_ps) {}

    int64_t serial(uint32_t bytes) const { return int64_t(bytes * ps_per_byte_ + 0.5); }

    // A TLP of so many bytes that is there at `now`: when it is at the other end.
    int64_t send(uint32_t bytes, int64_t now) {
        free_at_ = std::max(free_at_, now) + serial(bytes);
        return free_at_ + latency_;
    }
    // So long does what was sent still take to leave.
    int64_t backlog(int64_t now) const { return std::max<int64_t>(0, free_at_ - now); }

  private:
    double ps_per_byte_;
    int64_t latency_;
    int64_t free_at_ = 0;
};

// Credits of one class that a receiver grants, and those that the sender has used, each since the beginning. A limit of UINT32_MAX: endless.
class Credits {
  public:
    Credits(uint32_t headers, uint32_t data)
        : headers_endless(headers == UINT32_MAX), data_endless(data == UINT32_MAX), headers(headers), data(data) {}

    // False: the sender had none.
    bool use(const Tlp &tlp) {
        ++used_headers_;
        used_data_ += tlp.data_credits();
        return (headers_endless || used_headers_ <= headers) && (data_endless || used_data_ <= data);
    }
    void give_back(const Tlp &tlp) {
        ++headers;
        data += tlp.data_credits();
    }
    // Too few for a TLP with so many bytes.
    bool none(uint32_t bytes) const {
        return (!headers_endless && used_headers_ >= headers) || (!data_endless && used_data_ + bytes / 16 > data);
    }

    const bool headers_endless, data_endless;
    uint64_t headers, data;

  private:
    uint64_t used_headers_ = 0, used_data_ = 0;
};

}  // namespace nacelle
