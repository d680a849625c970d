// Lists what a job has left on this node for its user: everything under work/outputs as outputs/…,
// each declared output as outputs/NAME/…, and what it put into work/logs.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

struct Result {
  std::filesystem::path file;
  std::string path;  // of the job: "outputs/model/x"
};

struct Results {
  std::vector<Result> files;
  std::vector<std::string> left_out;  // "outputs/out (a link out of its folder, to /etc)"
  absl::Status failure;               // the first of those folders that could not be read
  // The first error of the disk among what was left out: there may be more than is listed.
  absl::Status unread = absl::OkStatus();
  // The folders in which nothing lies here; another node may have files there.
  std::vector<std::string> empty_folders = {};
};

// Links to files within the job's own folders (its working folder and those of its declared
// outputs, also of the attempt before) are followed. So are those to folders within the same
// output's folder, but not again within what a link has led to, which bounds what is sent. Other
// links, which are named with where they lead, pipes, sockets and devices are left out, and so is,
// with the error, what cannot be read. The folder of an output itself is none of the empty ones.
// Called once for a job's end: what it gives is sent, and is what the user is told of.
Results ResultsOf(const spec::LaunchPlan& plan);

// Returns the same of one declared output alone, as outputs/NAME/….
Results FilesOfOutput(const spec::LaunchPlan& plan, const std::string& name);

// Adds to an event what was left out of this node's results, for the service, which tells the user
// of all nodes' at once. Where there are other nodes it needs the folders that have files, too.
void DescribeLeftOut(const Results& results, bool has_other_nodes, nlohmann::json& event);

}  // namespace tutti::launch
