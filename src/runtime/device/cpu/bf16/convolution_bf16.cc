#include "runtime/device/cpu/bf16/convolution_bf16.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <atomic>

#include "base/machine/instruction_set.h"
#include "runtime/device/cpu/bf16/amx.h"
#include "runtime/device/cpu/bf16/convolution_kinds.h"

namespace tutti::device::cpu {
namespace {

// Tiles have two vectors of 16 channels, or one if there are no more.
bool HasVectorsOf(int64_t channels) {
  return channels == 16 || (channels % 32 == 0 && channels <= 8192);
}

constexpr int64_t kFewestPatches = 64;
std::atomic<bool> winograd = false;

}  // namespace

bool Takes(const Convolution& c) {
  if (!base::MayUseAvx512Bf16() || c.images < 1 || c.height < 1 || c.width < 1 || c.inputs < 1 ||
      c.outputs < 1 || !HasVectorsOf(c.outputs) || (c.stride != 1 && c.stride != 2)) {
    return false;
  }
  // Too few channels for tiles of AMX, which oneDNN fills by other means.
  if (HasAmx() && (c.inputs < 32 || c.outputs < 32)) return false;
  if (c.is_stem()) return (c.kernel == 3 || c.kernel == 7) && c.kernel * c.inputs <= 24;
  return HasVectorsOf(c.inputs) && (c.kernel == 1 || c.kernel == 3);
}

void UseWinograd(bool use) { winograd = use; }

bool GoesByWinograd(const Convolution& c) {
  if (!winograd || !base::MayUseAvx512Bf16() || HasAmx() || c.is_stem() || c.kernel != 3 ||
      c.stride != 1 || c.inputs < 32 || c.outputs < 32) {
    return false;
  }
  // Patches that hang over an image's end cost as much as others, and weights are transformed
  // however few there are.
  const int64_t of_image = (c.height + 1) / 2 * ((c.width + 1) / 2);
  return 4 * of_image <= c.height * c.width * 3 / 2 && c.images * of_image >= kFewestPatches;
}

void ConvolutionForward(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                        int threads) {
  if (c.kernel == 1) return ForwardOfPixels(c, x, w, y, threads);
  if (GoesByWinograd(c)) return WinogradForward(c, x, w, y, threads);
  ForwardOfImages(c, x, w, y, threads);
}

void ConvolutionInputGradient(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                              uint16_t* dx, int threads) {
  if (c.kernel == 1) return InputGradientOfPixels(c, dy, w, dx, threads);
  if (GoesByWinograd(c)) return WinogradInputGradient(c, dy, w, dx, threads);
  InputGradientOfImages(c, dy, w, dx, threads);
}

void ConvolutionWeightGradient(const Convolution& c, const uint16_t* x, const uint16_t* dy,
                               uint16_t* dw, int threads) {
  if (HasAmx() && !c.is_stem()) return AmxWeightGradient(c, x, dy, dw, threads);
  if (GoesByWinograd(c)) return WinogradWeightGradient(c, x, dy, dw, threads);
  DirectWeightGradient(c, x, dy, dw, threads);
}

}  // namespace tutti::device::cpu
#else

namespace tutti::device::cpu {

bool Takes(const Convolution&) { return false; }
void UseWinograd(bool) {}
bool GoesByWinograd(const Convolution&) { return false; }
void ConvolutionForward(const Convolution&, const uint16_t*, const uint16_t*, uint16_t*, int) {}
void ConvolutionInputGradient(const Convolution&, const uint16_t*, const uint16_t*, uint16_t*,
                              int) {}
void ConvolutionWeightGradient(const Convolution&, const uint16_t*, const uint16_t*, uint16_t*,
                               int) {}

}  // namespace tutti::device::cpu
#endif
