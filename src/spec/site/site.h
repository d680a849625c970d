// Site holds what a site says of itself, so that job files written elsewhere run as they are: which
// local copies serve which addresses, what environments, images and conda packages are here, and
// which names of computes mean this cluster. Built-in tables, then HOME/site.yml, which a person
// edits, then HOME/data-map.yml, which `tutti data map` writes; the later wins. docs/site.md has
// the form. Beside them HOME/data-assets.json and the like (asset.h) and HOME/computes.json
// (compute_file.h), HOME/datastores.json (datastore.h).
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/asset.h"
#include "spec/data/data_map.h"
#include "spec/data/datastore.h"
#include "spec/site/compute_file.h"
#include "spec/site/slurm_compute.h"
#include "spec/types/node_checks.h"
#include "spec/types/retention.h"

namespace tutti::spec {

// Says what an environment's name or an image stands for here.
struct EnvironmentRule {
  enum class Kind { kHost, kPackages, kImage, kRefused };

  std::string pattern;   // lower case; "*" stands for any text
  std::string location;  // where it is written: "site.yml:7"
  Kind kind = Kind::kPackages;
  std::string python;                            // a version, "" for any, or kNamedPython
  std::vector<std::string> packages;             // of PyPI; of the host none, or horovod
  std::map<std::string, std::string> variables;  // set for the job's processes
  std::string differs;     // how this is not what the name promises; empty: it is
  std::string conda_file;  // absolute; in place of `packages`
  std::string image;       // that containers are made from; empty: the one that was named
  std::string reason;      // why it is refused
};

// A rule's Python that stands in the name itself: "python:3.9-slim", "minimal-ubuntu22.04-py39".
inline constexpr absl::string_view kNamedPython = "named";

// Returns the version of Python that the rule asks for under `name`, which matched it; "" for any.
std::string PythonOf(const EnvironmentRule& rule, absl::string_view name);

// These options of a container reach out of it and need the site's leave. Each is an option of
// podman without its dashes; "volume" is also for --mount.
inline constexpr std::array<absl::string_view, 6> kContainerLeaves = {
    "cap-add", "device", "group-add", "privileged", "security-opt", "volume"};

// Returns all of them: the leave by which those read job files who leave the refusal to a service.
std::set<std::string> AnyContainerLeave();

// How nodes are looked at (docs/node-health.md).
struct HealthCheck : NodeChecks {
  int interval_seconds = 300;  // from one look at an idle node of this machine to the next
};

// A model that is registered with the service.
struct ModelHere {
  std::string version;
  std::string type;  // custom_model, mlflow_model, triton_model
  std::string path;  // absolute; empty: this reader leaves it to the service, which knows
};
// Finds one by its name and its version, "@LABEL", or "": the newest. NotFound says which there
// are.
using FindModel = std::function<absl::StatusOr<ModelHere>(const AssetReference& reference)>;

struct Site {
  // The first rule that matches counts.
  std::vector<EnvironmentRule> environments, images;
  // A conda package's name and what stands for it: a PyPI name, "" (nothing is needed), "program:
  // NAME" (which the nodes must have), or "refused: REASON".
  std::map<std::string, std::string> conda_packages;
  std::map<std::string, std::string> computes;  // name -> "local", or a name of slurm_computes
  std::map<std::string, SlurmCompute> slurm_computes;
  ComputeFiles compute_files;  // HOME/computes.json; they come before `computes`
  // Has the file, absolute, of the component that "azureml:NAME" or "azureml:NAME:VERSION" means in
  // a step.
  std::map<std::string, std::string> components;
  DataMap data;
  Datastores datastores;  // HOME/datastores.json
  Assets data_assets{AssetKind::kData};
  // They come before `environments` and `components`.
  Assets environment_assets{AssetKind::kEnvironment};
  Assets component_assets{AssetKind::kComponent};
  FindModel find_model;                   // null: nothing is registered
  std::set<std::string> container_leave;  // of kContainerLeaves: what docker_args may ask for
  Retention retention;
  HealthCheck health_check;
  std::string secret_key_file;  // absolute; empty: in the service's folder
  std::string jobs;             // the folder of all jobs' results; empty: there is none
  // The address of the folder to which the service brings the logs of jobs whose files name no
  // place for them, and where that is written ("site.yml:7"); empty: there is none.
  std::string keep_logs, keep_logs_location;

  // Returns nullptr if no rule fits. The case of `name` does not count.
  static const EnvironmentRule* FindRule(const std::vector<EnvironmentRule>& rules,
                                         absl::string_view name);
};

// Returns the tables that come with tutti.
const Site& BuiltInSite();

// Reads the text of a site.yml over what `site` holds; its relative paths count from `folder`.
absl::Status ReadSiteText(absl::string_view text, absl::string_view file_name,
                          const std::filesystem::path& folder, Site& site);

// Reads the built-in tables with the files of `home` over them. InvalidArgument names file and line
// of what is wrong in them. `container_leave` counts where site.yml does not say: a service gives
// none, and a client, whose service may have another site.yml, AnyContainerLeave.
absl::StatusOr<Site> ReadSite(const std::filesystem::path& home,
                              std::set<std::string> container_leave = {});

// Returns the files that ReadSite reads; each may be missing.
std::vector<std::filesystem::path> SiteFiles(const std::filesystem::path& home);

// The name of the key of the secrets in a service's folder, and in its backup.
inline constexpr char kSecretKeyName[] = "secrets.key";
// Returns the key file of the service with that folder: the one that the site names; else systemd's
// credential "tutti.secrets.key" of this process, if there is one; else that in the folder. It need
// not be there.
std::filesystem::path SecretKeyFile(const Site& site, const std::filesystem::path& home);
// Returns whether systemd has put the file there for this process: only its user can read it,
// whatever the bits of its group, which are a mask of an access list.
bool IsCredential(const std::filesystem::path& file);

// Read and write HOME/data-map.yml alone; it is written as a whole.
absl::StatusOr<DataMap> ReadDataMap(const std::filesystem::path& home);
absl::Status WriteDataMap(const std::filesystem::path& home, const DataMap& map);

}  // namespace tutti::spec
