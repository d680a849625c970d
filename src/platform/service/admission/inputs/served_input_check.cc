#include "platform/service/admission/inputs/served_input_check.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "spec/data/file_server.h"

namespace tutti::service {
namespace {

struct ReadByNfs {
  const spec::JobSpec* job;
  const std::string* name;
  const spec::Input* input;
};

void Collect(const spec::JobSpec& job, std::vector<ReadByNfs>& found) {
  const bool is_on_cluster = job.compute != "local" && !job.compute.empty();
  // A pipeline's are read by its steps.
  const bool reads = is_on_cluster && job.kind != spec::JobKind::kPipeline;
  for (const auto& [name, input] : job.inputs) {
    if (!reads || !input.place || input.place->kind != spec::StoreKind::kNfs) continue;
    found.push_back({&job, &name, &input});
  }
  for (const spec::Step& step : job.steps) Collect(step.job, found);
}

}  // namespace

void CheckServedInputs(const spec::JobSpec& job, const std::filesystem::path& home,
                       base::Faults& faults) {
  std::vector<ReadByNfs> inputs;
  Collect(job, inputs);
  if (inputs.empty()) return;
  const auto servers = spec::ReadFileServers(home);
  if (!servers.ok()) return;  // the service logs it, and serves on what it did
  for (const ReadByNfs& read : inputs) {
    const std::string store = spec::StoreOf(*read.input->place);
    const auto server = std::find_if(servers->begin(), servers->end(), [&](const auto& entry) {
      return spec::NamesEachNode(entry.second) &&
             spec::StoreOf(spec::PlaceOf(entry.second)) == store;
    });
    if (server == servers->end()) continue;
    faults.Add(absl::InvalidArgumentError(absl::StrCat(
        read.input->location.file, ":", read.input->location.line, ": input \"", *read.name,
        "\": file server ", server->first, " is at ", server->second.address,
        ", which each node of compute \"", read.job->compute,
        "\" takes for itself: give it an address that they reach (address: in its file, then tutti "
        "file-server create)")));
  }
}

}  // namespace tutti::service
