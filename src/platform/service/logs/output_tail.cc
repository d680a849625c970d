#include "platform/service/logs/output_tail.h"

#include <algorithm>

namespace tutti::service {

void OutputTail::Take(uint64_t offset, absl::string_view bytes) {
  if (offset + bytes.size() <= arrived_) return;
  if (offset > arrived_) last_.clear();
  bytes.remove_prefix(offset < arrived_ ? arrived_ - offset : 0);
  arrived_ = std::max(arrived_, offset) + bytes.size();
  bytes.remove_prefix(bytes.size() - std::min(bytes.size(), kKept));
  last_.append(bytes.data(), bytes.size());
  if (last_.size() > 2 * kKept) last_.erase(0, last_.size() - kKept);
}

std::string OutputTail::Last() const {
  absl::string_view last = last_;
  last.remove_prefix(last.size() - std::min(last.size(), kKept));
  if (arrived_ - begin_ == last.size()) return std::string(last);
  const size_t newline = last.find('\n');
  const bool whole_lines = newline != absl::string_view::npos && newline + 1 < last.size();
  return std::string(last.substr(whole_lines ? newline + 1 : 0));
}

}  // namespace tutti::service
