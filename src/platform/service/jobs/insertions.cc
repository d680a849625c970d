#include "platform/service/jobs/insertions.h"

#include "absl/strings/str_cat.h"

namespace tutti::service {

absl::Status Insertions::Begin(const std::string& id) {
  if (ids_.insert(id).second) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("there is a job \"", id, "\" already"));
}

void Insertions::End(const std::string& id) {
  ids_.erase(id);
  state_.changed.SignalAll();
}

void Insertions::Await(absl::string_view id) {
  while (ids_.contains(id)) state_.changed.Wait(&state_.mutex);
}

}  // namespace tutti::service
