// SPDX-License-Identifier: Apache-2.0
// Everything of nacelle.hpp, once: wrapper ADDRESS.
#include <nacelle.hpp>

#include <poll.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0;

void check_at(int line, const char* what, bool holds) {
  if (!holds) {
    std::printf("line %d: %s does not hold\n", line, what);
    ++failures;
  }
}
#define CHECK(condition) check_at(__LINE__, #condition, (condition))

template <class Act>
nacelle_result thrown(Act act) {
  try {
    act();
  } catch (const nacelle::error& error) {
    CHECK(std::string(error.what()).find(error.hint()) != std::string::npos && !error.hint().empty());
    return error.code();
  }
  return NACELLE_OK;
}

constexpr std::uint32_t increment = 1, matmul = 16, no_function = 99;

void owners(const nacelle::device& device) {
  std::vector<unsigned char> bytes(1000, 1);
  nacelle::call call = device.create(increment, {nacelle::inout(bytes)});
  nacelle::call moved = std::move(call);
  CHECK(thrown([&] { call.invoke(); }) == NACELLE_BAD_HANDLE);
  moved.invoke();
  moved.wait();
  CHECK(bytes.front() == 2 && bytes.back() == 2);
  CHECK(moved.test() && moved.status().state == NACELLE_CALL_DONE && moved.status().bytes_received == bytes.size());
  CHECK(moved.report().find("\"outputs\"") != std::string::npos);
  call = std::move(moved);
  call.close();
  CHECK(thrown([&] { call.close(); }) == NACELLE_BAD_HANDLE);
}

void regions(const nacelle::device& device) {
  const std::vector<std::uint16_t> input(8, 7);
  std::uint32_t output[4] = {9, 9, 9, 9};
  std::string text = "abc";
  std::uint16_t number = 0;
  const nacelle::view<char> part(text.data(), 2);
  const std::vector<nacelle::region> all = {nacelle::input(input), nacelle::output(output), nacelle::inout_once(part), nacelle::inout(nacelle::view(&number, 1)),
                                            nacelle::internal(64)};
  nacelle::call_options options;
  options.deadline_ms = 60000;
  nacelle::call call = device.create(increment, all, &options);
  call.invoke();
  call.wait();
  CHECK(input[0] == 7 && output[0] == 0x01010101 && output[3] == 0x01010101);
  CHECK(text == "bcc" && number == 0x0101);
}

void errors(const nacelle::device& device) {
  std::vector<unsigned char> bytes(8);
  nacelle::call call = device.create(no_function, {nacelle::inout(bytes)});
  std::future<void> ended = call.start();
  CHECK(thrown([&] { ended.get(); }) == NACELLE_UNKNOWN_FUNCTION);
  CHECK(call.status().device_result == 3);
  CHECK(thrown([&] { device.create(0, {nacelle::inout(bytes)}); }) == NACELLE_INVALID_ARGUMENT);
  CHECK(thrown([] { nacelle::device("nowhere"); }) == NACELLE_NO_SUCH_DEVICE);
}

void time(const nacelle::device& device) {
  constexpr std::uint32_t side = 2048;
  const std::vector<std::uint32_t> arguments = {0x4d4d414e, 0, side, side, side, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<std::int32_t> a(side * side);
  std::vector<std::int32_t> c(side * side);
  nacelle::call call = device.create(matmul, {nacelle::input(arguments), nacelle::input(a), nacelle::input_once(a), nacelle::output(c)});
  call.invoke();
  CHECK(!call.wait_for(std::chrono::milliseconds(1)));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    call.cancel();
  });
  CHECK(thrown([&] { call.wait(); }) == NACELLE_CANCELLED);
  other.join();
}

void event_loop(const nacelle::device& device) {
  std::vector<unsigned char> bytes(100000);
  nacelle::connection connection = device.open(2);
  CHECK(connection.info().contexts >= 1);
  nacelle::call call = connection.create(increment, {nacelle::inout(bytes)});
  call.invoke();
  while (!call.test()) {
    pollfd readable = {device.fd(), POLLIN, 0};
    CHECK(poll(&readable, 1, 10000) == 1);
    device.progress();
  }
  CHECK(bytes.front() == 1 && bytes.back() == 1);
}

void contexts(const nacelle::device& device) {
  constexpr std::uint32_t side = 2048;
  const std::vector<std::uint32_t> arguments = {0x4d4d414e, 0, side, side, side, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<std::int32_t> a(side * side);
  std::vector<std::int32_t> c(side * side);
  std::vector<unsigned char> bytes(10, 1), more(10, 1);
  const nacelle::connection connection = device.open(3);
  const nacelle_connection_info info = connection.info();
  CHECK(info.contexts == 3 && info.free_contexts == 3 && info.can_cancel == 1 && info.has_long_set_up == 1);

  // One call runs, another is made meanwhile, and the first one alone is cancelled or runs out of its time.
  nacelle::call_options soon;
  soon.deadline_ms = 100;
  const std::vector<nacelle::region> matrices = {nacelle::input(arguments), nacelle::input_once(a), nacelle::input_once(a),
                                                 nacelle::output(c)};
  nacelle::call cancelled = connection.create(matmul, matrices);
  nacelle::call quick = connection.create(increment, {nacelle::inout(bytes)});
  cancelled.invoke();
  quick.invoke();
  quick.wait();
  CHECK(bytes[0] == 2 && cancelled.status().state == NACELLE_CALL_RUNNING);
  cancelled.cancel();
  CHECK(thrown([&] { cancelled.wait(); }) == NACELLE_CANCELLED);
  cancelled.close();
  nacelle::call late = connection.create(matmul, matrices, &soon);
  late.invoke();
  CHECK(thrown([&] { late.wait(); }) == NACELLE_DEADLINE_EXCEEDED);
  quick.invoke();
  quick.wait();
  CHECK(bytes[0] == 3);

  // A chain: the second step works on what the first has left.
  const nacelle_chain_step steps[] = {{increment, 0, 0, 2}, {increment, 0, 1, 1}};
  const std::vector<nacelle::region> both = {nacelle::inout(bytes), nacelle::inout(more)};
  CHECK(connection.info().free_contexts == 1);
  nacelle::call chain = connection.create_chain(steps, both);
  CHECK(thrown([&] { connection.create_chain(steps, both); }) == NACELLE_NO_FREE_CONTEXT);
  chain.invoke();
  chain.wait();
  CHECK(bytes[9] == 4 && more[9] == 3);
}

void transfers() {
  nacelle::acceptor host;
  std::vector<unsigned char> arrived;
  std::uint32_t label = 0;
  nacelle::window log = host.accept_incoming_write(1, 4000, [&](const nacelle::incoming& write) -> std::uint32_t {
    CHECK(!write.peer.empty() && write.window == 1);
    arrived.assign(write.bytes.begin(), write.bytes.end());
    label = write.label;
    if (label == 9) {
      throw std::runtime_error("no");
    }
    return label == 5 ? 0x30 : 0;
  });
  std::vector<std::uint32_t> table(1000, 77);
  std::atomic<int> reads{0};
  nacelle::window shown = host.accept_incoming_read(1, table, [&](const nacelle::incoming& read) {
    CHECK(read.bytes.empty());
    ++reads;
    return 0;
  });
  const nacelle::device peer(host.name());
  const nacelle::connection connection = peer.open();
  const std::vector<std::uint16_t> numbers(100, 0x0201);
  connection.write(1, numbers, 3);
  CHECK(label == 3 && arrived.size() == 200 && arrived[0] == 1 && arrived[199] == 2);
  std::uint32_t got[10] = {};
  connection.read(1, got);
  CHECK(got[0] == 77 && got[9] == 77);

  const nacelle::remote remote = connection.window_to_write(1, 400);
  nacelle::transfer first = remote.write(0, numbers), second = remote.write(200, numbers);
  second.wait();
  CHECK(first.test() && second.wait_for(std::chrono::seconds(1)) && second.status().state == NACELLE_CALL_DONE);
  nacelle::transfer told = remote.notify(5);
  CHECK(thrown([&] { told.wait(); }) == NACELLE_KERNEL);
  CHECK(told.status().owner_result == 0x30 && arrived.size() == 400 && arrived[399] == 2);
  told = remote.notify(9);
  CHECK(thrown([&] { told.close(); }) == NACELLE_SOCKET_UNAVAILABLE);
  int finished = 0;
  told = remote.write_and_notify(2, numbers);
  told.on_finish([&] { finished += 100; });
  told.on_finish([&] { finished += 1; });
  told.wait();
  CHECK(finished == 1 && label == 0 && arrived[2] == 1);

  const nacelle::remote part = connection.window_to_read(1, 40);
  std::vector<std::uint32_t> some(2);
  table[1] = 78;
  part.read(4, some).wait();
  CHECK(some[0] == 78 && some[1] == 77);
  part.read(0, nacelle::view(some.data(), 1)).wait();
  connection.read(1, nacelle::view(&some[1], 1));
  CHECK(some[0] == 77 && some[1] == 77);
  some[0] = 78;
  part.notify().wait();
  CHECK(reads == 1);
  const nacelle::remote own = connection.remote(8);
  own.write(0, some).wait();
  some = {0, 0};
  own.read(0, some).wait();
  CHECK(some[0] == 78);

  shown.close();
  CHECK(thrown([&] { connection.read(1, got); }) == NACELLE_REGIONS_REFUSED);
  CHECK(thrown([&] { auto again = host.accept_incoming_write(1, 1, [](const nacelle::incoming&) { return 0; }); }) ==
        NACELLE_WINDOW_OPEN);
  // A callback destroys its own window, and what it has captured stays meanwhile.
  std::unique_ptr<nacelle::window> itself;
  std::string seen;
  itself = std::make_unique<nacelle::window>(host.accept_incoming_write(2, 8, [&, text = std::string(100, 'x')](const nacelle::incoming&) {
    itself.reset();
    seen = text;
    return 0;
  }));
  connection.write(2, std::string("abc"));
  CHECK(seen.size() == 100 && !itself);
  log = host.accept_incoming_write(3, 8, [](const nacelle::incoming&) { return 0; });
  host.close();
  nacelle::acceptor_options options;
  options.name = "other";
  CHECK(nacelle::acceptor("10.77.3.3/16", options).address() == "10.77.3.3");
}

void windows_before_peers() {
  const nacelle::acceptor host = nacelle::acceptor::create();
  const std::vector<unsigned char> shown(4, 7);
  std::vector<unsigned char> got(4);
  const nacelle::window table = host.accept_incoming_read(9, shown);
  CHECK(thrown([&] { host.address(); }) == NACELLE_INVALID_ARGUMENT);
  host.listen();
  CHECK(thrown([&] { host.listen(); }) == NACELLE_INVALID_ARGUMENT);
  nacelle::device(host.address()).open().read(9, got);
  CHECK(got == shown);
}

}  // namespace

int main(int argc, char* argv[]) {
  if (argc != 2) {
    return 2;
  }
  nacelle::device_options options;
  options.timeout_ms = 30000;
  const nacelle::device device(argv[1], options);
  CHECK(device.describe().find("\"functions\"") != std::string::npos);
  CHECK(device.ping(std::chrono::seconds(2)).count() > 0);
  CHECK(device.load() && device.load()->connections >= 1 && device.load()->calls == 0);
  owners(device);
  regions(device);
  errors(device);
  time(device);
  event_loop(device);
  contexts(device);
  transfers();
  windows_before_peers();
  options.progress_thread = 1;
  nacelle::device driven(argv[1], options);
  owners(driven);
  nacelle::device moved = std::move(driven);
  moved.close();
  std::printf("%d failures\n", failures);
  return failures != 0;
}
