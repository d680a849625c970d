// Lists what a job has left on this node for its user: everything under work/outputs as outputs/…,
// each declared output as outputs/NAME/…, and what it put into work/logs.
#pragma once

#include <filesystem>
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
};

// Links to files within the job's own folders (its working folder and those of its declared
// outputs, also of the attempt before) are followed. So are those to folders within the same
// output's folder, but not again within what a link has led to, which bounds what is sent. Other
// links, which are named with where they lead, pipes, sockets and devices are left out, and so is,
// with the error, what cannot be read. A folder in which nothing lies is left out too, but not the
// folder of an output itself. Called once for a job's end: what it gives is sent, and is what the
// user is told of.
Results ResultsOf(const spec::LaunchPlan& plan);

// Returns the same of one declared output alone, as outputs/NAME/….
Results FilesOfOutput(const spec::LaunchPlan& plan, const std::string& name);

// Tells the user which results were left out; "" if none were.
std::string LeftOutNote(const Results& results);

}  // namespace tutti::launch
