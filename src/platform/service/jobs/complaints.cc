#include "platform/service/jobs/complaints.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace tutti::service {

void Complaints::Note(const std::string& about, const absl::Status& status,
                      const Subject& subject) {
  if (status.ok()) {
    by_text_.erase(about);
    return;
  }
  Complaint& complaint = by_text_[about];
  complaint.subject = subject;
  if (complaint.why == status.message()) return;
  complaint.why = std::string(status.message());
  spdlog::error("{}: {}", about, complaint.why);
}

void Complaints::ForgetJob(absl::string_view job) {
  std::erase_if(by_text_, [&](const auto& entry) { return entry.second.subject.job == job; });
}

void Complaints::ForgetAllocations(const std::function<bool(const AllocationAt&)>& gone) {
  std::erase_if(by_text_, [&](const auto& entry) { return gone(entry.second.subject.at); });
}

std::vector<std::string> Complaints::Lines() const {
  std::vector<std::string> lines;
  for (const auto& [about, complaint] : by_text_) {
    lines.push_back(absl::StrCat(about, ": ", complaint.why));
  }
  return lines;
}

}  // namespace tutti::service
