// GF/s of the convolutions of ResNet-50 at 224 x 224, or of ResNet-20 at 32 x 32, on one core, by
// kernel and step (of ResNet-20 by channels too), in bf16 by tutti's own kernels: products and
// additions of a direct convolution (Winograd's do with fewer) over the thread's processor time,
// the best of three.
//
//   convolutions [BATCH=32] [resnet50|resnet20]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/cpu/convolution.h"

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

struct Buffers {
  explicit Buffers(int64_t images)
      : x(Of(images * 112 * 112 * 64)), y(Of(images * 112 * 112 * 64)), w(Of(9 * 512 * 512)) {}
  static std::vector<uint16_t> Of(int64_t count) {
    return std::vector<uint16_t>(static_cast<size_t>(count), uint16_t{0x3f80});
  }
  std::vector<uint16_t> x, y, w;  // the largest of the network
};

void Measure(const Convolution& c, Buffers& with, Found found[3]) {
  uint16_t *const x = with.x.data(), *const y = with.y.data(), *const w = with.w.data();
  found[0].Add(Products(c), BestSeconds([&] { ConvolutionForward(c, x, w, y, 1); }));
  if (!c.is_stem()) {
    found[1].Add(Products(c), BestSeconds([&] { ConvolutionInputGradient(c, y, w, x, 1); }));
  }
  found[2].Add(Products(c), BestSeconds([&] { ConvolutionWeightGradient(c, x, y, w, 1); }));
}

// What a line of the table is of.
std::string KindOf(const Convolution& c, bool by_channels) {
  const auto text = [](int64_t number) { return std::to_string(number); };
  const std::string kind = text(c.kernel) + "x" + text(c.kernel) + " | " + text(c.stride);
  if (!by_channels) return kind;
  return kind + " | " + text(c.inputs) + " to " + text(c.outputs);
}

int Main(int64_t images, bool small) {
  std::map<std::string, std::vector<Found>> kinds;
  Buffers buffers(images);
  for (const Convolution& c : small ? ResNet20(images) : ResNet50(images)) {
    if (!device::cpu::Takes(c)) {
      if (c.inputs < 32 || c.outputs < 32) continue;  // left to oneDNN where there is AMX
      std::fputs("convolutions: this processor has no AVX512-BF16\n", stderr);
      return 1;
    }
    auto& found = kinds[KindOf(c, small)];
    found.resize(3);
    Measure(c, buffers, found.data());
  }
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
  return tutti::Main(argc > 1 ? std::atoll(argv[1]) : 32,
                     argc > 2 && std::string(argv[2]) == "resnet20");
}
