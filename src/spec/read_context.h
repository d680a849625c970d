// What a reader of files has at hand beside the text. Inside the room spec only.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "spec/job_file.h"
#include "spec/site.h"

namespace tutti::spec {

inline constexpr int kMostFiles = 512;  // that a file and those it names bring in

struct ReadContext {
  std::filesystem::path base;  // absolute: relative paths count from it
  const Site& site;
  const ReadFileFunction& read_file;
  int& files_left;  // how many more may be read: files may name each other

  // The content of a file that the text names.
  absl::StatusOr<std::string> Read(const std::filesystem::path& file) const {
    if (--files_left < 0) return absl::ResourceExhaustedError("too many files are named");
    return read_file(file);
  }
  ReadContext Below(std::filesystem::path folder) const {
    return {std::move(folder), site, read_file, files_left};
  }
};

}  // namespace tutti::spec
