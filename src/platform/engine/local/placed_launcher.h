// PlacedLauncher starts, finds again and ends the launcher of one node of an allocation. All that
// is known of it lies in the allocation's folder; a job that removes that loses its files, but is
// neither taken for dead nor run again while this process lives. Not thread-safe.
#pragma once

#include <filesystem>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/process/child_process.h"
#include "base/threads/janitor.h"
#include "platform/engine/engine.h"
#include "platform/engine/local/launcher_process.h"

namespace tutti::engine {

class PlacedLauncher {
 public:
  // `folder` is the allocation's on that node; it need not exist. `part`: what it has of the node,
  // as far as that is known.
  explicit PlacedLauncher(std::filesystem::path folder, spec::NodePart part = {})
      : folder_(std::move(folder)), part_(std::move(part)) {}

  const std::filesystem::path& folder() const { return folder_; }
  // Returns the node as in AllocationState.
  Node Occupied() const;
  bool HasBegun() const;                       // a launcher has taken the plan
  bool IsDone() const;                         // and has delivered everything
  bool Launched() const { return launched_; }  // by this process
  bool HasPlan() const;
  bool Alive();

  absl::Status MakeFolder() const;
  // Makes it of `ahead`, if that is there: to make its parts on a disk takes longer than all else
  // before a job's first process.
  absl::Status MakeFolderOf(const std::filesystem::path& ahead) const;
  // Writes the plan before a launcher is told of it. It need not be on the disk: after a power
  // failure it is of no more use, since launchers run only plans of their own start.
  absl::Status WritePlan(absl::string_view plan) const;
  // Starts the program of `options` (arguments, environment, before_exec), with its log in the
  // folder, in a session of its own.
  absl::Status Launch(base::ChildOptions options);
  // Does the same with one that waited for a plan and has been told to take this one.
  absl::Status TakeOver(base::ChildProcess standby, const LauncherProcess& own);
  // Asks it to stop; OK if it has ended.
  absl::Status Stop(absl::Duration grace) const;
  // Ends it at once, with all below it. Should it be there base::kUnkillable later, it counts as
  // ended.
  absl::Status Kill();
  // Takes Launch back, with the folder. Only while no process of the job can run yet.
  absl::Status Undo();
  // Has the folder of a launcher that has ended removed: it has another name at once, which
  // IsBeingRemoved knows, also after a crash.
  absl::Status Remove(base::Janitor& janitor) const;
  static bool IsBeingRemoved(const std::filesystem::path& folder);

 private:
  struct Killed {
    LauncherProcess process;
    base::Deadline patience;  // after it the process counts as ended
  };

  void Keep(base::ChildProcess child, const LauncherProcess& own);
  // Returns the live one that the files name.
  std::optional<LauncherProcess> Find() const;

  std::filesystem::path folder_;
  spec::NodePart part_;
  std::optional<base::ChildProcess> child_;  // when this process started it, until it has ended
  LauncherProcess own_;                      // of child_
  bool launched_ = false;
  std::optional<Killed> killed_;
};

}  // namespace tutti::engine
