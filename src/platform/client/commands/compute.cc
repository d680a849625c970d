#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/commands/batch_ai_volumes.h"
#include "platform/client/commands/commands.h"
#include "platform/client/commands/text_of.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"
#include "platform/client/text/table.h"
#include "spec/data/asset.h"
#include "spec/data/home_list.h"
#include "spec/site/compute_file.h"
#include "spec/site/site.h"

namespace tutti::client {
namespace {

constexpr uint64_t kLargestComputeFile = 1 << 20;

absl::Status CheckStandsFor(const spec::Site& site, const std::string& stands_for) {
  if (stands_for == "local" || site.slurm_computes.contains(stands_for)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--as ", stands_for,
                   ": site.yml has no such cluster; leave it out for this "
                   "machine's nodes"));
}

absl::Status ShowAll(Context& context, const spec::ComputeFiles& computes, Format format) {
  if (format != Format::kTable) {
    const nlohmann::json document = {{"computes", spec::JsonOf(computes)}};
    return WriteStructured(context.out, document.dump(), format);
  }
  Table table({{"NAME"},
               {"TYPE"},
               {"STANDS FOR"},
               {"NODES OF A JOB", Table::Align::kRight},
               {"DESCRIPTION", Table::Align::kLeft, true}});
  for (const auto& [name, compute] : computes) {
    table.Add({{compute.name},
               {compute.type},
               {compute.stands_for},
               {compute.max_instances == 0 ? "all" : absl::StrCat(compute.max_instances)},
               {compute.description}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return absl::OkStatus();
}

// Warns of computes that cannot be used, if a service runs that says so. The list itself needs
// none.
void WarnOfComputes(Context& context) {
  const auto text = ServiceClient(context.connect()).Problems();
  const auto problems = text.ok() ? Parse<spec::ProblemsView>(*text) : text.status();
  if (!problems.ok()) return;
  for (const std::string& problem : problems->problems) {
    if (!absl::StartsWith(problem, "compute ")) continue;
    context.err << "warning: " << problem << std::endl;
  }
}

}  // namespace

spec::ComputeFiles AllComputes(const spec::Site& site) {
  spec::ComputeFiles all;
  all["local"] = {.name = "local", .type = "local"};
  for (const auto& [name, stands_for] : site.computes) {
    const bool is_cluster = site.slurm_computes.contains(name);
    all[name] = {.name = name, .type = is_cluster ? "slurm" : "local", .stands_for = stands_for};
  }
  for (const auto& [name, compute] : site.compute_files) all[name] = compute;
  return all;
}

absl::StatusOr<ExitCode> ComputeCreate(Context& context, const ComputeOptions& options) {
  const auto text = TextOf(options.file, options.text, kLargestComputeFile);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  TUTTI_ASSIGN_OR_RETURN(spec::ReadComputeResult read, spec::ReadComputeFile(*text, options.file));
  for (const std::string& warning : read.warnings) {
    context.err << "warning: " << warning << std::endl;
  }
  spec::ComputeFile& compute = read.compute;
  if (!options.name.empty()) {
    TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("--name", options.name));
    compute.name = options.name;
  }
  if (!options.stands_for.empty()) compute.stands_for = absl::AsciiStrToLower(options.stands_for);
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  TUTTI_RETURN_IF_ERROR(CheckStandsFor(site, compute.stands_for));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::ComputesFile(context.home)));
  TUTTI_ASSIGN_OR_RETURN(spec::ComputeFiles computes, spec::ReadComputes(context.home));
  computes[absl::AsciiStrToLower(compute.name)] = compute;
  TUTTI_RETURN_IF_ERROR(spec::WriteComputes(context.home, computes));
  // A cluster of Batch AI's that had the name; `tutti batchai cluster create` notes its own.
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(VolumesFile(context.home, compute.name)));
  context.out << "azureml:" << compute.name << " is "
              << (compute.stands_for == "local" ? "this machine's nodes" : compute.stands_for)
              << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ComputeList(Context& context, const ComputeOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  WarnOfComputes(context);
  TUTTI_RETURN_IF_ERROR(ShowAll(context, AllComputes(site), options.format));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ComputeShow(Context& context, const ComputeOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  const spec::ComputeFiles all = AllComputes(site);
  const auto found = all.find(absl::AsciiStrToLower(options.name));
  if (found == all.end()) {
    return absl::NotFoundError(absl::StrCat("there is no compute ", options.name));
  }
  const spec::ComputeFiles one = {*found};
  if (options.format == Format::kTable) {
    TUTTI_RETURN_IF_ERROR(ShowAll(context, one, options.format));
  } else {
    TUTTI_RETURN_IF_ERROR(
        WriteStructured(context.out, spec::JsonOf(one).front().dump(), options.format));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ComputeDelete(Context& context, const ComputeOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::ComputesFile(context.home)));
  TUTTI_ASSIGN_OR_RETURN(spec::ComputeFiles computes, spec::ReadComputes(context.home));
  if (computes.erase(absl::AsciiStrToLower(options.name)) == 0) {
    return absl::NotFoundError(absl::StrCat("no compute ", options.name,
                                            " was made from a file; those of site.yml are "
                                            "deleted there"));
  }
  TUTTI_RETURN_IF_ERROR(spec::WriteComputes(context.home, computes));
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(VolumesFile(context.home, options.name)));
  return ExitCode::kOk;
}

}  // namespace tutti::client
