// Any bytes as a file of Batch AI's: an error that says something, or YAML.
#include <cstdint>
#include <cstdlib>

#include "spec/batchai/batch_ai_cluster.h"
#include "spec/batchai/batch_ai_job.h"
#include "spec/file/job_file.h"
#include "spec/text/yaml_tree.h"

namespace {

using tutti::spec::YamlLimits;

// The file that is written may be twice as long as the one that was read.
constexpr YamlLimits kLimits = {1 << 22, 64, 100'000};

template <typename Result>
bool IsGood(const Result& result) {
  if (!result.ok() && result.status().message().empty()) std::abort();
  return result.ok();
}

void CheckYaml(const std::string& text) {
  if (!tutti::spec::ParseYaml(text, "out.yml", kLimits).ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  tutti::spec::BatchAiOptions options;
  options.cluster = "nc6";
  options.storage_account = "acme";
  const auto job = tutti::spec::ConvertBatchAiJob(text, "job.json", options);
  if (IsGood(job)) {
    CheckYaml(job->text);
    IsGood(tutti::spec::ReadJobFile(
        job->text, "job.yml", "/base", tutti::spec::BuiltInSite(),
        [](const std::filesystem::path&) { return std::string("name: x"); }));
  }
  // The same bytes as the cluster's file.
  options.cluster_text = std::string(text);
  options.cluster_file = "cluster.json";
  IsGood(tutti::spec::ConvertBatchAiJob(text, "job.json", options));
  const auto cluster = tutti::spec::ConvertBatchAiCluster(text, "cluster.json", "nc6", "acme");
  if (IsGood(cluster)) CheckYaml(cluster->compute);
  const auto server =
      tutti::spec::ConvertBatchAiFileServer(text, "nfs.json", "nfs", {"/data", "", {}, 0});
  if (IsGood(server)) CheckYaml(server->text);
  return 0;
}
