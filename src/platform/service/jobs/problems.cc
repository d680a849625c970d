#include "platform/service/jobs/problems.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace tutti::service {

void Problems::Note(const std::string& about, const absl::Status& status, const Subject& subject) {
  if (status.ok()) {
    by_text_.erase(about);
    return;
  }
  Problem& problem = by_text_[about];
  problem.subject = subject;
  if (problem.why == status.message()) return;
  problem.why = std::string(status.message());
  spdlog::error("{}: {}", about, problem.why);
}

void Problems::ForgetJob(absl::string_view job) {
  std::erase_if(by_text_, [&](const auto& entry) { return entry.second.subject.job == job; });
}

void Problems::ForgetAllocations(const std::function<bool(const AllocationAt&)>& gone) {
  std::erase_if(by_text_, [&](const auto& entry) { return gone(entry.second.subject.at); });
}

std::vector<std::string> Problems::Lines() const {
  std::vector<std::string> lines;
  for (const auto& [about, problem] : by_text_) {
    lines.push_back(absl::StrCat(about, ": ", problem.why));
  }
  return lines;
}

}  // namespace tutti::service
