// SPDX-License-Identifier: Apache-2.0
// Two hosts that exchange data by RDMA, both ways, over connections that stay open; and memory of a device:
// transfers first OWN-ADDRESS
// transfers second OWN-ADDRESS ADDRESS-OF-FIRST ADDRESS-OF-DEVICE
#include <nacelle.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// What peers find under which number.
constexpr std::uint32_t hello = 1, question = 2, answer = 3, table = 4;
constexpr std::uint32_t rounds = 3;
constexpr std::size_t count = 1000, bytes = count * sizeof(std::uint32_t);

std::string on_the_wire(const std::string& address) { return address + "/16"; }

// What callbacks, which run in threads of the acceptor, have for the main thread.
template <class T>
class mailbox {
 public:
  void put(T what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(std::move(what));
    arrived_.notify_one();
  }
  T take() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!arrived_.wait_for(lock, std::chrono::seconds(60), [this] { return !all_.empty(); })) {
      throw std::runtime_error("the other host has said nothing for a minute");
    }
    T what = std::move(all_.front());
    all_.pop_front();
    return what;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<T> all_;
};

using numbers = std::vector<std::uint32_t>;

// A callback that puts the numbers that a peer has written into a mailbox.
nacelle::incoming_callback into(mailbox<numbers>& box) {
  return [&box](const nacelle::incoming& write) {
    numbers copy(write.bytes.size() / sizeof(std::uint32_t));
    std::memcpy(copy.data(), write.bytes.data(), copy.size() * sizeof(std::uint32_t));
    box.put(std::move(copy));
    return 0;
  };
}

// Shows a table, and writes twice what it is asked back to who has said hello.
void first(const std::string& own) {
  numbers squares(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    squares[i] = i * i;
  }
  mailbox<std::string> callers;
  mailbox<numbers> questions;
  // All windows are open before the other can connect.
  const nacelle::acceptor host = nacelle::acceptor::create(on_the_wire(own));
  const nacelle::window shown = host.accept_incoming_read(table, squares);
  const nacelle::window asked = host.accept_incoming_write(question, bytes, into(questions));
  const nacelle::window greeted = host.accept_incoming_write(hello, 64, [&](const nacelle::incoming& write) {
    callers.put(std::string(write.bytes.begin(), write.bytes.end()));
    return 0;
  });
  host.listen();

  const nacelle::device caller(callers.take());
  const nacelle::connection connection = caller.open();
  const nacelle::remote answers = connection.window_to_write(answer, bytes);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    numbers doubled = questions.take();
    for (std::uint32_t& number : doubled) {
      number *= 2;
    }
    answers.write_and_notify(0, doubled, round).wait();
  }
}

// Reads the table of the other host, and asks it.
bool ask(const std::string& own, const std::string& other) {
  mailbox<numbers> answers;
  const nacelle::acceptor host = nacelle::acceptor::create(on_the_wire(own));
  const nacelle::window answered = host.accept_incoming_write(answer, bytes, into(answers));
  host.listen();

  nacelle::device_options patient;
  patient.resolve_timeout_ms = 10000;
  const nacelle::device device(other, patient);
  const nacelle::connection connection = device.open();
  connection.write(hello, own);
  numbers read(count);
  connection.read(table, read);
  std::printf("7 * 7 = %u and 999 * 999 = %u in the other's table\n", read[7], read[999]);

  const nacelle::remote questions = connection.window_to_write(question, bytes);
  bool all_right = true;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    numbers asked(count);
    std::iota(asked.begin(), asked.end(), round);
    questions.write_and_notify(0, asked, round).wait();
    for (std::uint32_t& number : asked) {
      number *= 2;
    }
    const bool right = answers.take() == asked;
    std::printf("round %u, %zu numbers there and back: %s\n", round + 1, count, right ? "right" : "wrong");
    all_right = all_right && right;
  }
  return all_right;
}

// Writes and reads memory of a device, without calling a function of it.
bool keep_in_device(const std::string& address) {
  const nacelle::device device(address);
  const nacelle::connection connection = device.open();
  const nacelle::remote memory = connection.remote(1 << 20);
  numbers there(count), back(count);
  std::iota(there.begin(), there.end(), 1U);
  const nacelle::transfer write = memory.write(4096, there);
  memory.read(4096, back).wait();  // takes effect after the write
  std::printf("memory of the device: %s\n", there == back ? "right" : "wrong");
  return there == back;
}

}  // namespace

int main(int argc, char* argv[]) try {
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "first" && argc == 3) {
    first(argv[2]);
    return EXIT_SUCCESS;
  }
  if (role == "second" && argc == 5) {
    const bool right = ask(argv[2], argv[3]) && keep_in_device(argv[4]);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  std::fprintf(stderr, "usage: %s first OWN-ADDRESS, or second OWN-ADDRESS ADDRESS-OF-FIRST ADDRESS-OF-DEVICE\n", argv[0]);
  return 2;
} catch (const nacelle::error& error) {
  std::fprintf(stderr, "error %u: %s\n", error.code(), error.what());
  return EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return EXIT_FAILURE;
}
