// Reads CIFAR-10's binary files: records of one byte of label and 32 x 32 pixels, red, green, blue.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

inline constexpr size_t kCifarPixels = size_t{32} * 32 * 3;
inline constexpr int kCifarClasses = 10;

// Calls `take` with each record's label (0 to 9) and pixels (kCifarPixels bytes in `file`).
// DataLoss: empty or cut short; InvalidArgument: a label above 9 (gives the record's number).
absl::Status ForEachCifarRecord(absl::string_view file,
                                const std::function<void(int32_t label, const char* pixels)>& take);

}  // namespace tutti::data
