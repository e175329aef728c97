// SPDX-License-Identifier: Apache-2.0
//
// What is to happen at which time, in picoseconds of device time. Of the same time in the order in which it was put down.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace nacelle {

class Agenda {
  public:
    using Action = std::function<void(int64_t time)>;

    void at(int64_t time, Action action) { items_.emplace(time, std::move(action)); }

    // Does what is due until `now`, each with the time for which it was put down.
    void run(int64_t now) {
        while (!items_.empty() && items_.begin()->first <= now) {
            auto first = items_.extract(items_.begin());
            first.mapped()(first.key());
        }
    }
    bool empty() const { return items_.empty(); }

  private:
    std::multimap<int64_t, Action> items_;
};

}  // namespace nacelle
