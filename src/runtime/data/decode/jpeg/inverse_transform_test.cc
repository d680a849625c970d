// Covers: inverse_transform_avx2.cc, runtime/data/instruction_kernels.h.
#include "runtime/data/decode/jpeg/inverse_transform.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/data/instruction_kernels_fake.h"

namespace tutti::data {
namespace {

// The samples of `blocks` blocks beside one another, with four rows and columns of 7 on each side.
std::vector<uint8_t> Transformed(BlockTransform* transform,
                                 const std::vector<int16_t>& coefficients,
                                 const std::vector<uint16_t>& steps, int size) {
  const int blocks = static_cast<int>(coefficients.size() / 64);
  const size_t stride = static_cast<size_t>(blocks * size + 8);
  std::vector<uint8_t> samples(stride * static_cast<size_t>(size + 8), 7);
  transform(coefficients.data(), blocks, steps.data(), size, samples.data() + 4 * stride + 4,
            stride);
  return samples;
}

TEST(InverseTransform, HasTheSameBitsWithEachInstructionSet) {
  std::minstd_rand random(3);
  for (const int range : {8, 200, 2048, 32767}) {
    for (size_t blocks = 1; blocks < 8; ++blocks) {
      std::vector<int16_t> coefficients(64 * blocks);
      std::vector<uint16_t> steps(64);
      for (int16_t& one : coefficients) {
        one = static_cast<int16_t>(static_cast<int>(random() >> 8) % (2 * range + 1) - range);
        if (random() >> 8 & 1) one = 0;
      }
      for (uint16_t& one : steps) one = static_cast<uint16_t>(1 + (random() >> 8) % 255);
      for (const int size : {8, 4, 2, 1}) {
        const auto plain = Transformed(kInverseTransform.plain, coefficients, steps, size);
        for (const base::InstructionSet set : SetsOfThisProcessor()) {
          ASSERT_EQ(Transformed(kInverseTransform.For(set), coefficients, steps, size), plain)
              << range << " " << blocks << " " << size;
        }
      }
    }
  }
}

TEST(InverseTransform, AFlatBlockHasItsMeanAtEverySize) {
  const std::vector<uint16_t> steps(64, 16);
  for (const int size : {8, 4, 2, 1}) {
    std::vector<int16_t> coefficients(64);
    coefficients[0] = 20;  // 20 * 16 / 8 above 128
    const auto samples = Transformed(kInverseTransform.Usable(), coefficients, steps, size);
    const size_t stride = static_cast<size_t>(size + 8);
    for (size_t y = 0; y < static_cast<size_t>(size + 8); ++y) {
      for (size_t x = 0; x < stride; ++x) {
        const bool inside = y >= 4 && y < 4u + size && x >= 4 && x < 4u + size;
        ASSERT_EQ(samples[y * stride + x], inside ? 168 : 7) << size << " " << x << " " << y;
      }
    }
  }
}

}  // namespace
}  // namespace tutti::data
