// SPDX-License-Identifier: Apache-2.0
//
// The memory of the host as a function of a device in a slot sees it: ranges of IO virtual addresses that the program has given it, and the TLB
// of an IOMMU before those of all functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <unordered_map>

#include "nacelle_sim.h"
#include "tlp.h"

namespace nacelle {

struct HostRange {
    uint64_t base, size;
    uint8_t *memory;   // null: the program is asked, by messages
    uint32_t access;   // NACELLE_SIM_HOST_READ, NACELLE_SIM_HOST_WRITE
    uint32_t under_way = 0;  // messages without an answer
    bool leaving = false;
};

// Ranges begin and end at pages, so no TLP lies in two.
class HostMemory {
  public:
    // False: not whole pages, beyond the address space, or over another range.
    bool map(uint64_t base, uint64_t size, void *memory, uint32_t access) {
        if (size == 0 || base % kPage || size % kPage || base + (size - 1) < base) return false;
        const auto next = ranges_.upper_bound(base + (size - 1));
        if (next != ranges_.begin()) {
            const HostRange &before = std::prev(next)->second;
            if (before.base + (before.size - 1) >= base) return false;
        }
        ranges_.emplace(base, HostRange{base, size, static_cast<uint8_t *>(memory), access});
        return true;
    }
    // Nothing begins in the range any more. 0: it is gone, 1: messages wait for their answers, -1: there is none.
    int unmap(uint64_t base, uint64_t size) {
        const auto found = ranges_.find(base);
        if (found == ranges_.end() || found->second.size != size) return -1;
        found->second.leaving = true;
        if (found->second.under_way) return 1;
        ranges_.erase(found);
        return 0;
    }
    // The range that has these bytes, with this access permitted.
    HostRange *find(uint64_t address, uint64_t length, uint32_t access) {
        auto next = ranges_.upper_bound(address);
        if (next == ranges_.begin()) return nullptr;
        HostRange &range = std::prev(next)->second;
        const uint64_t offset = address - range.base;
        const bool inside = offset < range.size && length <= range.size - offset;
        return inside && !range.leaving && (range.access & access) == access ? &range : nullptr;
    }

  private:
    std::map<uint64_t, HostRange> ranges_;
};

// Pages of which the IOMMU knows the translation, each of one function: the last ones used.
class IoTlb {
  public:
    explicit IoTlb(uint32_t entries) : entries_(entries) {}

    // True: it has to walk the page table.
    bool misses(uint32_t function, uint64_t address) {
        if (entries_ == 0) return false;
        const uint64_t page = address / kPage << 1 | function;
        const auto found = where_.find(page);
        if (found != where_.end()) {
            order_.splice(order_.begin(), order_, found->second);
            return false;
        }
        if (where_.size() == entries_) {
            where_.erase(order_.back());
            order_.pop_back();
        }
        order_.push_front(page);
        where_[page] = order_.begin();
        return true;
    }
    void forget() {
        order_.clear();
        where_.clear();
    }

  private:
    uint32_t entries_;
    std::list<uint64_t> order_;
    std::unordered_map<uint64_t, std::list<uint64_t>::iterator> where_;
};

}  // namespace nacelle
