// OutputTail keeps the end of a stream once no more of it fits: its last bytes, in memory, and how
// many are left out before them. Offsets count from the stream's begin. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::service {

class OutputTail {
 public:
  static constexpr size_t kKept = 64 << 10;

  // Keeps the end of what comes from the offset `begin` on.
  explicit OutputTail(uint64_t begin) : begin_(begin), arrived_(begin) {}

  // Takes `bytes` of the stream from `offset` on. What has come already is skipped; what lies
  // between counts as left out: a service that was started anew does not know it.
  void Take(uint64_t offset, absl::string_view bytes);

  uint64_t arrived() const { return arrived_; }
  // Returns not more than kKept bytes, from the beginning of a line on if anything is left out.
  std::string Last() const;
  uint64_t LeftOut() const { return arrived_ - begin_ - Last().size(); }

 private:
  const uint64_t begin_;
  uint64_t arrived_;
  std::string last_;  // at most twice kKept
};

}  // namespace tutti::service
