// SPDX-License-Identifier: Apache-2.0
//
// TLPs at the pins of the PCIe plane (docs/reference/pcie-plane.md): headers as nacelle_sim_top.sv packs them into words, and beats of payload.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "tlp.h"

namespace nacelle {

constexpr size_t kHeaderWords = 3;

inline void pack(const Tlp &tlp, uint64_t *words) {
    const auto at = [](uint64_t value, int low) { return value << low; };
    words[0] = tlp.address;
    words[1] = at(tlp.kind, 0) | at(tlp.bar, 3) | at(tlp.func, 6) | at(tlp.last_be, 14) | at(tlp.first_be, 18) | at(tlp.dwords, 22)
        | at(tlp.tc, 33) | at(tlp.attr, 36) | at(tlp.poisoned, 39) | at(tlp.lower_address, 40) | at(tlp.status, 47);
    words[2] = at(tlp.requester, 0) | at(tlp.completer, 16) | at(tlp.tag, 32) | at(tlp.byte_count, 42);
}

inline Tlp unpack(const uint64_t *words) {
    const auto field = [&](int word, int low, int width) { return words[word] >> low & ((uint64_t(1) << width) - 1); };
    Tlp tlp;
    tlp.address = words[0];
    tlp.kind = uint8_t(field(1, 0, 3));
    tlp.bar = uint8_t(field(1, 3, 3));
    tlp.func = uint8_t(field(1, 6, 8));
    tlp.last_be = uint8_t(field(1, 14, 4));
    tlp.first_be = uint8_t(field(1, 18, 4));
    tlp.dwords = uint32_t(field(1, 22, 11));
    tlp.tc = uint8_t(field(1, 33, 3));
    tlp.attr = uint8_t(field(1, 36, 3));
    tlp.poisoned = field(1, 39, 1);
    tlp.lower_address = uint8_t(field(1, 40, 7));
    tlp.status = uint8_t(field(1, 47, 3));
    tlp.requester = uint16_t(field(2, 0, 16));
    tlp.completer = uint16_t(field(2, 16, 16));
    tlp.tag = uint16_t(field(2, 32, 10));
    tlp.byte_count = uint32_t(field(2, 42, 13));
    return tlp;
}

// TLPs on their way into the device: headers and payloads each in their order, taken when the device likes.
template <size_t Bytes>
class TlpSource {
  public:
    static constexpr size_t kHeld = 4;  // so many are here; the others wait in the slot

    void push(const Tlp &tlp) {
        has_data_.push_back(tlp.has_data());
        if (tlp.has_data()) payloads_.push_back(tlp.data);
        headers_.push_back(tlp);
    }
    size_t held() const { return has_data_.size(); }
    bool room() const { return held() < kHeld; }
    bool empty() const { return has_data_.empty(); }
    // The oldest one has been taken, all of it.
    bool done() {
        if (has_data_.empty() || headers_taken_ == 0 || (has_data_.front() && payloads_taken_ == 0)) return false;
        --headers_taken_;
        payloads_taken_ -= has_data_.front();
        has_data_.pop_front();
        return true;
    }

    bool header_valid() const { return !headers_.empty(); }
    const Tlp &header() const { return headers_.front(); }
    void header_taken() {
        headers_.pop_front();
        ++headers_taken_;
    }

    bool valid() const { return !payloads_.empty(); }
    bool last() const { return offset_ + Bytes >= payloads_.front().size(); }
    size_t size() const { return last() ? payloads_.front().size() - offset_ : Bytes; }
    void copy(uint8_t *to) const {
        std::memset(to + size(), 0, Bytes - size());
        std::memcpy(to, payloads_.front().data() + offset_, size());
    }
    void taken() {
        if (!last()) {
            offset_ += Bytes;
            return;
        }
        offset_ = 0;
        payloads_.pop_front();
        ++payloads_taken_;
    }

  private:
    std::deque<bool> has_data_;  // of each one that is not taken
    std::deque<Tlp> headers_;
    std::deque<std::vector<uint8_t>> payloads_;
    size_t headers_taken_ = 0, payloads_taken_ = 0, offset_ = 0;
};

// TLPs that come out of the device: complete when header and payload have come.
class TlpSink {
  public:
    void header(const uint64_t *words) { headers_.push_back(unpack(words)); }
    void beat(const uint8_t *data, size_t size, bool last) {
        partial_.insert(partial_.end(), data, data + size);
        if (!last) return;
        payloads_.push_back(std::move(partial_));
        partial_.clear();
    }
    bool complete() const { return !headers_.empty() && (!headers_.front().has_data() || !payloads_.empty()); }
    Tlp take() {
        Tlp tlp = std::move(headers_.front());
        headers_.pop_front();
        if (tlp.has_data()) {
            tlp.data = std::move(payloads_.front());
            payloads_.pop_front();
        }
        return tlp;
    }
    bool empty() const { return headers_.empty() && payloads_.empty() && partial_.empty(); }

  private:
    std::deque<Tlp> headers_;
    std::deque<std::vector<uint8_t>> payloads_;
    std::vector<uint8_t> partial_;
};

}  // namespace nacelle
