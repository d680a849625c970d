// Writes shell texts that more than one step needs: to write files, and to start and stop daemons
// with systemd or without.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/cluster/host_facts.h"

namespace tutti::cluster {

// Returns a script after which the file has this content, and never a part of it; the owner is
// "user:group".
std::string WriteFileText(absl::string_view path, absl::string_view content, absl::string_view mode,
                          absl::string_view owner);

// Returns a script that stops `daemon`: munged, slurmdbd, slurmctld or slurmd. OK if it does not
// run.
std::string StopText(const HostFacts& host, absl::string_view daemon);
// Returns a script that starts a daemon, which must not run; with systemd it then starts at each
// boot, too. For slurmdbd it fails with the daemon's own words unless that comes to answer.
std::string StartText(const HostFacts& host, absl::string_view daemon);

// Returns a script that installs packages with apt, with further options of apt-get; it asks
// nothing.
std::string InstallText(const std::vector<std::string>& packages, absl::string_view options);

// Returns a script that runs on the controller. It gives the node no more jobs and waits for those
// that it has. A squeue that fails tells nothing, and is asked again.
std::string DrainText(const std::string& node, int wait_seconds);

// Returns a script that runs on the controller. It cancels all jobs and waits until they have left
// their nodes. It fails with those that have not in time.
std::string EndJobsText(absl::Duration patience);

}  // namespace tutti::cluster
