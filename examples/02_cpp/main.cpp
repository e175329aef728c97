// SPDX-License-Identifier: Apache-2.0
// Multiplies matrices on a device, two products at the same time: matmul ADDRESS.
#include <nacelle.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <vector>

namespace {

// The function of the kernel `matmul`, and its arguments (docs/reference/kernels.md).
constexpr std::uint32_t matmul = 16;

std::array<std::uint32_t, 16> arguments(std::uint32_t m, std::uint32_t n, std::uint32_t k) {
  constexpr std::uint32_t magic = 0x4d4d414e, float32 = 1;
  return {magic, float32, m, n, k};
}

bool is_product(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c, std::size_t side) {
  for (std::size_t row = 0; row < side; ++row) {
    for (std::size_t column = 0; column < side; ++column) {
      float sum = 0;
      for (std::size_t i = 0; i < side; ++i) {
        sum += a[row * side + i] * b[i * side + column];
      }
      if (c[row * side + column] != sum) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

int main(int argc, char* argv[]) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
    return 2;
  }
  constexpr std::size_t side = 32;
  const auto shape = arguments(side, side, side);
  std::vector<float> a(side * side), b(side * side), first(side * side), second(side * side);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 7);  // small integers: their sums are exact
    b[i] = static_cast<float>(i % 5) - 2;
  }

  const nacelle::device device(argv[1]);
  nacelle::call ab = device.create(matmul, {nacelle::input(shape), nacelle::input(a), nacelle::input(b), nacelle::output(first)});
  nacelle::call ba = device.create(matmul, {nacelle::input(shape), nacelle::input(b), nacelle::input(a), nacelle::output(second)});

  std::future<void> done = ab.start();
  ba.invoke();
  ba.wait();
  done.get();  // throws if the call has failed

  const bool right = is_product(a, b, first, side) && is_product(b, a, second, side);
  std::printf("two products of %zux%zu: %s\n", side, side, right ? "right" : "wrong");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const nacelle::error& error) {
  std::fprintf(stderr, "error %u: %s\n", error.code(), error.what());
  return EXIT_FAILURE;
}
