#include "platform/client/storage/copy_plan.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/storage/transfer/object_names.h"
#include "spec/types/data_place.h"

namespace tutti::client {
namespace {

constexpr char kOwnPrefix[] = ".tutti-";  // of what tutti's programs keep beside files
constexpr double kClocksDiffer = 1;       // seconds: some stores tell no fractions

// Returns whether tutti has made it beside files, and it says nothing elsewhere: a mark, a list, or
// a part of a file.
bool IsMark(absl::string_view path) {
  constexpr std::array<absl::string_view, 7> kMarks = {
      ".tutti-boot", ".tutti-copy-", ".tutti-download", ".tutti-objects",
      ".tutti-part", ".tutti-probe", ".tutti-put-"};
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](absl::string_view mark) { return absl::StartsWith(path, mark); });
}

// Returns whether both name places of one container, a job, or this machine.
bool SameHolder(const StorageAddress& a, const StorageAddress& b) {
  if (a.is_job() || b.is_job()) return a.is_job() && b.is_job() && a.job == b.job;
  return a.is_local() ? b.is_local() : !b.is_local() && StoreOf(a.place) == StoreOf(b.place);
}

absl::Status CheckApart(const StorageAddress& from, const StorageAddress& to,
                        const CopyPlan& plan) {
  if (!SameHolder(from, to)) return absl::OkStatus();
  for (const CopyItem& item : plan.items) {
    if (JoinedPath(plan.from_base, item.from) != JoinedPath(plan.to_base, item.to)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(from.text, " and ", to.text, " are the same: nothing was copied"));
  }
  const std::string inner = absl::StrCat(plan.from_base, plan.from_base.empty() ? "" : "/");
  const bool is_inside = plan.items.size() > 1 && plan.to_base != plan.from_base &&
                         absl::StartsWith(plan.to_base, inner);
  if (!is_inside) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(to.text, " lies in ", from.text, ", which would be copied into itself"));
}

// Amazon's buckets have one namespace, whichever of its servers is asked; Google's are reached as
// S3's too; one Azure account as blobs and as a data lake.
std::string OneStore(const spec::DataPlace& place) {
  switch (place.kind) {
    case spec::StoreKind::kAzureBlob:
    case spec::StoreKind::kAzureDataLake:
      return absl::StrCat("azure ", place.account, "/", place.container);
    case spec::StoreKind::kS3:
      if (place.endpoint.empty() || absl::StrContains(place.endpoint, ".amazonaws.com")) {
        return absl::StrCat("amazon ", place.container);
      }
      if (absl::StrContains(place.endpoint, "storage.googleapis.com")) {
        return absl::StrCat("google ", place.container);
      }
      return StoreOf(place);
    case spec::StoreKind::kGcs:
      return place.endpoint.empty() || absl::StrContains(place.endpoint, "storage.googleapis.com")
                 ? absl::StrCat("google ", place.container)
                 : StoreOf(place);
    default:
      return StoreOf(place);
  }
}

// Returns a name that two addresses of one file share, whichever folders lead there. A link that is
// the file itself has its own: what is put there takes the link's place.
std::string OneName(const StorageAddress& address, const std::string& base,
                    const std::string& path) {
  const std::string full = JoinedPath(base, path);
  if (address.is_job()) return absl::StrCat("job ", address.job, "/", full);
  if (!address.is_local()) return absl::StrCat(OneStore(address.place), "/", full);
  std::error_code error;
  const std::filesystem::path file(full);
  const auto folder = std::filesystem::weakly_canonical(file.parent_path(), error);
  return absl::StrCat("here ", error ? full : (folder / file.filename()).native());
}

// The names by which a source is known: that of what it is a link to, too.
void AddSources(const PlannedCopy& copy, std::set<std::string>& names) {
  for (const CopyItem& item : copy.plan->items) {
    names.insert(OneName(*copy.from, copy.plan->from_base, item.from));
    if (!copy.from->is_local()) continue;
    std::error_code error;
    const auto real =
        std::filesystem::canonical(JoinedPath(copy.plan->from_base, item.from), error);
    if (!error) names.insert(absl::StrCat("here ", real.native()));
  }
}

}  // namespace

absl::Status CheckTargets(const std::vector<PlannedCopy>& copies, const StorageAddress& to) {
  std::set<std::string> sources, targets;
  for (const PlannedCopy& copy : copies) AddSources(copy, sources);
  for (const PlannedCopy& copy : copies) {
    for (const CopyItem& item : copy.plan->items) {
      const std::string target = JoinedPath(copy.plan->to_base, item.to);
      const std::string name = OneName(to, copy.plan->to_base, item.to);
      if (sources.contains(name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            target, " is to be copied itself, and would be replaced: nothing was copied"));
      }
      if (!targets.insert(name).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("two of the sources would become ", target, ": nothing was copied"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOthers(const PlannedCopy& copy, const StorageAddress& to,
                         const std::vector<std::string>& others) {
  std::set<std::string> sources;
  AddSources(copy, sources);
  for (const std::string& path : others) {
    if (!sources.contains(OneName(to, to.path, path))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(JoinedPath(to.path, path), " is to be copied itself, and would be removed: ",
                     copy.from->text, " lies in ", to.text, "; nothing was copied"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CopyPlan> PlanCopy(const StorageAddress& from, const Listing& listing,
                                  const StorageAddress& to, TargetKind target,
                                  const CopyShape& shape) {
  const bool is_pattern = !from.is_job() && from.place.is_pattern;
  if (!listing.is_file && !is_pattern && !shape.recursive) {
    return absl::InvalidArgumentError(
        absl::StrCat(from.text, " is a folder: say -r to copy all that is in it"));
  }
  const bool into_folder = target == TargetKind::kFolder || to.ends_with_slash || to.path.empty() ||
                           shape.several_sources;
  const bool needs_folder = !listing.is_file || shape.several_sources;
  if (target == TargetKind::kFile && (needs_folder || to.ends_with_slash)) {
    return absl::InvalidArgumentError(
        absl::StrCat(to.text, " is a file, and must be a folder: name another target"));
  }
  CopyPlan plan{listing.base, to.path, {}};
  if (listing.is_file && !into_folder) plan.to_base = FolderPart(to.path);
  const std::string name = shape.several_sources && !listing.is_file && !is_pattern
                               ? NamePart(from.path)
                               : std::string();
  const auto target_of = [&](const std::string& path) {
    return listing.is_file && !into_folder ? NamePart(to.path) : JoinedPath(name, path);
  };
  std::map<std::string, std::string> refused;  // why, by path
  for (const storage::StoredObject& object : listing.left_out) {
    plan.left_out.push_back({object.path, target_of(object.path), object.left_out});
  }
  for (const storage::RefusedName& one : storage::RefusedNames(listing.objects)) {
    refused[one.path] = one.why;
  }
  for (const storage::StoredObject& object : listing.objects) {
    if (IsMark(object.path) || absl::EndsWith(object.path, "/")) continue;
    const std::string to_path = target_of(object.path);
    if (const auto found = refused.find(object.path); found != refused.end()) {
      plan.left_out.push_back({object.path, to_path, found->second});
    } else {
      plan.items.push_back({object.path, to_path, object.bytes, object.modified});
    }
  }
  absl::Status apart = CheckApart(from, to, plan);
  if (!apart.ok()) return apart;
  return plan;
}

ObjectsByPath ByPath(std::vector<storage::StoredObject> objects) {
  ObjectsByPath by_path;
  for (storage::StoredObject& object : objects) {
    std::string path = object.path;
    by_path[std::move(path)] = std::move(object);
  }
  return by_path;
}

void LeaveOutSame(const ObjectsByPath& there, CopyPlan& plan) {
  std::erase_if(plan.items, [&](const CopyItem& item) {
    const auto found = there.find(item.to);
    if (found == there.end() || found->second.bytes != item.bytes) return false;
    // A job's files have no time.
    return item.modified > 0 && item.modified <= found->second.modified + kClocksDiffer;
  });
}

std::vector<std::string> NotInPlan(const ObjectsByPath& there, const CopyPlan& plan) {
  std::map<std::string, const CopyItem*> wanted;
  for (const CopyItem& item : plan.items) wanted[item.to] = &item;
  std::set<std::string> left_out;
  for (const LeftOut& one : plan.left_out) left_out.insert(one.to);
  std::vector<std::string> others;
  for (const auto& [path, object] : there) {
    const bool is_of_source = wanted.contains(path) || left_out.contains(path);
    if (!is_of_source && !absl::StartsWith(path, kOwnPrefix)) others.push_back(path);
  }
  return others;
}

size_t EndOfBatch(const std::vector<CopyItem>& items, size_t begin, const BatchLimits& limits) {
  int64_t bytes = 0;
  size_t end = begin;
  while (end < items.size() && end - begin < limits.files) {
    bytes += items[end].bytes;
    if (end > begin && bytes > limits.bytes) break;
    ++end;
  }
  return end;
}

}  // namespace tutti::client
