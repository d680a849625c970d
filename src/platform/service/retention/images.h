// Images lists and removes images of podman's that launchers have pulled or built for jobs, by the
// records that they keep of them (container/kept_images.h): in the service's folder those of this
// machine, whose podman is called here; in a cluster's folder those of its nodes, each of which has
// a storage that only what runs there reaches. One of these is marked, and the launcher of the next
// job on that node removes it. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/service/retention/in_use.h"
#include "platform/service/retention/removal.h"

namespace tutti::service {

class Images {
 public:
  // Finds those of this machine.
  explicit Images(SharedState& state) : Images(state, "", state.options.directory) {}
  // Finds those of the nodes of the compute `place`, whose folder is `root`.
  Images(SharedState& state, std::string place, const std::filesystem::path& root)
      : state_(state), place_(std::move(place)), folder_(root / "environments") {}

  // Returns all of them, each node's by itself. Reads files, also of builds that jobs wait for.
  std::vector<Kept> List(const InUse& in_use) const;
  // Removes it, or marks it; false if it stays, since it was used after it was listed, or a
  // container has it. May take minutes.
  absl::StatusOr<bool> Remove(const Kept& kept) const;

 private:
  std::string PlaceOf(const std::string& host) const;

  SharedState& state_;
  const std::string place_;
  const std::filesystem::path folder_;
};

}  // namespace tutti::service
