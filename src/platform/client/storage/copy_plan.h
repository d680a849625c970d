// Decides what of one place goes where in another. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/client/storage/storage_side.h"

namespace tutti::client {

// CopyItem is one file of a copy.
struct CopyItem {
  std::string from, to;  // relative to the folders of both sides
  int64_t bytes = 0;
  double modified = 0;  // at the source, seconds since 1970; 0: not known

  bool operator==(const CopyItem&) const = default;
};

// TargetKind is what the target is before anything is copied.
enum class TargetKind { kNothing, kFile, kFolder };

// LeftOut is what lies at the source and is not copied.
struct LeftOut {
  std::string from, to;  // as of CopyItem
  std::string why;

  bool operator==(const LeftOut&) const = default;
};

struct CopyPlan {
  std::string from_base, to_base;  // folders of the two sides
  std::vector<CopyItem> items;
  std::vector<LeftOut> left_out = {};
};

struct CopyShape {
  bool recursive = false;        // a folder may be copied
  bool several_sources = false;  // each goes into the target by its name
};

// A file goes to the target's path, or into it if it is a folder or ends with a slash; what is in a
// folder, or what a pattern matches, goes into the target, which is never given the folder's own
// name, whether it is there or not. With several sources each has its name in the target. Left out
// is what is no object, and what no file can be called: all goes by files of this machine.
// InvalidArgument, with what to do: a folder without `recursive`, a folder to a file, a folder of a
// store into itself.
absl::StatusOr<CopyPlan> PlanCopy(const StorageAddress& from, const Listing& listing,
                                  const StorageAddress& to, TargetKind target,
                                  const CopyShape& shape);

// PlannedCopy is one source of a command, and what of it is copied.
struct PlannedCopy {
  const StorageAddress* from;
  const CopyPlan* plan;
};
// InvalidArgument where files would be lost: two of the sources have one target, or a target is a
// file that is a source itself, be it by another name of its folder. Asks this machine's file
// system.
absl::Status CheckTargets(const std::vector<PlannedCopy>& copies, const StorageAddress& to);
// InvalidArgument if one of `others`, which a sync is to remove from the folder `to`, is a source.
absl::Status CheckOthers(const PlannedCopy& copy, const StorageAddress& to,
                         const std::vector<std::string>& others);

// Leaves out what the target has already: a file with the same size that was changed there at the
// same time or later, as aws s3 sync and rclone's --update tell. `there`: by path.
using ObjectsByPath = std::map<std::string, storage::StoredObject>;
ObjectsByPath ByPath(std::vector<storage::StoredObject> objects);
void LeaveOutSame(const ObjectsByPath& there, CopyPlan& plan);
// Returns what the target has and the plan, before that, has neither to copy nor left out.
std::vector<std::string> NotInPlan(const ObjectsByPath& there, const CopyPlan& plan);

// BatchLimits bound the next items from `begin` on that go together: at most so many, and more than
// one only while they have at most so many bytes.
struct BatchLimits {
  size_t files = 2000;
  int64_t bytes = int64_t{1} << 30;
};
size_t EndOfBatch(const std::vector<CopyItem>& items, size_t begin, const BatchLimits& limits);

}  // namespace tutti::client
