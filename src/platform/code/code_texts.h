// Reads the files of a code archive as texts, to be shown. Nothing is written, and hostile archives
// end at the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tutti::code {

struct TextLimits {
  size_t files = 2000;             // that are listed
  size_t text = 256 << 10;         // bytes of one
  size_t texts = 8 << 20;          // bytes of all
  uint64_t unpacked = 1ull << 30;  // bytes of the archive that are looked at
};

struct CodeTexts {
  struct File {
    std::string path;
    uint64_t bytes = 0;
    std::optional<std::string> text;  // of UTF-8 without NUL, while the limits allow it
  };
  std::vector<File> files;  // by path
  // How many others there are. What lies beyond TextLimits::unpacked counts as one.
  size_t left_out = 0;
};

// Returns the files, without links and folders: the first in the archive, which tutti packs by
// path. Errors are those of CodeArchive, but for what is too large.
absl::StatusOr<CodeTexts> ReadCodeTexts(const std::filesystem::path& archive,
                                        const TextLimits& limits = {});

}  // namespace tutti::code
