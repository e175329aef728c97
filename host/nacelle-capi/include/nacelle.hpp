// SPDX-License-Identifier: Apache-2.0
//
// Nacelle from C++17: nacelle.h with owners, exceptions, containers and futures. Header only; link with libnacelle.
//
//     nacelle::device device("10.77.0.2");
//     std::vector<float> values(1000);
//     nacelle::call call = device.create(1, {nacelle::inout(values)});
//     call.invoke();
//     call.wait();
//
// What nacelle.h says of threads, memory and fork() holds here, too. Containers and views that are given as regions must stay, at
// the same place, until the call is closed or destroyed, and be left alone from invoke() to the end of the call. The same holds for
// those of transfers and windows, until these are closed or destroyed.
#ifndef NACELLE_HPP
#define NACELLE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nacelle.h"

namespace nacelle {

// An error: its number, what has happened (what()), and what to try.
class error : public std::runtime_error {
 public:
  error(nacelle_result code, const std::string& what, std::string hint)
      : std::runtime_error(what), code_(code), hint_(std::move(hint)) {}

  // Of enum nacelle_result_code.
  nacelle_result code() const noexcept { return code_; }
  // What to try; what() has it, too.
  const std::string& hint() const noexcept { return hint_; }

 private:
  nacelle_result code_;
  std::string hint_;
};

// Throws the last error of this thread, unless the result is success.
inline void check(nacelle_result result) {
  if (result != NACELLE_OK) {
    throw error(result, nacelle_last_error(), nacelle_last_hint());
  }
}

// A view of elements that lie one after the other, as std::span of C++20.
template <class T>
class view {
 public:
  constexpr view() noexcept = default;
  constexpr view(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <std::size_t N>
  constexpr view(T (&array)[N]) noexcept : data_(array), size_(N) {}
  // Any container with data() and size().
  template <class Container, class = std::enable_if_t<std::is_convertible_v<
                                 std::remove_pointer_t<decltype(std::data(std::declval<Container&>()))> (*)[], T (*)[]>>>
  constexpr view(Container& container) noexcept : data_(std::data(container)), size_(std::size(container)) {}

  constexpr T* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T* begin() const noexcept { return data_; }
  constexpr T* end() const noexcept { return data_ + size_; }
  constexpr T& operator[](std::size_t index) const noexcept { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};
template <class T, std::size_t N>
view(T (&)[N]) -> view<T>;
template <class Container>
view(Container&) -> view<std::remove_pointer_t<decltype(std::data(std::declval<Container&>()))>>;

// A region of a call: memory of the program and its role. Made by the functions below.
class region {
 public:
  region(nacelle_role role, const void* data, std::size_t size) noexcept
      : region_(nacelle_make_region(static_cast<std::uint32_t>(role), data, size)) {}
  const nacelle_region& get() const noexcept { return region_; }

 private:
  nacelle_region region_;
};

namespace detail {
template <class T>
region make(nacelle_role role, view<T> elements) {
  static_assert(std::is_trivially_copyable_v<T>, "a device gets bytes: the elements must be trivially copyable");
  return region(role, elements.data(), elements.size_bytes());
}
template <class T>
region make_output(nacelle_role role, view<T> elements) {
  static_assert(!std::is_const_v<T>, "the device writes the elements: they must not be const");
  return make(role, elements);
}
}  // namespace detail

// Containers, arrays and views of elements that can be copied as bytes. The compiler refuses containers that are temporary.
template <class Container>
region input(const Container& container) {
  return detail::make(NACELLE_INPUT, view(container));
}
template <class Container>
region input(const Container&&) = delete;
template <class T>
region input(view<T> elements) {
  return detail::make(NACELLE_INPUT, elements);
}
template <class Container>
region input_once(const Container& container) {
  return detail::make(NACELLE_INPUT_ONCE, view(container));
}
template <class Container>
region input_once(const Container&&) = delete;
template <class T>
region input_once(view<T> elements) {
  return detail::make(NACELLE_INPUT_ONCE, elements);
}
template <class Container>
region output(Container& container) {
  return detail::make_output(NACELLE_OUTPUT, view(container));
}
template <class T>
region output(view<T> elements) {
  return detail::make_output(NACELLE_OUTPUT, elements);
}
template <class Container>
region inout(Container& container) {
  return detail::make_output(NACELLE_INOUT, view(container));
}
template <class T>
region inout(view<T> elements) {
  return detail::make_output(NACELLE_INOUT, elements);
}
template <class Container>
region inout_once(Container& container) {
  return detail::make_output(NACELLE_INOUT_ONCE, view(container));
}
template <class T>
region inout_once(view<T> elements) {
  return detail::make_output(NACELLE_INOUT_ONCE, elements);
}
// Device memory for the kernel alone.
inline region internal(std::size_t bytes) { return region(NACELLE_INTERNAL_REGION, nullptr, bytes); }

namespace detail {
// The text that a function of nacelle.h gives.
template <class Get>
std::string text(Get get) {
  std::size_t length = 0;
  check(get(nullptr, 0, &length));
  std::string text(length, '\0');
  // The terminating zero of a string has a place of its own.
  check(get(text.data(), length + 1, &length));
  return text;
}
}  // namespace detail

// How a device is reached; see nacelle_device_options. Strings must stay until the device has been opened.
struct device_options : nacelle_device_options {
  device_options() noexcept : nacelle_device_options(NACELLE_DEVICE_OPTIONS_INIT) {}
};

// How a call is made; see nacelle_call_options.
struct call_options : nacelle_call_options {
  call_options() noexcept : nacelle_call_options(NACELLE_CALL_OPTIONS_INIT) {}
};

// Calls of one function on one set of regions. Destroying it ends them.
class call {
 public:
  // Takes a handle over.
  explicit call(nacelle_call handle) noexcept : handle_(handle) {}
  call(call&& other) noexcept : handle_(std::exchange(other.handle_, nacelle_call{0})) {}
  call& operator=(call&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  call(const call&) = delete;
  call& operator=(const call&) = delete;
  ~call() {
    if (handle_.id != 0) {
      nacelle_call_close(handle_);
    }
  }

  // Starts a call; `user` is for the kernel.
  void invoke(std::uint32_t user = 0) { check(nacelle_call_invoke_with(handle_, user)); }

  // Whether the call has ended. Does not wait.
  bool test() {
    bool done = false;
    check(nacelle_call_test(handle_, &done));
    return done;
  }

  // Waits for the end of the call.
  void wait() { check(nacelle_call_wait(handle_, -1)); }

  // Waits for a while. Returns whether the call has ended.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> time) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    const nacelle_result result = nacelle_call_wait(handle_, ms < 0 ? 0 : static_cast<std::int64_t>(ms));
    if (result == NACELLE_PENDING) {
      return false;
    }
    check(result);
    return true;
  }

  // Makes the call end that runs: see nacelle_call_cancel(). Any thread may do this, also while another waits for the call.
  void cancel() { check(nacelle_call_cancel(handle_)); }

  // Starts a call, and waits for its end in a thread of its own. Until the future is ready, the call must not be used, moved or
  // destroyed; destroying the future waits for it.
  [[nodiscard]] std::future<void> start(std::uint32_t user = 0) {
    invoke(user);
    return std::async(std::launch::async, [handle = handle_] { check(nacelle_call_wait(handle, -1)); });
  }

  nacelle_call_status status() const {
    nacelle_call_status status = NACELLE_CALL_STATUS_INIT;
    check(nacelle_call_get_status(handle_, &status));
    return status;
  }

  // What the set-up and the last call cost, as JSON.
  std::string report() const {
    return detail::text([this](char* text, std::size_t size, std::size_t* length) {
      return nacelle_call_report(handle_, text, size, length);
    });
  }

  // Ends it. The destructor does the same, without an exception.
  void close() {
    const nacelle_result result = nacelle_call_close(handle_);
    if (result != NACELLE_BUSY) {
      handle_ = nacelle_call{0};
    }
    check(result);
  }

  nacelle_call handle() const noexcept { return handle_; }

 private:
  nacelle_call handle_;
};

namespace detail {
inline std::vector<nacelle_region> plain(view<const region> regions) {
  std::vector<nacelle_region> plain;
  plain.reserve(regions.size());
  for (const region& one : regions) {
    plain.push_back(one.get());
  }
  return plain;
}
}  // namespace detail

namespace detail {
// Elements as bytes that are only read.
template <class T>
nacelle_region bytes_of(view<T> elements) {
  return make(NACELLE_INPUT, elements).get();
}
// Elements as bytes that are written.
template <class T>
nacelle_region room_of(view<T> elements) {
  return make_output(NACELLE_OUTPUT, elements).get();
}

// A function of the program that C calls. It stays while it runs, also when its owner goes meanwhile.
template <class Function>
class callback {
 public:
  callback() noexcept = default;
  explicit callback(Function function)
      : kept_(std::make_unique<std::shared_ptr<Function>>(std::make_shared<Function>(std::move(function)))) {}
  void* data() const noexcept { return kept_.get(); }
  static std::shared_ptr<Function> of(void* data) { return *static_cast<std::shared_ptr<Function>*>(data); }
  // Leaves it alone for ever.
  void leave() noexcept { static_cast<void>(kept_.release()); }

 private:
  std::unique_ptr<std::shared_ptr<Function>> kept_;
};
}  // namespace detail

// A transfer that was begun. Destroying it waits for its end.
class transfer {
 public:
  // Takes a handle over.
  explicit transfer(nacelle_transfer handle) noexcept : handle_(handle) {}
  transfer(transfer&& other) noexcept
      : handle_(std::exchange(other.handle_, nacelle_transfer{0})), callback_(std::move(other.callback_)) {}
  transfer& operator=(transfer&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(callback_, other.callback_);
    return *this;
  }
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;
  ~transfer() {
    if (handle_.id != 0 && nacelle_transfer_close(handle_) == NACELLE_BUSY) {
      callback_.leave();
    }
  }

  // Whether it has ended. Does not wait.
  bool test() {
    bool done = false;
    check(nacelle_transfer_test(handle_, &done));
    return done;
  }

  // Waits for its end.
  void wait() { check(nacelle_transfer_wait(handle_, -1)); }

  // Waits for a while. Returns whether it has ended.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> time) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    const nacelle_result result = nacelle_transfer_wait(handle_, ms < 0 ? 0 : static_cast<std::int64_t>(ms));
    if (result == NACELLE_PENDING) {
      return false;
    }
    check(result);
    return true;
  }

  // Has a function called when it has ended: see nacelle_transfer_on_finish(). It must not throw.
  void on_finish(std::function<void()> function) {
    detail::callback<std::function<void()>> callback(std::move(function));
    check(nacelle_transfer_on_finish(handle_, &transfer::finished, callback.data()));
    callback_ = std::move(callback);
  }

  nacelle_transfer_status status() const {
    nacelle_transfer_status status = NACELLE_TRANSFER_STATUS_INIT;
    check(nacelle_transfer_get_status(handle_, &status));
    return status;
  }

  // Waits for its end, and ends the handle. The destructor does the same, without an exception.
  void close() {
    const nacelle_result result = nacelle_transfer_close(handle_);
    if (result != NACELLE_BUSY) {
      handle_ = nacelle_transfer{0};
    }
    check(result);
  }

  nacelle_transfer handle() const noexcept { return handle_; }

 private:
  static void finished(void* data) noexcept { (*detail::callback<std::function<void()>>::of(data))(); }

  nacelle_transfer handle_;
  detail::callback<std::function<void()>> callback_;
};

// Memory of a peer: of a device, or a window of a host. Transfers under way keep it.
class remote {
 public:
  // Takes a handle over.
  explicit remote(nacelle_remote handle) noexcept : handle_(handle) {}
  remote(remote&& other) noexcept : handle_(std::exchange(other.handle_, nacelle_remote{0})) {}
  remote& operator=(remote&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  remote(const remote&) = delete;
  remote& operator=(const remote&) = delete;
  ~remote() {
    if (handle_.id != 0) {
      nacelle_remote_close(handle_);
    }
  }

  // Begins to write the elements to `offset`, in bytes.
  template <class Container>
  [[nodiscard]] transfer write(std::uint64_t offset, const Container& from) const {
    return write(offset, view(from));
  }
  template <class T>
  [[nodiscard]] transfer write(std::uint64_t offset, view<T> from) const {
    const nacelle_region bytes = detail::bytes_of(from);
    nacelle_transfer handle{0};
    check(nacelle_remote_write(handle_, offset, bytes.data, bytes.size, &handle));
    return transfer(handle);
  }
  template <class Container>
  transfer write(std::uint64_t offset, const Container&& from) const = delete;

  // The same, and then tells the owner of the window.
  template <class Container>
  [[nodiscard]] transfer write_and_notify(std::uint64_t offset, const Container& from, std::uint32_t label = 0) const {
    return write_and_notify(offset, view(from), label);
  }
  template <class T>
  [[nodiscard]] transfer write_and_notify(std::uint64_t offset, view<T> from, std::uint32_t label = 0) const {
    const nacelle_region bytes = detail::bytes_of(from);
    nacelle_transfer handle{0};
    check(nacelle_remote_write_and_notify(handle_, offset, bytes.data, bytes.size, label, &handle));
    return transfer(handle);
  }
  template <class Container>
  transfer write_and_notify(std::uint64_t offset, const Container&& from, std::uint32_t label = 0) const = delete;

  // Begins to read into all of the elements from `offset`, in bytes.
  template <class Container>
  [[nodiscard]] transfer read(std::uint64_t offset, Container& into) const {
    return read(offset, view(into));
  }
  template <class T>
  [[nodiscard]] transfer read(std::uint64_t offset, view<T> into) const {
    const nacelle_region room = detail::room_of(into);
    nacelle_transfer handle{0};
    check(nacelle_remote_read(handle_, offset, room.data, room.size, &handle));
    return transfer(handle);
  }

  // Tells the owner of the window alone.
  [[nodiscard]] transfer notify(std::uint32_t label = 0) const {
    nacelle_transfer handle{0};
    check(nacelle_remote_notify(handle_, label, &handle));
    return transfer(handle);
  }

  nacelle_remote handle() const noexcept { return handle_; }

 private:
  nacelle_remote handle_;
};

// A connection on which several calls run side by side, as far as the device agrees. It ends with its last call.
class connection {
 public:
  // Takes a handle over.
  explicit connection(nacelle_connection handle) noexcept : handle_(handle) {}
  connection(connection&& other) noexcept : handle_(std::exchange(other.handle_, nacelle_connection{0})) {}
  connection& operator=(connection&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() {
    if (handle_.id != 0) {
      nacelle_connection_close(handle_);
    }
  }

  // A call in a free context.
  call create(std::uint32_t function, view<const region> regions, const nacelle_call_options* options = nullptr) const {
    const auto plain = detail::plain(regions);
    nacelle_call handle{0};
    check(nacelle_connection_create(handle_, function, plain.data(), plain.size(), options, &handle));
    return call(handle);
  }
  call create(std::uint32_t function, std::initializer_list<region> regions,
              const nacelle_call_options* options = nullptr) const {
    return create(function, view<const region>(regions.begin(), regions.size()), options);
  }

  // Calls of a chain: see nacelle_connection_create_chain().
  call create_chain(view<const nacelle_chain_step> steps, view<const region> regions,
                    const nacelle_call_options* options = nullptr) const {
    const auto plain = detail::plain(regions);
    nacelle_call handle{0};
    check(nacelle_connection_create_chain(handle_, steps.data(), steps.size(), plain.data(), plain.size(), options, &handle));
    return call(handle);
  }

  // Writes the elements to a window of the peer, and waits until its owner's callback has returned: see nacelle_write().
  template <class Container>
  void write(std::uint32_t window, const Container& from, std::uint32_t label = 0) const {
    const nacelle_region bytes = detail::bytes_of(view(from));
    check(nacelle_write(handle_, window, bytes.data, bytes.size, label));
  }

  // Reads the first bytes of a window of the peer into all of the elements: see nacelle_read().
  template <class Container>
  void read(std::uint32_t window, Container& into) const {
    read(window, view(into));
  }
  template <class T>
  void read(std::uint32_t window, view<T> into) const {
    const nacelle_region room = detail::room_of(into);
    check(nacelle_read(handle_, window, room.data, room.size));
  }

  // Memory of the peer for many transfers: of its own, of a window to be written, and of a window to be read.
  nacelle::remote remote(std::uint64_t size) const {
    nacelle_remote handle{0};
    check(nacelle_connection_remote(handle_, size, &handle));
    return nacelle::remote(handle);
  }
  nacelle::remote window_to_write(std::uint32_t window, std::uint64_t size) const {
    nacelle_remote handle{0};
    check(nacelle_connection_window_to_write(handle_, window, size, &handle));
    return nacelle::remote(handle);
  }
  nacelle::remote window_to_read(std::uint32_t window, std::uint64_t size) const {
    nacelle_remote handle{0};
    check(nacelle_connection_window_to_read(handle_, window, size, &handle));
    return nacelle::remote(handle);
  }

  // What the device has agreed to.
  nacelle_connection_info info() const {
    nacelle_connection_info info = NACELLE_CONNECTION_INFO_INIT;
    check(nacelle_connection_get_info(handle_, &info));
    return info;
  }

  nacelle_connection handle() const noexcept { return handle_; }

 private:
  nacelle_connection handle_;
};

// A device that was reached.
class device {
 public:
  explicit device(const std::string& address) { check(nacelle_device_open(address.c_str(), nullptr, &handle_)); }
  device(const std::string& address, const nacelle_device_options& options) {
    check(nacelle_device_open(address.c_str(), &options, &handle_));
  }
  device(device&& other) noexcept : handle_(std::exchange(other.handle_, nacelle_device{0})) {}
  device& operator=(device&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  ~device() {
    if (handle_.id != 0) {
      nacelle_device_close(handle_);
    }
  }

  // Calls of a function, on a connection of their own.
  call create(std::uint32_t function, view<const region> regions, const nacelle_call_options* options = nullptr) const {
    const auto plain = detail::plain(regions);
    nacelle_call handle{0};
    check(nacelle_call_create(handle_, function, plain.data(), plain.size(), options, &handle));
    return call(handle);
  }
  call create(std::uint32_t function, std::initializer_list<region> regions,
              const nacelle_call_options* options = nullptr) const {
    return create(function, view<const region>(regions.begin(), regions.size()), options);
  }

  // A connection for several calls; `contexts` are asked for, 0 for the default.
  connection open(std::uint32_t contexts = 0) const {
    nacelle_connection_options options = NACELLE_CONNECTION_OPTIONS_INIT;
    options.contexts = contexts;
    nacelle_connection handle{0};
    check(nacelle_connection_open(handle_, &options, &handle));
    return connection(handle);
  }

  // A descriptor for an event loop, and what to call when it is readable: see nacelle_device_fd().
  int fd() const {
    int fd = -1;
    check(nacelle_device_fd(handle_, &fd));
    return fd;
  }
  void progress() const { check(nacelle_device_progress(handle_)); }

  // What the device says of itself, as JSON; empty if it says nothing.
  std::string describe() const {
    return detail::text([this](char* text, std::size_t size, std::size_t* length) {
      return nacelle_device_describe(handle_, text, size, length);
    });
  }

  // How busy it is at this moment; nothing if it does not say. See nacelle_device_load().
  std::optional<nacelle_load> load() const {
    nacelle_load load = NACELLE_LOAD_INIT;
    const nacelle_result result = nacelle_device_load(handle_, &load);
    if (result == NACELLE_UNSUPPORTED) {
      return std::nullopt;
    }
    check(result);
    return load;
  }

  // The time until the answer to an ICMP echo request.
  std::chrono::nanoseconds ping(std::chrono::milliseconds timeout) const {
    std::uint64_t time = 0;
    check(nacelle_device_ping(handle_, static_cast<std::uint32_t>(timeout.count()), &time));
    return std::chrono::nanoseconds(time);
  }

  // Ends it. The destructor does the same, without an exception.
  void close() { check(nacelle_device_close(std::exchange(handle_, nacelle_device{0}))); }

  nacelle_device handle() const noexcept { return handle_; }

 private:
  nacelle_device handle_{0};
};

// What a peer has written to a window, or says that it has read: then there are no bytes.
struct incoming {
  // The peer's address.
  std::string peer;
  std::uint32_t window;
  // What the peer says of it: 16 bits.
  std::uint32_t label;
  // The writer's memory in the window, until the callback returns. What is changed, the writer can read.
  view<unsigned char> bytes;
};

// Returns 0, or a code from 0x10 to 0x7f with which the peer's transfer fails: see nacelle_incoming_callback. If it throws, the peer's
// transfer fails with NACELLE_SOCKET_UNAVAILABLE.
using incoming_callback = std::function<std::uint32_t(const incoming&)>;

// Memory that peers write or read under a number, until this is closed or destroyed. Made by an acceptor.
class window {
 public:
  window(window&& other) noexcept
      : handle_(std::exchange(other.handle_, nacelle_window{0})), callback_(std::move(other.callback_)) {}
  window& operator=(window&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(callback_, other.callback_);
    return *this;
  }
  window(const window&) = delete;
  window& operator=(const window&) = delete;
  ~window() {
    if (handle_.id != 0) {
      nacelle_window_close(handle_);
    }
  }

  // Closes it, and waits for its callbacks that run. The destructor does the same, without an exception.
  void close() { check(nacelle_window_close(std::exchange(handle_, nacelle_window{0}))); }

  nacelle_window handle() const noexcept { return handle_; }

 private:
  friend class acceptor;
  using callback = detail::callback<incoming_callback>;

  template <class Open>
  window(incoming_callback function, Open open) : handle_{0} {
    if (function) {
      callback_ = callback(std::move(function));
    }
    check(open(callback_.data() == nullptr ? nullptr : &window::told, callback_.data(), &handle_));
  }

  static std::uint32_t told(const nacelle_incoming* what, void* data) noexcept {
    try {
      const auto function = callback::of(data);
      return (*function)({what->peer, what->window, what->label, {static_cast<unsigned char*>(what->data), what->data_size}});
    } catch (...) {
      return 1;  // none that a callback may return
    }
  }

  nacelle_window handle_;
  callback callback_;
};

// Bounds of an acceptor; see nacelle_acceptor_options. Strings must stay until the acceptor has been opened.
struct acceptor_options : nacelle_acceptor_options {
  acceptor_options() noexcept : nacelle_acceptor_options(NACELLE_ACCEPTOR_OPTIONS_INIT) {}
};

// A host that accepts what others write, and gives what others read.
class acceptor {
 public:
  // At the first free address on the wire.
  acceptor() { check(nacelle_acceptor_open(nullptr, nullptr, &handle_)); }
  // At an address of this machine, or on the wire: see nacelle_acceptor_open().
  explicit acceptor(const std::string& address) { check(nacelle_acceptor_open(address.c_str(), nullptr, &handle_)); }
  acceptor(const std::string& address, const nacelle_acceptor_options& options) {
    check(nacelle_acceptor_open(address.c_str(), &options, &handle_));
  }
  // Takes a handle over.
  explicit acceptor(nacelle_acceptor handle) noexcept : handle_(handle) {}
  // One that peers cannot connect to before listen(): windows are opened first. The empty address is the first free one on the wire.
  [[nodiscard]] static acceptor create(const std::string& address = {},
                                       const nacelle_acceptor_options& options = acceptor_options()) {
    nacelle_acceptor handle{0};
    check(nacelle_acceptor_create(address.empty() ? nullptr : address.c_str(), &options, &handle));
    return acceptor(handle);
  }
  void listen() const { check(nacelle_acceptor_listen(handle_)); }
  acceptor(acceptor&& other) noexcept : handle_(std::exchange(other.handle_, nacelle_acceptor{0})) {}
  acceptor& operator=(acceptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  acceptor(const acceptor&) = delete;
  acceptor& operator=(const acceptor&) = delete;
  ~acceptor() {
    if (handle_.id != 0) {
      nacelle_acceptor_close(handle_);
    }
  }

  // Lets peers write up to `longest` bytes under a number.
  [[nodiscard]] window accept_incoming_write(std::uint32_t number, std::size_t longest, incoming_callback callback) const {
    return window(std::move(callback), [&](nacelle_incoming_callback told, void* data, nacelle_window* handle) {
      return nacelle_accept_incoming_write(handle_, number, longest, told, data, handle);
    });
  }

  // Lets peers read the elements under a number, as they are at that moment.
  template <class Container>
  [[nodiscard]] window accept_incoming_read(std::uint32_t number, const Container& from, incoming_callback callback = nullptr) const {
    return accept_incoming_read(number, view(from), std::move(callback));
  }
  template <class T>
  [[nodiscard]] window accept_incoming_read(std::uint32_t number, view<T> from, incoming_callback callback = nullptr) const {
    const nacelle_region bytes = detail::bytes_of(from);
    return window(std::move(callback), [&](nacelle_incoming_callback told, void* data, nacelle_window* handle) {
      return nacelle_accept_incoming_read(handle_, number, bytes.data, bytes.size, told, data, handle);
    });
  }
  template <class Container>
  window accept_incoming_read(std::uint32_t number, const Container&& from, incoming_callback callback = nullptr) const = delete;

  // The address that peers connect to, and the name that those on this machine may use.
  std::string address() const {
    return detail::text([this](char* text, std::size_t size, std::size_t* length) {
      return nacelle_acceptor_address(handle_, text, size, length);
    });
  }
  std::string name() const {
    return detail::text([this](char* text, std::size_t size, std::size_t* length) {
      return nacelle_acceptor_name(handle_, text, size, length);
    });
  }

  // Ends it, and closes its windows. The destructor does the same, without an exception.
  void close() { check(nacelle_acceptor_close(std::exchange(handle_, nacelle_acceptor{0}))); }

  nacelle_acceptor handle() const noexcept { return handle_; }

 private:
  nacelle_acceptor handle_{0};
};

}  // namespace nacelle

#endif
