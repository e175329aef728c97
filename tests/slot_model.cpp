// SPDX-License-Identifier: Apache-2.0
//
// The model of a slot (sim/slot.h) by itself, with a device of a few lines in it: rates, latencies, order, data, errors, and every rule that it
// watches. Argument: a seed.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "slot.h"

namespace {

using namespace nacelle;

constexpr int64_t kCyclePs = 4000;
constexpr uint64_t kBase = 0x12'3456'7000'0000, kSize = 1 << 20;
int failures = 0;
uint64_t seed = 1;

void expect(bool good, const char *what, long long got, long long wanted) {
    if (good) return;
    std::printf("%s: %lld, not %lld\n", what, got, wanted);
    ++failures;
}
void same(long long got, long long wanted, const char *what) { expect(got == wanted, what, got, wanted); }

// A device that answers what it is asked from its one BAR, at once or later, and sends what the test says.
struct Device {
    explicit Device(const nacelle_sim_slot &wanted = {}, uint32_t id = 0x100) : slot(kCyclePs, {1 << 16}, {1 << 13}), memory(kSize), bar(1 << 16) {
        nacelle_sim_slot settings = wanted;
        settings.random_seed = seed;
        std::string error;
        if (!slot.set(settings, &error)) {
            std::printf("%s\n", error.c_str());
            std::exit(2);
        }
        space = slot.space(0);
        space.id = id;
        space.bus_master = space.memory_space = 1;
        slot.set_space(0, space, 0);
        slot.set_bar(0, 0, 0x8000'0000ull << 8 | uint64_t(id) << 20);
        for (uint8_t &byte : memory) byte = uint8_t(random());
        slot.root().memory[0].map(kBase, kSize, memory.data(), NACELLE_SIM_HOST_READ | NACELLE_SIM_HOST_WRITE);
        cycle = kStart;
        slot.tick(cycle, false);
    }

    // One cycle: what the slot offers is taken.
    void step() {
        if (!deaf && slot.offered()) {
            const Tlp tlp = *slot.offered();
            slot.taken(cycle);
            take(tlp);
        }
        slot.tick(++cycle, quiet);
    }
    void steps(uint64_t count) {
        while (count--) step();
    }

    void take(const Tlp &tlp) {
        if (tlp.is_completion()) {
            came.push_back({cycle, tlp});
            return;
        }
        const uint64_t at = tlp.address & (bar.size() - 1);
        if (tlp.kind == kMemWrite) {
            for (uint32_t i = 0; i < tlp.dwords * 4; ++i)
                if (tlp.enabled(i)) bar[at + i] = tlp.data[i];
            written_at = cycle;
            return;
        }
        Tlp answer = answer_to(tlp);
        if (!mute) slot.take(answer, cycle);
    }
    Tlp answer_to(const Tlp &tlp) {
        Tlp answer;
        answer.kind = kCompletionData;
        answer.completer = uint16_t(slot.space(tlp.func).id);
        answer.requester = tlp.requester;
        answer.tag = tlp.tag;
        answer.byte_count = tlp.enabled_bytes();
        answer.lower_address = tlp.first_byte() & 0x7f;
        answer.dwords = tlp.dwords;
        const uint64_t at = tlp.address & (bar.size() - 1);
        answer.data.assign(bar.begin() + std::ptrdiff_t(at), bar.begin() + std::ptrdiff_t(at + tlp.dwords * 4));
        return answer;
    }

    Tlp read(uint64_t address, uint32_t length, uint16_t tag) const {
        Tlp tlp = memory_request(kMemRead, address, length);
        tlp.requester = uint16_t(space.id);
        tlp.tag = tag;
        return tlp;
    }
    Tlp write(uint64_t address, const std::vector<uint8_t> &data) const {
        Tlp tlp = memory_write(address, data.data(), uint32_t(data.size()));
        tlp.requester = uint16_t(space.id);
        return tlp;
    }
    void send(const Tlp &tlp) { slot.take(tlp, cycle); }

    // Until all that was asked has come.
    std::vector<Tlp> answers(uint16_t tag, uint64_t cycles = 10'000) {
        for (; cycles; --cycles) {
            std::vector<Tlp> mine;
            for (const auto &[when, tlp] : came)
                if (tlp.tag == tag) mine.push_back(tlp);
            if (!mine.empty() && (mine.back().status || mine.back().dwords * 4 - (mine.back().lower_address & 3u) >= mine.back().byte_count))
                return mine;
            step();
        }
        return {};
    }
    nacelle_sim_slot_answer host_answer(uint64_t cycles = 100'000) {
        nacelle_sim_slot_answer answer{};
        answer.status = 999;
        for (; cycles && !slot.host().pull(0, &answer); --cycles) step();
        return answer;
    }
    void clean(const char *what) {
        if (slot.violation() != "") std::printf("%s: %s\n", what, slot.violation().c_str());
        same((long long)slot.stats().violations, 0, what);
    }

    static constexpr uint64_t kStart = 1000;
    Slot slot;
    nacelle_sim_slot_space space{};
    std::vector<uint8_t> memory, bar;
    std::mt19937 random{uint32_t(seed)};
    uint64_t cycle = 0, written_at = 0;
    bool deaf = false, mute = false, quiet = false;
    std::vector<std::pair<uint64_t, Tlp>> came;
};

std::vector<uint8_t> some(std::mt19937 &random, size_t count) {
    std::vector<uint8_t> data(count);
    for (uint8_t &byte : data) byte = uint8_t(random());
    return data;
}

// ---- rates: the formula of pcie-bench, as its table has it ----

double write_gbps(Device &device, uint32_t size) {
    const uint64_t cycles = 20'000;
    uint64_t offset = 0;
    for (uint64_t i = 0; i < cycles; ++i) {
        while (device.slot.ready() && !device.slot.posted().none(size)) {
            device.send(device.write(kBase + offset, std::vector<uint8_t>(size, 1)));
            offset = (offset + size) % kSize;
        }
        device.step();
    }
    return double(device.slot.stats().write_bytes) * 8 / double(cycles) / kCyclePs * 1000;
}

double read_gbps(Device &device, uint32_t size) {
    const uint64_t cycles = 20'000;
    std::vector<uint16_t> free;
    for (uint16_t tag = 0; tag < device.slot.is.tags; ++tag) free.push_back(tag);
    uint64_t bytes = 0, offset = 0;
    for (uint64_t i = 0; i < cycles; ++i) {
        while (!free.empty() && device.slot.ready()) {
            device.send(device.read(kBase + offset, size, free.back()));
            free.pop_back();
            offset = (offset + size) % kSize;
        }
        device.step();
        for (const auto &[when, tlp] : device.came) {
            bytes += tlp.data.size();
            if (tlp.data.size() == tlp.byte_count) free.push_back(tlp.tag);
        }
        device.came.clear();
    }
    return double(bytes) * 8 / double(cycles) / kCyclePs * 1000;
}

void rates() {
    struct Row {
        uint32_t generation, lanes, mps;
        double tlp, write, read;  // Gb/s: writes of MPS, reads of 512
    };
    const Row rows[] = {{3, 8, 256, 57.9, 52.9, 53.7},
                        {3, 16, 256, 113.7, 104.0, 105.5},
                        {4, 16, 256, 227.4, 207.9, 210.9},
                        {4, 16, 512, 229.2, 219.0, 220.6},
                        {5, 16, 256, 454.8, 415.8, 421.8}};
    for (const Row &row : rows) {
        nacelle_sim_slot settings{};
        settings.generation = row.generation, settings.lanes = row.lanes, settings.mps = row.mps, settings.tags = 256;
        settings.non_posted_headers = 256;
        const auto near = [&](double got, double wanted, const char *what) {
            expect(std::fabs(got / wanted - 1) < 0.01, what, (long long)(got * 10), (long long)(wanted * 10));
        };
        near(tlp_gbps(row.generation, row.lanes, row.mps), row.tlp, "rate for TLPs, Mb/s * 10");
        Device writer(settings), reader(settings);
        near(write_gbps(writer, row.mps), row.write, "writes");
        near(read_gbps(reader, 512), row.read, "reads");
        writer.clean("writes"), reader.clean("reads");
    }
    // The defaults, as docs/reference/slot-model.md quotes them in GB/s.
    Device writer, reader;
    const double write = write_gbps(writer, 256) / 8, read = read_gbps(reader, 512) / 8;
    expect(std::fabs(write / 12.99 - 1) < 0.01, "MB/s written", (long long)(write * 1000), 12990);
    expect(std::fabs(read / 13.18 - 1) < 0.01, "MB/s read", (long long)(read * 1000), 13180);
    std::printf("writes %.2f GB/s, reads %.2f GB/s\n", write, read);
}

// ---- latencies: exact ----

void latencies() {
    Device device;
    const std::vector<uint8_t> data = some(device.random, 64);
    const uint64_t begin = device.cycle;
    device.send(device.write(kBase + 4096, data));
    while (std::memcmp(&device.memory[4096], data.data(), 64) && device.cycle < begin + 1000) device.step();
    same((long long)(device.cycle - begin), 43, "cycles of a write of 64 bytes");

    device.steps(100);
    const uint64_t asked = device.cycle;
    device.send(device.read(kBase, 64, 3));
    device.answers(3);
    same((long long)(device.came.back().first - asked), 155, "cycles of a read of 64 bytes");

    device.steps(100);
    const uint64_t posted = device.cycle;
    device.slot.write(0, 0, 8, data.data(), 4);
    const nacelle_sim_slot_answer written = device.host_answer();
    same((long long)(device.written_at - posted), 110, "cycles of a register write");
    same((long long)(written.finished - written.issued), 110, "and as the host sees it");

    device.steps(100);
    device.slot.read(0, 0, 8, 4);
    const nacelle_sim_slot_answer answer = device.host_answer();
    same((long long)(answer.finished - answer.issued), 225, "cycles of a register read");
    same(std::memcmp(answer.data, data.data(), 4), 0, "its value");
    device.clean("latencies");
}

// ---- data, with completions in every form ----

void traffic(uint32_t split, uint32_t jitter, uint32_t reorder, uint32_t rcb, uint32_t mps) {
    nacelle_sim_slot settings{};
    settings.split = split, settings.jitter_ns = jitter, settings.reorder = reorder, settings.rcb = rcb, settings.mps = mps;
    settings.mrrs = 1024;
    settings.credit_stall_ns = jitter * 4, settings.credit_stall_every_ns = 2000;
    Device device(settings);
    struct Read {
        uint64_t address;
        uint32_t left;
    };
    std::map<uint16_t, Read> reads;
    std::vector<uint16_t> order;
    std::vector<uint8_t> copy = device.memory;
    size_t done = 0, passed = 0, largest = 0, interleaved = 0;
    uint16_t last_tag = 0;
    for (int i = 0; i < 60'000; ++i) {
        if (i < 50'000 && device.slot.ready()) {
            const uint16_t tag = device.random() % 64;
            const uint32_t length = 1 + device.random() % (device.random() % 2 ? 1000 : 8);
            const uint64_t offset = device.random() % (kSize - kPage);
            if (offset % 4096 + length <= 4096) {
                if (device.random() % 2) {  // the upper half is read, the lower one written
                    const uint64_t address = kSize / 2 + offset / 2;
                    if (!reads.count(tag) && address % 4096 + length <= 4096 && !device.slot.non_posted().none(0)) {
                        device.send(device.read(kBase + address, length, tag));
                        reads[tag] = {address, length};
                        order.push_back(tag);
                    }
                } else if (offset < kSize / 2 && length <= mps - 4 && !device.slot.posted().none(mps)) {
                    const std::vector<uint8_t> data = some(device.random, length);
                    device.send(device.write(kBase + offset, data));
                    std::memcpy(&copy[offset], data.data(), length);
                }
            }
        }
        device.step();
        for (const auto &[when, tlp] : device.came) {
            const auto found = reads.find(tlp.tag);
            if (found == reads.end()) {
                expect(false, "a completion for nothing", tlp.tag, 0);
                continue;
            }
            Read &read = found->second;
            const uint32_t before = read.address & 3, have = std::min<uint32_t>(read.left, tlp.dwords * 4 - before);
            expect(tlp.byte_count == read.left && tlp.lower_address == (read.address & 0x7f), "byte count", tlp.byte_count, read.left);
            expect(tlp.data.size() <= mps, "completion", (long long)tlp.data.size(), mps);
            expect(have == read.left || (read.address + have) % rcb == 0, "ends", (long long)(read.address + have), 0);
            if (split == 1) expect(read.address / rcb == (read.address + have - 1) / rcb, "RCB crossed", (long long)read.address, have);
            if (read.address >= kSize / 2 + kPage)
                same(std::memcmp(&tlp.data[before], &device.memory[read.address], have), 0, "data");
            largest = std::max(largest, tlp.data.size());
            if (tlp.tag != last_tag && reads.count(last_tag) && last_tag != order.front()) ++interleaved;
            last_tag = tlp.tag;
            read.address += have;
            read.left -= have;
            if (read.left) continue;
            reads.erase(found);
            passed += order.front() != tlp.tag;
            order.erase(std::find(order.begin(), order.end(), tlp.tag));
            ++done;
        }
        device.came.clear();
    }
    same((long long)reads.size(), 0, "reads that are not answered");
    expect(done > 500, "reads done", (long long)done, 500);
    expect(reorder ? passed > 100 : passed == 0, "reads that passed others", (long long)passed, reorder);
    expect(split == 1 ? largest <= rcb : largest > rcb, "largest completion", (long long)largest, rcb);
    if (reorder && jitter && split) expect(interleaved > 100, "interleaved", (long long)interleaved, 100);
    same(std::memcmp(copy.data(), device.memory.data(), kSize / 2 + kPage), 0, "memory written");
    expect(device.slot.idle(), "is idle", 0, 1);
    device.clean("traffic");
}

// ---- order ----

void order() {
    Device device;
    const std::vector<uint8_t> data = some(device.random, 64);
    device.send(device.write(kBase + 128, data));
    device.send(device.read(kBase + 128, 64, 1));
    const std::vector<Tlp> got = device.answers(1);
    same(got.size() == 1 && got[0].data == data, 1, "a read behind a write has its data");

    // An interrupt behind the data, and behind data that goes by message.
    const uint64_t far = kBase + kSize;
    device.slot.root().memory[0].map(far, kPage, nullptr, NACELLE_SIM_HOST_WRITE | NACELLE_SIM_HOST_READ);
    const std::vector<uint8_t> more = some(device.random, 200), vector{5, 0, 0, 0};
    device.send(device.write(far + 3, more));
    device.send(device.write(kInterrupts, vector));
    device.steps(200);
    nacelle_sim_slot_interrupt interrupt{};
    nacelle_sim_slot_message message{};
    same(device.slot.root().pull(0, &interrupt), false, "an interrupt before the message was answered");
    same(device.slot.something_waits(), true, "a message waits");
    same(device.slot.root().pull(0, &message), true, "the message");
    expect(message.write && message.address == far + 3 && message.length == 200, "message", message.length, 200);
    same(std::memcmp(message.data, more.data(), 200), 0, "its data");
    same(device.slot.root().pull(0, &interrupt), false, "an interrupt before the answer");
    same(device.slot.root().unmap(0, far, kPage), 1, "a message is under way");
    same(device.slot.answer(message.token, nullptr), true, "answer");
    same(device.slot.answer(message.token, nullptr), false, "answered twice");
    same(device.slot.root().pull(0, &interrupt), true, "the interrupt");
    same(interrupt.data, 5, "vector");
    same((long long)interrupt.address, (long long)kInterrupts, "address");
    same(device.slot.root().unmap(0, far, kPage), 0, "and none is");

    // A read by message.
    device.slot.root().memory[0].map(far, kPage, nullptr, NACELLE_SIM_HOST_READ);
    for (const bool can : {true, false}) {
        device.came.clear();
        device.send(device.read(far + 1, 300, 2));
        device.steps(300);
        same((long long)device.came.size(), 0, "no completion before the answer");
        same(device.slot.root().pull(0, &message), true, "the message");
        expect(!message.write && message.address == far + 1 && message.length == 300, "message", message.length, 300);
        const std::vector<uint8_t> answer = some(device.random, 300);
        device.slot.answer(message.token, can ? answer.data() : nullptr);
        const std::vector<Tlp> parts = device.answers(2);
        if (can) {
            std::vector<uint8_t> bytes;
            for (const Tlp &part : parts) bytes.insert(bytes.end(), part.data.begin() + (part.lower_address & 3), part.data.end());
            bytes.resize(300);
            same(bytes == answer, true, "data of a message");
        } else {
            same(parts.at(0).status, kAbort, "a message without data");
        }
    }
    device.clean("order");
}

// Writes that the program has not done yet keep their credits: a device cannot send more than those, however slow the program is.
void credits_of_messages() {
    Device device;
    const uint64_t far = kBase + kSize;
    device.slot.root().memory[0].map(far, kPage, nullptr, NACELLE_SIM_HOST_WRITE);
    const auto granted = [&] {
        device.steps(300);
        return (long long)(device.slot.posted().headers + (device.slot.posted().data << 16));
    };
    const long long before = granted(), one = 1 + (4ll << 16), small = 1 + (1ll << 16);
    device.send(device.write(kBase, some(device.random, 64)));
    same(granted(), before + one, "credits of a write in place");
    Tlp holes = device.write(far, some(device.random, 8));
    holes.first_be = 0b0101;
    device.send(holes);
    device.send(device.write(far + 64, some(device.random, 64)));
    device.send(device.write(far + kPage, some(device.random, 64)));
    same(granted(), before + 2 * one, "credits of writes by message, and of one to nowhere");
    std::vector<nacelle_sim_slot_message> messages(4);
    for (auto &message : messages) same(device.slot.root().pull(0, &message), true, "a message");
    same((long long)messages[2].address, (long long)far + 4, "the third run begins behind the second hole");
    for (const int number : {3, 0, 2}) device.slot.answer(messages[number].token, nullptr);
    same(granted(), before + 3 * one, "credits of the write that is done");
    device.slot.answer(messages[1].token, nullptr);
    same(granted(), before + 3 * one + small, "and of that with holes, when all of it is");
    device.clean("credits of messages");

    // What waits for a credit when bus mastering goes may still come, and nothing behind it; another change does not end that time.
    nacelle_sim_slot few{};
    few.posted_headers = 1;
    Device late(few);
    late.slot.root().memory[0].map(far, kPage, nullptr, NACELLE_SIM_HOST_WRITE);
    late.send(late.write(far, some(late.random, 64)));
    late.steps(300);
    for (const uint32_t memory_space : {1u, 0u, 1u}) {
        late.space.bus_master = 0;
        late.space.memory_space = memory_space;
        late.slot.set_space(0, late.space, late.cycle);
        late.steps(10);
    }
    late.steps(300);
    same(late.slot.root().pull(0, &messages[0]), true, "the message");
    late.slot.answer(messages[0].token, nullptr);
    late.steps(60);
    late.send(late.write(kBase, some(late.random, 64)));
    late.clean("late, with the credit that it had waited for");
    late.steps(300);
    late.send(late.write(kBase, some(late.random, 64)));
    same((long long)late.slot.stats().violations, 1, "and later");

    // So many as it may have begun, one behind the other.
    Device begun;
    begun.space.bus_master = 0;
    begun.slot.set_space(0, begun.space, begun.cycle);
    for (int number = 0; number < 18; ++number) {
        begun.steps(number < 16 ? 60 : 32);
        begun.send(begun.write(kBase, some(begun.random, 64)));
        if (number < 17) begun.clean("begun before the change");
    }
    same((long long)begun.slot.stats().violations, 1, "one too many");
}

// ---- what goes wrong ----

void errors() {
    nacelle_sim_slot settings{};
    settings.iommu_entries = 2;
    Device device(settings);
    device.slot.root().memory[0].map(kBase + kSize, kPage, device.memory.data(), NACELLE_SIM_HOST_READ);
    const auto one = [&](uint64_t address, uint32_t length) {
        device.came.clear();
        const uint64_t begin = device.cycle;
        device.send(device.read(address, length, 0));
        const std::vector<Tlp> got = device.answers(0);
        same((long long)got.size(), 1, "one completion");
        return std::pair(got.at(0), device.came.back().first - begin);
    };
    same(one(kBase, 64).second, 155 + 125, "a page that the IOMMU does not know");
    same(one(kBase + 64, 64).second, 155, "and knows");
    same(one(kBase + kPage, 64).second, 155 + 125, "another one");
    same(one(kBase, 64).second, 155, "the first again");
    same(one(kBase + 2 * kPage, 64).second, 155 + 125, "a third one");
    same(one(kBase + kPage, 64).second, 155 + 125, "has put out the second");
    same((long long)device.slot.stats().tlb_misses, 4, "misses");

    nacelle_sim_slot_fault fault{};
    same(device.slot.root().pull(0, &fault), false, "no fault yet");
    same(one(kBase - 64, 64).first.status, kUnsupported, "below what is mapped");
    same(device.slot.root().pull(0, &fault), true, "a fault");
    same((long long)fault.address, (long long)kBase - 64, "its address");
    same(one(kBase + kSize + kPage, 4).first.status, kUnsupported, "above it");
    device.send(device.write(kBase + kSize, some(device.random, 4)));
    device.steps(300);
    same(device.slot.root().pull(0, &fault) && device.slot.root().pull(0, &fault), true, "a write to what may be read only");
    expect(fault.write && fault.length == 4, "fault", fault.length, 4);
    same(one(kBase + kSize, 4).first.status, kSuccess, "which can be read");
    same(device.slot.root().unmap(0, kBase + kSize, kPage), 0, "taken away");
    same(device.slot.root().unmap(0, kBase + kSize, kPage), -1, "once");
    same(one(kBase + kSize, 4).first.status, kUnsupported, "and cannot be read");
    same(device.slot.root().memory[0].map(kBase + 4096, kPage, nullptr, 3), false, "mapped twice");
    same(device.slot.root().memory[0].map(kBase - kPage, 2 * kPage, nullptr, 3), false, "over the first page");
    same(device.slot.root().memory[0].map(kBase - 2 * kPage, 100, nullptr, 3), false, "no page");
    same(device.slot.root().memory[0].map(~0ull - 4095, 2 * kPage, nullptr, 3), false, "beyond all addresses");
    device.clean("errors");

    settings = {};
    settings.unsupported_ppm = settings.abort_ppm = settings.poison_ppm = settings.loss_ppm = 100'000;
    settings.fault_aborts = 1;
    Device unlucky(settings);
    long long unsupported = 0, aborted = 0, poisoned = 0, lost = 0;
    for (int i = 0; i < 1000; ++i) {
        unlucky.came.clear();
        unlucky.send(unlucky.read(kBase, 64, 1));
        const std::vector<Tlp> got = unlucky.answers(1, 400);
        if (got.empty()) {
            ++lost;
            continue;
        }
        unsupported += got[0].status == kUnsupported;
        aborted += got[0].status == kAbort;
        poisoned += got[0].poisoned;
        if (got[0].status == kSuccess) same(std::memcmp(got[0].data.data(), unlucky.memory.data(), 64) != 0, got[0].poisoned, "wrong data is marked");
    }
    for (const long long count : {unsupported, aborted, poisoned, lost}) expect(count > 50 && count < 150, "reads that went wrong, of 1000", count, 100);
    const nacelle_sim_slot_stats stats = unlucky.slot.stats();
    same((long long)stats.unsupported, unsupported, "counted: UR");
    same((long long)stats.aborted, aborted, "counted: CA");
    same((long long)stats.poisoned, poisoned, "counted: poisoned");
    same((long long)stats.lost, lost, "counted: lost");
    unlucky.clean("chance");
}

// ---- credits ----

void credits() {
    nacelle_sim_slot settings{};
    settings.posted_headers = 2, settings.non_posted_headers = 1;
    Device device(settings);
    same(device.slot.posted().none(0), false, "two credits");
    device.send(device.write(kBase, some(device.random, 4)));
    device.send(device.write(kBase, some(device.random, 4)));
    same(device.slot.posted().none(0), true, "none");
    device.steps(100);
    same(device.slot.posted().none(0), false, "they have come back");
    same((long long)device.slot.posted().headers, 4, "granted since the beginning");
    same((long long)device.slot.posted().data, 1026, "and data");
    device.clean("credits");
    for (int i = 0; i < 3; ++i) device.send(device.write(kBase, some(device.random, 4)));
    same((long long)device.slot.stats().violations, 1, "one too many");

    settings = {};
    settings.credit_stall_ns = 400'000, settings.credit_stall_every_ns = 40'000;
    Device starved(settings);
    uint64_t longest = 0, since = starved.cycle, writes = 0;
    for (int i = 0; i < 2'000'000; ++i) {
        if (!starved.slot.posted().none(4)) {
            starved.send(starved.write(kBase, some(starved.random, 4)));
            longest = std::max(longest, starved.cycle - since);
            since = starved.cycle;
            ++writes;
        }
        starved.step();
    }
    expect(longest > 90'000 && longest < 110'000, "cycles without credits", (long long)longest, 100'000);
    expect(starved.slot.stats().posted_dry_cycles > 500'000, "counted", (long long)starved.slot.stats().posted_dry_cycles, 500'000);
    starved.clean("starved");
}

// ---- the host's accesses, of any length, with a device that answers late or not at all ----

void host() {
    nacelle_sim_slot settings{};
    settings.host_timeout_us = 100;
    Device device(settings);
    std::vector<uint8_t> copy(device.bar.size());
    for (int i = 0; i < 2000; ++i) {
        const uint32_t length = 1 + device.random() % (device.random() % 4 ? 64 : 4096);
        const uint64_t offset = device.random() % (device.bar.size() - length);
        const std::vector<uint8_t> data = some(device.random, length);
        std::memcpy(&copy[offset], data.data(), length);
        device.slot.write(0, 0, offset, data.data(), length);
        const uint32_t back = 1 + device.random() % std::min<uint32_t>(length, 64);
        const uint64_t at = offset + device.random() % (length - back + 1);
        const bool crosses = at % kPage + back > kPage;
        if (!crosses) device.slot.read(0, 0, at, back);
        same((long long)device.host_answer().status, NACELLE_SIM_SLOT_OK, "a write");
        if (crosses) continue;
        const nacelle_sim_slot_answer answer = device.host_answer();
        expect(answer.status == NACELLE_SIM_SLOT_OK && answer.length == back, "a read", answer.status, 0);
        same(std::memcmp(answer.data, &copy[at], back), 0, "its data");
    }
    same(copy == device.bar, true, "the BAR's memory");
    for (int i = 0; i < 100; ++i) device.slot.read(0, 0, 4 * uint64_t(i), 4);  // more than there are tags
    for (int i = 0; i < 100; ++i) {
        const nacelle_sim_slot_answer answer = device.host_answer();
        same(std::memcmp(answer.data, &copy[4 * size_t(i)], 4), 0, "many reads");
    }
    expect(device.slot.idle(), "is idle", 0, 1);
    device.mute = true;
    device.slot.read(0, 0, 0, 4);
    const nacelle_sim_slot_answer answer = device.host_answer();
    same(answer.status, NACELLE_SIM_SLOT_TIMEOUT, "no answer");
    same((long long)(answer.finished - answer.issued), 25'001, "the time that it waits");
    expect(device.slot.idle(), "is idle, though one is not answered", 0, 1);
    device.mute = false;
    device.slot.read(0, 0, 0, 4);
    same(device.host_answer().status, NACELLE_SIM_SLOT_OK, "the next one");
    device.clean("host");

    device.slot.reset(0);
    device.steps(10);
    same(device.slot.resetting(0), true, "a reset waits for the device");
    device.quiet = true;
    device.steps(1);
    same(device.slot.resetting(0), false, "and is done");
}

// ---- two functions: nothing of one is the other's ----

void functions() {
    Device device;
    nacelle_sim_slot_space card = device.slot.space(1);
    same(card.id, 0x101, "the id of function 1");
    card.id = 0x100;
    same(device.slot.set_space(1, card, device.cycle), false, "the id of the other function");
    card.id = 0x101;
    card.bus_master = card.memory_space = 1;
    same(device.slot.set_space(1, card, device.cycle), true, "its space");
    RootComplex &root = device.slot.root();
    const auto of_card = [](Tlp tlp) {
        tlp.requester = 0x101;
        return tlp;
    };
    const auto read = [&](uint32_t function, uint64_t address, uint16_t tag) {
        device.came.clear();
        const Tlp asked = device.read(address, 64, tag);
        device.send(function ? of_card(asked) : asked);
        const std::vector<Tlp> got = device.answers(tag);
        same(got.size(), 1, "an answer");
        same(got.empty() ? 0 : got[0].requester, 0x100 + function, "to who has asked");
        return got.empty() ? Tlp{} : got[0];
    };

    // The same address is other memory, or none.
    same(read(1, kBase, 1).status, kUnsupported, "memory of function 0");
    nacelle_sim_slot_fault fault{};
    same(root.pull(0, &fault), false, "a fault of the other function");
    same(root.pull(1, &fault), true, "its fault");
    std::vector<uint8_t> memory = some(device.random, kPage);
    same(root.memory[1].map(kBase, kPage, memory.data(), NACELLE_SIM_HOST_READ), true, "its own memory");
    same(read(1, kBase, 1).data == std::vector<uint8_t>(memory.begin(), memory.begin() + 64), 1, "its data");
    same(read(0, kBase, 1).data == std::vector<uint8_t>(device.memory.begin(), device.memory.begin() + 64), 1, "and the other's");
    const std::vector<uint8_t> before = device.memory, kept = memory;
    device.send(of_card(device.write(kBase, some(device.random, 64))));
    device.steps(300);
    same(memory == kept && device.memory == before, 1, "it may only read");
    same(root.pull(1, &fault) && fault.write, 1, "a fault");

    // A tag of each at once, and both at an interrupt; one that waits for its program does not hold up the other.
    device.came.clear();
    device.send(device.read(kBase, 64, 5));
    device.send(of_card(device.read(kBase, 64, 5)));
    device.steps(400);
    same(device.came.size(), 2, "both answered");
    const uint64_t far = kBase + kSize;
    root.memory[1].map(far, kPage, nullptr, NACELLE_SIM_HOST_WRITE);
    device.send(of_card(device.write(far, some(device.random, 64))));
    device.send(of_card(device.write(kInterrupts, {1, 0, 0, 0})));
    device.send(device.write(kInterrupts, {0, 0, 0, 0}));
    device.steps(300);
    nacelle_sim_slot_interrupt interrupt{};
    nacelle_sim_slot_message message{};
    same(root.pull(1, &interrupt), false, "an interrupt before its message was answered");
    same(root.pull(0, &interrupt) && interrupt.data == 0, 1, "that of the other function");
    same(root.pull(0, &message), false, "a message of the other function");
    same(root.pull(1, &message), true, "its message");
    same(device.slot.answer(message.token, nullptr), true, "answered");
    same(root.pull(1, &interrupt) && interrupt.data == 1, 1, "its interrupt");

    // BARs, answers, room for accesses.
    device.slot.read(1, 0, 0, 4);
    device.slot.read(0, 0, 8, 4);
    device.steps(1000);
    nacelle_sim_slot_answer answer{};
    same(device.slot.host().pull(1, &answer), true, "an answer");
    same(std::memcmp(answer.data, device.bar.data(), 4), 0, "its data");
    same(device.slot.host().pull(1, &answer), false, "no other");
    same(device.slot.host().pull(0, &answer), true, "that of the other function");
    same(device.slot.in_bar(1, 0, 1 << 13, 1), false, "beyond its BAR");
    device.deaf = true;
    for (size_t i = 0; i < HostRequests::kQueue; ++i) device.slot.read(1, 0, 0, 4);
    same(device.slot.host().full(1), true, "as many as it may have");
    same(device.slot.host().full(0), false, "and none of the other's");
    device.deaf = false;
    device.steps(100'000);
    for (size_t i = 0; i < HostRequests::kQueue; ++i) same(device.slot.host().pull(1, &answer), true, "all answered");

    // A reset of one: it sends nothing then, the other goes on.
    device.clean("functions");
    device.slot.reset(1);
    device.steps(100);
    same(device.slot.resetting(1) && !device.slot.resetting(0), 1, "one is being reset");
    read(0, kBase, 1);
    device.clean("the other goes on");
    device.send(of_card(device.read(kBase, 64, 1)));
    same((long long)device.slot.stats().violations, 1, "a request in a reset");
}

// ---- two devices ----

void peers() {
    Device a({}, 0x100), b({}, 0x200);
    a.slot.join(&b.slot, 150), b.slot.join(&a.slot, 150);
    const auto both = [&](uint64_t cycles) {
        while (cycles--) a.step(), b.step();
    };
    const uint64_t at_b = 0x8000'0000ull << 8 | 0x200 << 20;
    const std::vector<uint8_t> data = some(a.random, 100);
    const uint64_t begin = a.cycle;
    a.send(a.write(at_b + 10, data));
    both(300);
    same(std::memcmp(&b.bar[10], data.data(), 100), 0, "written by a peer");
    expect(b.written_at - begin > 75 && b.written_at - begin < 85, "its latency", (long long)(b.written_at - begin), 80);
    a.send(a.read(at_b + 10, 100, 7));
    both(400);
    same((long long)a.came.size(), 1, "answered");
    same(a.came.size() == 1 && !std::memcmp(&a.came[0].second.data[2], data.data(), 100), 1, "with its data");
    same((long long)a.slot.stats().peer_tlps, 2, "counted");
    same((long long)a.slot.posted().headers, 65, "credits have come back");
    b.deaf = true;  // the peer takes nothing: its sender gets no credits
    for (int i = 0; i < 64; ++i) a.send(a.write(at_b, some(a.random, 4)));
    both(1000);
    same(a.slot.posted().none(0), true, "no credits");
    b.deaf = false;
    both(1000);
    same(a.slot.posted().none(0), false, "and again");
    a.clean("a"), b.clean("b");
}

// ---- the rules ----

void rules() {
    using Change = void (*)(Device &, Tlp &);
    struct Case {
        const char *text;
        Change change;
        bool reads;
    };
    const Case cases[] = {
        {"exceeds the largest payload", [](Device &d, Tlp &t) { t = d.write(kBase, std::vector<uint8_t>(260)); }, false},
        {"exceeds the largest read request", [](Device &d, Tlp &t) { t = d.read(kBase, 516, 0); }, true},
        {"crosses 4 KiB", [](Device &d, Tlp &t) { t = d.read(kBase + 4092, 8, 0); }, true},
        {"more or less data", [](Device &, Tlp &t) { t.data.resize(8); }, false},
        {"traffic class", [](Device &, Tlp &t) { t.tc = 1; }, false},
        {"no function of the device", [](Device &, Tlp &t) { t.requester = 1; }, false},
        {"byte enables that are not", [](Device &, Tlp &t) { t.last_be = 1; }, false},
        {"byte enables with a gap", [](Device &d, Tlp &t) { t = d.read(kBase, 12, 0), t.first_be = 5; }, true},
        {"tag that is not permitted", [](Device &, Tlp &t) { t.tag = 64; }, true},
        {"tag of a read that is under way", [](Device &d, Tlp &t) { t.tag = 9, d.send(t); }, true},
        {"bus mastering is off", [](Device &, Tlp &t) { t.requester = 0x101; }, true},  // that of the other function
        {"bus mastering is off", [](Device &d, Tlp &) { d.space.bus_master = 0, d.slot.set_space(0, d.space, d.cycle), d.steps(100); }, true},
        {"answers no request", [](Device &d, Tlp &t) { t = d.answer_to(d.read(0, 4, 3)); }, true},
        {"may pass its data", [](Device &d, Tlp &t) { t = d.write(kInterrupts, {1, 2, 3, 4}), t.attr = kRelaxed; }, false},
        {"one dword", [](Device &d, Tlp &t) { t = d.write(kInterrupts, {1, 2, 3}); }, false},
        {"no reason to send", [](Device &, Tlp &t) { t.kind = kOther; }, true},
    };
    for (const Case &rule : cases) {
        Device device;
        Tlp tlp = rule.reads ? device.read(kBase, 4, 1) : device.write(kBase, {1, 2, 3, 4});
        device.clean(rule.text);
        rule.change(device, tlp);
        device.send(tlp);
        same((long long)device.slot.stats().violations, 1, rule.text);
        expect(device.slot.violation().find(rule.text) != std::string::npos, device.slot.violation().c_str(), 0, 1);
        device.steps(500);
    }
    // Completions of a device.
    const Case answers[] = {
        {"another byte count", [](Device &, Tlp &t) { t.byte_count -= 1; }, true},
        {"another lower address", [](Device &, Tlp &t) { t.lower_address ^= 4; }, true},
        {"another completer", [](Device &, Tlp &t) { t.completer = 3; }, true},
        {"another completer", [](Device &, Tlp &t) { t.completer = 0x101; }, true},
        {"more data than", [](Device &, Tlp &t) { t.dwords = 17, t.data.resize(68); }, true},
        {"does not end at a read", [](Device &, Tlp &t) { t.dwords = 8, t.data.resize(32); }, true},
        {"though it has failed", [](Device &, Tlp &t) { t.status = kAbort; }, true},
    };
    for (const Case &rule : answers) {
        Device device;
        device.mute = device.deaf = true;
        device.slot.read(0, 0, 0, 64);
        while (!device.slot.offered()) device.step();
        Tlp tlp = device.answer_to(*device.slot.offered());
        rule.change(device, tlp);
        device.send(tlp);
        same((long long)device.slot.stats().violations, 1, rule.text);
        expect(device.slot.violation().find(rule.text) != std::string::npos, device.slot.violation().c_str(), 0, 1);
        device.steps(500);
    }
    // Slots that there are not.
    Slot slot(kCyclePs, {1 << 16});
    std::string error;
    const auto refused = [&](auto change) {
        nacelle_sim_slot settings{};
        change(settings);
        same(slot.set(settings, &error), false, "a slot that is impossible");
    };
    refused([](auto &s) { s.generation = 6; });
    refused([](auto &s) { s.lanes = 3; });
    refused([](auto &s) { s.mps = 300; });
    refused([](auto &s) { s.rcb = 32; });
    refused([](auto &s) { s.read_ns = 100; });
    refused([](auto &s) { s.host_reads = 65; });
    nacelle_sim_slot_space space = slot.space(0);
    space.mps = 512;
    same(slot.set_space(0, space, 0), false, "a payload that the slot cannot take");
    expect(slot.text().find("Gen3 x16, 113.7 Gb/s") != std::string::npos, slot.text().c_str(), 0, 1);
}

}  // namespace

int main(int count, char **arguments) {
    if (count > 1) seed = std::strtoull(arguments[1], nullptr, 10);
    latencies();
    rates();
    for (const uint32_t rcb : {64u, 128u}) {
        traffic(0, 0, 0, rcb, 256);
        traffic(1, 0, 0, rcb, 128);
        traffic(2, 1000, 0, rcb, 512);
        traffic(2, 1000, 1, rcb, 256);
        traffic(1, 3000, 1, rcb, 256);
    }
    order();
    credits_of_messages();
    errors();
    credits();
    host();
    functions();
    peers();
    rules();
    return failures ? 1 : 0;
}
