#include "platform/client/script/script_text.h"

#include <yaml-cpp/yaml.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr char kSchema[] = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json";

// As the job file names it: from its own folder where it lies below that.
std::string Named(const fs::path& path, const fs::path& base) {
  const fs::path relative = path.lexically_relative(base);
  const bool below = !relative.empty() && *relative.begin() != "..";
  if (!below) return path.string();
  return relative == "." ? "." : absl::StrCat("./", relative.string());
}

void WriteEnvironment(YAML::Emitter& yaml, const ScriptChoice& job) {
  const EnvironmentChoice& environment = job.environment;
  yaml << YAML::Key << "environment" << YAML::Value;
  if (!environment.conda_file.empty()) {
    yaml << YAML::BeginMap << YAML::Key << "conda_file" << YAML::Value
         << Named(environment.conda_file, job.base) << YAML::EndMap;
  } else if (!environment.dockerfile_folder.empty()) {
    yaml << YAML::BeginMap << YAML::Key << "build" << YAML::Value << YAML::BeginMap << YAML::Key
         << "path" << YAML::Value << Named(environment.dockerfile_folder, job.base) << YAML::EndMap
         << YAML::EndMap;
  } else if (absl::StartsWith(environment.name, "file:")) {
    yaml << "file:" + Named(environment.name.substr(5), job.base);
  } else {
    yaml << environment.name;
  }
}

void WriteInputs(YAML::Emitter& yaml, const ScriptChoice& job) {
  if (job.inputs.empty()) return;
  yaml << YAML::Key << "inputs" << YAML::Value << YAML::BeginMap;
  for (const ScriptInput& input : job.inputs) {
    const bool is_path = absl::StartsWith(input.path, "/");
    yaml << YAML::Key << input.name << YAML::Value << YAML::BeginMap << YAML::Key << "type"
         << YAML::Value << input.type << YAML::Key << "path" << YAML::Value
         << (is_path ? Named(input.path, job.base) : input.path) << YAML::EndMap;
  }
  yaml << YAML::EndMap;
}

void WriteScale(YAML::Emitter& yaml, const ScriptChoice& job) {
  yaml << YAML::Key << "resources" << YAML::Value << YAML::BeginMap << YAML::Key << "instance_count"
       << YAML::Value << job.nodes;
  if (job.gpus > 0)
    yaml << YAML::Key << "docker_args" << YAML::Value << absl::StrCat("--gpus=", job.gpus);
  yaml << YAML::EndMap;
  if (job.distribution == "none") return;
  yaml << YAML::Key << "distribution" << YAML::Value << YAML::BeginMap << YAML::Key << "type"
       << YAML::Value << job.distribution;
  if (job.distribution == "tensorflow") {
    yaml << YAML::Key << "worker_count" << YAML::Value << job.nodes * job.processes;
  } else if (job.distribution != "ray") {
    yaml << YAML::Key << "process_count_per_instance" << YAML::Value << job.processes;
  }
  yaml << YAML::EndMap;
}

}  // namespace

std::string TextOf(const ScriptChoice& job) {
  YAML::Emitter yaml;
  yaml << YAML::BeginMap;
  const auto text = [&yaml](const char* key, const std::string& value) {
    if (!value.empty()) yaml << YAML::Key << key << YAML::Value << value;
  };
  text("$schema", kSchema);
  text("type", "command");
  text("display_name", job.display_name);
  text("experiment_name", job.code.filename().string());
  text("code", Named(job.code, job.base));
  text("command", job.command);
  WriteInputs(yaml, job);
  WriteEnvironment(yaml, job);
  text("compute", job.compute);
  WriteScale(yaml, job);
  yaml << YAML::EndMap;
  return absl::StrCat(yaml.c_str(), "\n");
}

}  // namespace tutti::client
