#include "platform/client/jobs/whole_job.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::client {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr int kItemsPerPage = 1000;
constexpr int kMostLevels = 20;  // of children

// Returns the object's array of that name; null if it has none.
Ordered* ArrayIn(Ordered& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? &*found : nullptr;
}

absl::StatusOr<Ordered> Parsed(const absl::StatusOr<std::string>& text, const char* list) {
  TUTTI_RETURN_IF_ERROR(text.status());
  Ordered page = Ordered::parse(*text, nullptr, /*allow_exceptions=*/false);
  const Ordered* const items = ArrayIn(page, list);
  if (items != nullptr && !items->empty()) return page;
  return absl::InternalError(absl::StrCat("the service's answer has no \"", list, "\""));
}

// Returns the cursor of the trials that `job` does not list; "" if there are none.
std::string TakeNext(Ordered& job) {
  const auto trials = job.find("trials");
  if (trials == job.end() || !trials->is_object()) return "";
  const auto next = trials->find("next");
  if (next == trials->end() || !next->is_string()) return "";
  std::string cursor = next->get<std::string>();
  *next = nullptr;
  return cursor;
}

absl::Status AddTrials(ServiceClient& service, Ordered& job, int depth) {
  Ordered* const children = ArrayIn(job, "children");
  if (children == nullptr || depth > kMostLevels) return absl::OkStatus();
  for (Ordered& child : *children) TUTTI_RETURN_IF_ERROR(AddTrials(service, child, depth + 1));
  const auto id = job.find("id");
  std::string next = TakeNext(job);
  while (!next.empty() && id != job.end() && id->is_string()) {
    TUTTI_ASSIGN_OR_RETURN(
        Ordered page,
        Parsed(service.Trials(id->get<std::string>(), next, kItemsPerPage), "trials"));
    for (Ordered& trial : page["trials"]) children->push_back(std::move(trial));
    next = page.value("next", Ordered()).is_string() ? page["next"].get<std::string>() : "";
  }
  return absl::OkStatus();
}

int64_t BeforeIn(const Ordered& page, const char* name) {
  const auto before = page.find(name);
  return before != page.end() && before->is_number_integer() ? before->get<int64_t>() : 0;
}

absl::Status AddEvents(ServiceClient& service, const std::string& id, Ordered& job) {
  Ordered* const events = ArrayIn(job, "events");
  if (events == nullptr) return absl::OkStatus();
  for (int64_t before = BeforeIn(job, "events_before"); before > 0;) {
    TUTTI_ASSIGN_OR_RETURN(const Ordered page,
                           Parsed(service.Events(id, before, kItemsPerPage), "events"));
    events->insert(events->begin(), page["events"].begin(), page["events"].end());
    before = BeforeIn(page, "before");
  }
  job["events_before"] = nullptr;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> WholeJob(ServiceClient& service, const std::string& id) {
  TUTTI_ASSIGN_OR_RETURN(std::string text, service.Job(id));
  Ordered job = Ordered::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!job.is_object()) return text;  // whoever reads it says so
  TUTTI_RETURN_IF_ERROR(AddTrials(service, job, 0));
  TUTTI_RETURN_IF_ERROR(AddEvents(service, id, job));
  return job.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace tutti::client
