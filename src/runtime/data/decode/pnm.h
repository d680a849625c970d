// Parses and writes Netpbm's plain containers of pixels, P5 (grey) and P6 (RGB) with 8 bits: sets
// that hold bare pixels (CIFAR-10, MNIST) give their images so, and they are packed into shards so
// without loss.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

struct Pnm {
  ImageSize size;
  int channels = 0;           // 1 or 3
  absl::string_view samples;  // size.width * size.height * channels, in the file's memory
};

// Parses a file. InvalidArgument: not P5 or P6, other than 8 bits, more than `max_pixels`;
// DataLoss: cut short or longer than its header says.
absl::StatusOr<Pnm> ParsePnm(absl::string_view file, int64_t max_pixels);

// Returns "P6\n32 32\n255\n": what stands before the samples.
std::string PnmHeader(ImageSize size, int channels);

}  // namespace tutti::data
