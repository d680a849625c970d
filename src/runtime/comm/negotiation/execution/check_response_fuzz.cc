// What rank 0 orders, to a rank that has submitted some things and not others: what is not refused
// is about tensors that this rank has, of as many rows as it has, in process sets that it is in.
#include <cstdint>
#include <cstdlib>

#include "runtime/comm/negotiation/coordination/coordination_message.h"
#include "runtime/comm/negotiation/execution/check_response.h"
#include "runtime/comm/negotiation/submissions.h"

namespace {

using namespace tutti::comm;  // NOLINT(google-build-using-namespace)

const std::vector<int> kRanks = {0, 1, 2};
constexpr int kRank = 1;

std::unique_ptr<Task> NewTask(Announcement announcement) {
  auto task = std::make_unique<Task>();
  task->submission.request = std::move(announcement.request);
  task->submission.rows = std::move(announcement.rows);
  return task;
}

// Only what the caller's side lets through is submitted.
bool MakesSense(const Announcement& announcement) {
  const Request& request = announcement.request;
  if (announcement.id != 0 || !Check(request).ok()) return false;
  const size_t rows = request.kind == Kind::kAllGather ? request.parts.size() : 0;
  if (announcement.rows.size() != rows) return false;
  for (size_t i = 0; i < rows; ++i) {
    if (!AreRows(request.parts[i], announcement.rows[i])) return false;
  }
  return true;
}

void Submit(Submissions& submissions, const Report& report) {
  for (const Announcement& announcement : report.announcements) {
    if (MakesSense(announcement)) submissions.Add(NewTask(announcement)).status().IgnoreError();
  }
}

// What a run takes for granted.
void Expect(const Response& response, const std::vector<std::unique_ptr<Task>>& tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Unit& unit = response.units[i];
    const Request& request = tasks[i] != nullptr ? tasks[i]->submission.request : unit.request;
    if (request.set != response.set || !Check(request).ok()) std::abort();
    if (request.kind != Kind::kAllGather) continue;
    const size_t parts = request.parts.size();
    if (tasks[i] == nullptr || unit.rows.size() != parts * kRanks.size()) std::abort();
    for (size_t part = 0; part < parts; ++part) {
      if (unit.rows[kRank * parts + part] != tasks[i]->submission.rows[part]) std::abort();
    }
  }
}

void Obey(Submissions& submissions, const Orders& orders) {
  for (const uint32_t id : orders.unknown) submissions.InFull(id);
  for (const Response& response : orders.responses) {
    std::vector<std::unique_ptr<Task>> tasks;
    for (const Unit& unit : response.units) tasks.push_back(submissions.Take(response.set, unit));
    const bool joined = submissions.Joined(response.set);
    if (CheckResponse(response, tasks, joined, kRanks, kRank).ok()) Expect(response, tasks);
  }
}

}  // namespace

// Reports, of which this rank submits what makes sense, and orders, each after its length.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Submissions submissions(2);
  while (size > 2) {
    const size_t length = std::min<size_t>(data[0] | data[1] << 8, size - 2);
    const absl::string_view bytes(reinterpret_cast<const char*>(data + 2), length);
    const auto report = ReadReport(bytes);
    if (report.ok()) Submit(submissions, *report);
    const auto orders = ReadOrders(bytes);
    if (orders.ok()) Obey(submissions, *orders);
    data += 2 + length;
    size -= 2 + length;
  }
  return 0;
}
