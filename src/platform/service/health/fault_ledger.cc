#include "platform/service/health/fault_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

constexpr size_t kWitnesses = 2;
constexpr size_t kMostWorks = 10'000;  // that are remembered

}  // namespace

std::string WorkOf(const store::Job& job) {
  if (!job.parent.empty()) return absl::StrCat("children of ", job.parent);
  return absl::StrCat(job.snapshot, "\n", job.spec.command);
}

std::string FaultLedger::NoteFault(const std::string& node, const Fault& fault) {
  if (places_.size() >= kMostWorks) places_.erase(places_.begin());
  std::set<std::string>& places = places_[fault.work];
  places.insert(node);
  if (places.size() > 1) {
    Blame(fault.work);
    return "";
  }
  std::vector<Fault>& faults = in_a_row_[node];
  std::erase_if(faults, [&](const Fault& known) { return known.work == fault.work; });
  faults.push_back(fault);
  if (faults.size() < kWitnesses) return "";
  for (const Fault& known : faults) witnesses_[node].insert(known.work);
  const Fault& before = faults[faults.size() - 2];
  return absl::StrCat("jobs ", before.job, " and ", fault.job,
                      " failed here one after the other: ", fault.what);
}

void FaultLedger::Blame(const std::string& work) {
  for (auto& [node, faults] : in_a_row_) {
    std::erase_if(faults, [&](const Fault& fault) { return fault.work == work; });
  }
  for (auto& [node, works] : witnesses_) {
    if (works.erase(work) > 0 && works.size() < kWitnesses) cleared_.push_back(node);
  }
  std::erase_if(witnesses_, [](const auto& entry) { return entry.second.size() < kWitnesses; });
}

void FaultLedger::NoteWell(const std::string& node, const std::string& work) {
  in_a_row_.erase(node);
  places_.erase(work);
}

void FaultLedger::Forget(const std::string& node) {
  in_a_row_.erase(node);
  witnesses_.erase(node);
}

std::vector<std::string> FaultLedger::TakeCleared() { return std::exchange(cleared_, {}); }

}  // namespace tutti::service
