// Names, marks, finds and removes the containers of jobs, one for each rank on a node. Podman's
// monitor keeps a container whatever becomes of the launcher that began it, so whoever finds that
// launcher dead removes what it left, by what is known of it:
//
//   FOLDER/containers        the names of an allocation's containers on a node, a line each: is
//                            there from before the first one begins until all of them are gone
//   tutti.folder, tutti.root labels of a container: FOLDER, and the folder of the engine that
//   FOLDER
//                            is of (ROOT/nI/ALLOCATION, ROOT/ALLOCATION/I)
//
// A name has a hash of FOLDER, so that two services that share podman's storage never take a
// container for their own that is the other's. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::container {

// Returns the names of the containers of an allocation's `count` ranks on the node of `folder`:
// "tutti-ALLOCATION-HASH-RANK", with the rank's number on the node.
std::vector<std::string> JobContainerNames(absl::string_view allocation,
                                           const std::filesystem::path& folder, int count);

// Returns the options of `podman run` that mark a container of that folder.
std::vector<std::string> JobContainerLabels(const std::filesystem::path& folder);

// Notes in the folder that containers of these names are about to begin.
absl::Status NoteContainers(const std::filesystem::path& folder,
                            const std::vector<std::string>& names);
// Returns whether they may still be there, also where the folder does not answer. Quick.
bool HasNoteOfContainers(const std::filesystem::path& folder);
// Removes the note, as podman has none of them any more, after it has ended what runc has left of
// one that was being made (container_processes.h). DeadlineExceeded, or errors of the file system.
absl::Status ForgetContainers(const std::filesystem::path& folder);

// Removes the containers of these names, with whatever runs in them, and what a podman that was
// killed has left of them. OK if there are none. Takes up to minutes where podman hangs. NotFound:
// there is no podman; Internal: what it said; Cancelled once `cancelled` is set.
absl::Status RemoveContainers(const std::set<std::string>& names,
                              const std::atomic<bool>& cancelled);

// Kills what runs in the containers that launchers have left in those folders, by their notes. Only
// where no launcher of the folders lives; for who has several to go through. Reads /proc, and so
// hangs with a process that does not let its memory be read.
void KillLeftContainers(const std::vector<std::filesystem::path>& folders);

// Removes those that a launcher has left in that folder, by its note and by their labels, and then
// the note. Only where no launcher of the folder lives. Errors as of RemoveContainers.
absl::Status RemoveLeftContainers(const std::filesystem::path& folder,
                                  const std::atomic<bool>& cancelled);

// Removes those of the engine whose folder is `root` that no allocation's note speaks of: their
// folders are gone. Returns how many there were. Errors as of RemoveContainers.
absl::StatusOr<size_t> RemoveStrayContainers(const std::filesystem::path& root,
                                             const std::atomic<bool>& cancelled);

}  // namespace tutti::container
