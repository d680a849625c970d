// Makes a tar archive (ustar) in memory. Not thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::data {

class TarWriter {
 public:
  // Adds a member; `name` has at most 100 bytes, `content` at most 8 GiB.
  void Add(absl::string_view name, absl::string_view content);
  size_t size() const { return archive_.size(); }
  // Returns the archive with its closing blocks; the writer is empty then.
  std::string Finish();

 private:
  std::string archive_;
};

}  // namespace tutti::data
