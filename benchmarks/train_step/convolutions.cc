// GF/s of the convolutions of ResNet-50 at 224 x 224, or of ResNet-20 at 32 x 32, on one core, by
// kernel and step (of ResNet-20 by channels too), by tutti's own kernels: products and additions of
// a direct convolution (Winograd's do with fewer) over the thread's processor time, the best of
// three. TUTTI_CPU_CAPABILITY=avx2 holds them to AVX2.
//
//   convolutions [BATCH=32] [resnet50|resnet20] [bf16|fp32]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/machine/instruction_set.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"

namespace tutti {
namespace {

using device::cpu::Convolution;

// In the order of the network.
std::vector<Convolution> ResNet50(int64_t images) {
  std::vector<Convolution> all = {{images, 224, 224, 3, 64, 7, 2}};
  int64_t side = 56, inputs = 64;
  for (const auto& [width, blocks] : {std::pair{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    for (int block = 0; block < blocks; ++block) {
      const int64_t stride = width > 64 && block == 0 ? 2 : 1, outputs = 4 * width;
      all.push_back({images, side, side, inputs, width, 1});
      all.push_back({images, side, side, width, width, 3, stride});
      if (block == 0) all.push_back({images, side, side, inputs, outputs, 1, stride});
      side /= stride;
      all.push_back({images, side, side, width, outputs, 1});
      inputs = outputs;
    }
  }
  return all;
}

std::vector<Convolution> ResNet20(int64_t images) {
  std::vector<Convolution> all = {{images, 32, 32, 3, 16, 3}};
  int64_t side = 32, inputs = 16;
  for (const int64_t width : {16, 32, 64}) {
    for (int layer = 0; layer < 6; ++layer) {
      const int64_t stride = width > inputs ? 2 : 1;
      all.push_back({images, side, side, inputs, width, 3, stride});
      side /= stride;
      inputs = width;
    }
  }
  return all;
}

double Products(const Convolution& c) {
  return 2.0 * static_cast<double>(c.out_pixels() * c.inputs * c.outputs * c.kernel * c.kernel);
}

double ProcessorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Body>
double BestSeconds(const Body& body) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const double began = ProcessorSeconds();
    body();
    best = std::min(best, ProcessorSeconds() - began);
  }
  return best;
}

struct Found {
  double products = 0, seconds = 0;
  void Add(double more, double took) {
    products += more;
    seconds += took;
  }
};

// The three convolutions of one element type.
struct Bf16 {
  using Element = uint16_t;
  static constexpr Element kOne = 0x3f80;
  static constexpr auto Takes = device::cpu::Takes;
  static constexpr auto Forward = device::cpu::ConvolutionForward;
  static constexpr auto InputGradient = device::cpu::ConvolutionInputGradient;
  static constexpr auto WeightGradient = device::cpu::ConvolutionWeightGradient;
};
struct Fp32 {
  using Element = float;
  static constexpr Element kOne = 1;
  static constexpr auto Takes = device::cpu::fp32::CanCompute;
  static constexpr auto Forward = device::cpu::fp32::Forward;
  static constexpr auto InputGradient = device::cpu::fp32::InputGradient;
  static constexpr auto WeightGradient = device::cpu::fp32::WeightGradient;
};

template <typename Type>
struct Buffers {
  using Values = std::vector<typename Type::Element>;
  explicit Buffers(int64_t images)
      : x(Of(images * 112 * 112 * 64)), y(Of(images * 112 * 112 * 64)), w(Of(9 * 512 * 512)) {}
  static Values Of(int64_t count) { return Values(static_cast<size_t>(count), Type::kOne); }
  Values x, y, w;  // the largest of the network
};

template <typename Type>
void Measure(const Convolution& c, Buffers<Type>& with, Found found[3]) {
  auto *const x = with.x.data(), *const y = with.y.data(), *const w = with.w.data();
  found[0].Add(Products(c), BestSeconds([&] { Type::Forward(c, x, w, y, 1); }));
  if (!c.is_stem()) {
    found[1].Add(Products(c), BestSeconds([&] { Type::InputGradient(c, y, w, x, 1); }));
  }
  found[2].Add(Products(c), BestSeconds([&] { Type::WeightGradient(c, x, y, w, 1); }));
}

// What a line of the table is of.
std::string KindOf(const Convolution& c, bool by_channels) {
  const auto text = [](int64_t number) { return std::to_string(number); };
  const std::string kind = text(c.kernel) + "x" + text(c.kernel) + " | " + text(c.stride);
  if (!by_channels) return kind;
  return kind + " | " + text(c.inputs) + " to " + text(c.outputs);
}

template <typename Type>
int Main(int64_t images, bool small) {
  device::cpu::UseWinograd(true);
  std::map<std::string, std::vector<Found>> kinds;
  Buffers<Type> buffers(images);
  for (const Convolution& c : small ? ResNet20(images) : ResNet50(images)) {
    if (!Type::Takes(c)) {
      if (c.inputs < 32 || c.outputs < 32) continue;  // left to oneDNN where there is AMX
      std::fprintf(stderr, "convolutions: none of tutti's own with %s\n",
                   base::DescribeInstructionSet().c_str());
      return 1;
    }
    auto& found = kinds[KindOf(c, small)];
    found.resize(3);
    Measure(c, buffers, found.data());
  }
  std::printf("%s\n\n", base::DescribeInstructionSet().c_str());
  std::printf("| kernel | step |%s forward | input's gradient | weights' gradient | ms |\n",
              small ? " channels |" : "");
  std::printf("|---|---|---|---|---|---|%s\n", small ? "---|" : "");
  for (const auto& [kind, found] : kinds) {
    std::printf("| %s |", kind.c_str());
    double seconds = 0;
    for (const Found& one : found) {
      one.seconds > 0 ? std::printf(" %.0f |", 1e-9 * one.products / one.seconds)
                      : std::printf(" |");
      seconds += one.seconds;
    }
    std::printf(" %.0f |\n", 1e3 * seconds);
  }
  return 0;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  const int64_t images = argc > 1 ? std::atoll(argv[1]) : 32;
  const bool small = argc > 2 && std::string(argv[2]) == "resnet20";
  const bool fp32 = argc > 3 && std::string(argv[3]) == "fp32";
  return fp32 ? tutti::Main<tutti::Fp32>(images, small) : tutti::Main<tutti::Bf16>(images, small);
}
