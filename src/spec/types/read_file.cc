#include "spec/types/read_file.h"

#include <cstdint>

#include "base/file.h"

namespace tutti::spec {
namespace {

constexpr uint64_t kLargestFile = 1 << 20;

}  // namespace

absl::StatusOr<std::string> ReadFromDisk(const std::filesystem::path& file) {
  return base::ReadFile(file, kLargestFile);
}

}  // namespace tutti::spec
