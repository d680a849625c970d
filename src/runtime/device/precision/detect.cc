#include "runtime/device/precision/detect.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <time.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/process/build_id.h"
#include "base/process/child_process.h"
#include "runtime/device/precision/gpu.h"
#include "runtime/device/precision/processor.h"

namespace tutti::device {
namespace {

constexpr int64_t kImages = 16, kChannels = 64, kSide = 16;
constexpr int kRounds = 3;

using Seconds = std::chrono::duration<double>;

// Returns the time of this thread's own work on a CPU, whatever else the machine does meanwhile;
// for a GPU, the clock's time.
Seconds Now(torch::Device device) {
  timespec time = {};
  ::clock_gettime(device.is_cpu() ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return Seconds(static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec));
}

// Computes in the calling thread alone while it lives.
class InOneThread {
 public:
  InOneThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~InOneThread() { at::set_num_threads(before_); }
  InOneThread(const InOneThread&) = delete;
  InOneThread& operator=(const InOneThread&) = delete;

 private:
  const int before_;
};

// An emulated layer may take long: then one round has to do.
constexpr Seconds kLongEnough{0.5};

class Layer {
 public:
  Layer(torch::Device device, torch::ScalarType type)
      : device_(device),
        x_(Values({kImages, kChannels, kSide, kSide}, type)),
        w_(Values({kChannels, kChannels, 3, 3}, type)),
        gradient_(Values({kImages, kChannels, kSide, kSide}, type).detach()) {}

  Seconds Run() {
    const Seconds began = Now(device_);
    at::conv2d(x_, w_, {}, 1, 1).backward(gradient_);
    x_.mutable_grad().reset();
    w_.mutable_grad().reset();
    if (device_.is_cuda()) {
      c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
    }
    return Now(device_) - began;
  }

 private:
  torch::Tensor Values(at::IntArrayRef shape, torch::ScalarType type) const {
    const torch::Tensor values = at::ones(shape, at::dtype(type).device(device_)) / 16;
    return values.contiguous(torch::MemoryFormat::ChannelsLast).requires_grad_(true);
  }

  const torch::Device device_;
  torch::Tensor x_, w_, gradient_;
};

// What the number depends on, tutti's own kernels among it, which are part of the program; not on
// who else computes here, which the two share.
std::string KeyOf(torch::Device device, const PrecisionFacts& facts, const std::string& build) {
  return absl::StrCat("a convolution's time in bf16 over fp32; ", facts.kind, ": ", facts.name,
                      "; flags: ", device.is_cpu() ? ThisProcessor().flags : "", "; libtorch ",
                      TORCH_VERSION, "; program ", build);
}

}  // namespace

double TimeOneLayer(torch::Device device) {
  const at::AutoGradMode with_gradients(true);
  const InOneThread alone;
  Layer fp32(device, torch::kFloat32), bf16(device, torch::kBFloat16);
  Seconds spent = fp32.Run() + bf16.Run();  // which make room, compile and tune
  Seconds least32 = Seconds::max(), least16 = Seconds::max();
  for (int round = 0; round < kRounds; ++round) {
    const Seconds a = fp32.Run(), b = bf16.Run();
    least32 = std::min(least32, a);
    least16 = std::min(least16, b);
    spent += a + b;
    if (spent > kLongEnough) break;
  }
  return least16 / least32;
}

void AddSlowdown(torch::Device device, PrecisionFacts& facts) {
  const std::string build = base::BuildIdOfThisProgram();
  // Nothing is kept by a program that cannot be told from what another build of it measured.
  const MeasurementCache here(build.empty() ? "" : CacheFolder(base::CurrentEnvironment()));
  const std::string key = KeyOf(device, facts, build);
  facts.slowdown = here.Find(key);
  if (facts.slowdown) return;
  try {
    facts.slowdown = TimeOneLayer(device);
  } catch (const std::exception&) {
    return;  // a GPU whose libraries have no such layer
  }
  here.Keep(key, *facts.slowdown);
}

PrecisionFacts InstructionFactsOf(torch::Device device) {
  PrecisionFacts facts;
  if (device.is_cuda()) {
    facts.kind = "GPU";
    const auto gpu = GpuOf(device.index());
    facts.name = gpu ? absl::StrCat(gpu->name, ", compute capability ", gpu->major, ".", gpu->minor)
                     : "of which CUDA's driver says nothing";
    facts.bf16 = gpu ? Bf16OfGpu(gpu->major) : Bf16::kInDoubt;
  } else {
    facts.kind = "processor";
    facts.name = NameOfThisProcessor();
    facts.bf16 = Bf16OfProcessor(InstructionsHere());
  }
  return facts;
}

PrecisionFacts FactsOf(torch::Device device) {
  PrecisionFacts facts = InstructionFactsOf(device);
  if (facts.bf16 == Bf16::kInDoubt) AddSlowdown(device, facts);
  return facts;
}

PrecisionTaken DetectPrecision(absl::string_view asked, torch::Device device) {
  if (asked == "fp32") return {"fp32", ""};
  PrecisionFacts facts = asked == "auto" ? FactsOf(device) : InstructionFactsOf(device);
  const std::string subject = absl::StrCat("this ", facts.kind);
  if (asked == "auto") return Taken(Choose(facts), subject);
  if (facts.bf16 == Bf16::kEmulated) {
    AddSlowdown(device, facts);
    base::Warn(WarningOf(facts, subject, Bf16Reason::kAskedFor));
  }
  return {"bf16", ""};
}

}  // namespace tutti::device
