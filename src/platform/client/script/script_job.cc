#include "platform/client/script/script_job.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/one_of.h"
#include "platform/client/script/environment_choice.h"
#include "platform/client/script/script_file.h"
#include "spec/data/data_map.h"
#include "spec/types/job_distribution.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// ScriptInput is an input of the job.
struct ScriptInput {
  std::string name, type, path;
};

// ScriptChoice is all that the job file says.
struct ScriptChoice {
  std::string command, display_name, distribution;
  fs::path code, base;
  EnvironmentChoice environment;
  std::vector<ScriptInput> inputs;
  int nodes = 1, processes = 1, gpus = 0;
  std::string compute;
};

constexpr char kSchema[] = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json";

// Returns a path as the job file names it: from its own folder where it lies below that.
std::string PathInJobFile(const fs::path& path, const fs::path& base) {
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
         << PathInJobFile(environment.conda_file, job.base) << YAML::EndMap;
  } else if (!environment.dockerfile_folder.empty()) {
    yaml << YAML::BeginMap << YAML::Key << "build" << YAML::Value << YAML::BeginMap << YAML::Key
         << "path" << YAML::Value << PathInJobFile(environment.dockerfile_folder, job.base)
         << YAML::EndMap << YAML::EndMap;
  } else if (absl::StartsWith(environment.name, "file:")) {
    yaml << "file:" + PathInJobFile(environment.name.substr(5), job.base);
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
         << (is_path ? PathInJobFile(input.path, job.base) : input.path) << YAML::EndMap;
  }
  yaml << YAML::EndMap;
}

void WriteScale(YAML::Emitter& yaml, const ScriptChoice& job) {
  yaml << YAML::Key << "resources" << YAML::Value << YAML::BeginMap << YAML::Key << "instance_count"
       << YAML::Value << job.nodes;
  if (job.gpus > 0)
    yaml << YAML::Key << "docker_args" << YAML::Value << absl::StrCat("--gpus=", job.gpus);
  yaml << YAML::EndMap;
  const spec::DistributionDriver& driver = *spec::FindDistribution(job.distribution);
  if (!driver.has_ranks) return;
  yaml << YAML::Key << "distribution" << YAML::Value << YAML::BeginMap << YAML::Key << "type"
       << YAML::Value << job.distribution;
  if (!driver.count_key.empty()) {
    yaml << YAML::Key << std::string(driver.count_key) << YAML::Value
         << (driver.counts_all ? job.nodes * job.processes : job.processes);
  }
  yaml << YAML::EndMap;
}

// Returns the job file that lies in `job.base`.
std::string JobFileText(const ScriptChoice& job) {
  YAML::Emitter yaml;
  yaml << YAML::BeginMap;
  const auto text = [&yaml](const char* key, const std::string& value) {
    if (!value.empty()) yaml << YAML::Key << key << YAML::Value << value;
  };
  text("$schema", kSchema);
  text("type", "command");
  text("display_name", job.display_name);
  text("experiment_name", job.code.filename().string());
  text("code", PathInJobFile(job.code, job.base));
  text("command", job.command);
  WriteInputs(yaml, job);
  WriteEnvironment(yaml, job);
  text("compute", job.compute);
  WriteScale(yaml, job);
  yaml << YAML::EndMap;
  return absl::StrCat(yaml.c_str(), "\n");
}

// Returns the types of those that start as many processes on a node as are asked for, or of all.
std::vector<absl::string_view> Types(bool with_single) {
  std::vector<absl::string_view> types;
  for (const spec::DistributionDriver* const driver : spec::Distributions()) {
    if (with_single || !driver->count_key.empty()) types.push_back(driver->type);
  }
  return types;
}

absl::Status CheckDistribution(const ScriptOptions& options) {
  const std::string& name = options.distribution;
  if (name.empty()) return absl::OkStatus();
  const spec::DistributionDriver* const driver = spec::FindDistribution(name);
  if (driver == nullptr || driver->type != name) {
    return absl::InvalidArgumentError(absl::StrCat("--distribution \"", name, "\" is none of ",
                                                   base::OneOf(Types(true), " and ")));
  }
  if (driver->count_key.empty() && options.processes_per_node > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--processes-per-node ", options.processes_per_node, " needs --distribution ",
                     base::OneOf(Types(false)), ": with ", name, " a node has one"));
  }
  return absl::OkStatus();
}

// Chooses the distribution, if none was given, by what the program imports. A single process runs
// as its user's own `python3 train.py` would, since programs that find a RANK take themselves for
// one of several.
std::string ChooseDistribution(const ScriptOptions& options, const DistributionGuess& guess,
                               const std::string& script, std::vector<std::string>& remarks) {
  if (!options.distribution.empty()) return options.distribution;
  const int processes = std::max(options.processes_per_node, options.gpus);
  if (options.nodes <= 1 && processes <= 1) return "none";
  constexpr char kOtherwise[] = " (--distribution says otherwise)";
  if (!guess.distribution.empty()) {
    remarks.push_back(absl::StrCat("distribution: ", guess.distribution, ", since ", script,
                                   " imports ", guess.package, kOtherwise));
    if (absl::EndsWith(guess.package, "lightning") && processes <= 1) {
      remarks.push_back(absl::StrCat(
          script,
          ": one process is started on each node, and Lightning starts no others beside a "
          "LOCAL_RANK: a Trainer of more devices than one waits for ever without "
          "--processes-per-node DEVICES (docs/launchers.md)"));
    }
    return guess.distribution;
  }
  const std::string chosen = processes > 1 ? "pytorch" : "none";
  remarks.push_back(absl::StrCat("distribution: ", chosen, ", since no framework is known by it: ",
                                 chosen == "none"
                                     ? "each node runs it once"
                                     : "its processes get RANK, WORLD_SIZE and the like",
                                 kOtherwise));
  return chosen;
}

absl::StatusOr<ScriptInput> InputOf(const std::string& written) {
  const size_t equals = written.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == written.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--input ", written, ": write NAME=PATH, as in --input data=./images"));
  }
  ScriptInput input{written.substr(0, equals), "uri_folder", written.substr(equals + 1)};
  if (absl::StrContains(input.path, "://") || absl::StartsWith(input.path, "azureml:")) {
    const bool by_http = absl::StartsWith(input.path, "http");
    const bool is_pattern = absl::StrContains(input.path, "*");
    const bool is_file =
        absl::StrContains(input.path, "://") && !is_pattern && spec::LooksLikeAFile(input.path);
    if (by_http || is_file) input.type = "uri_file";
    return input;
  }
  const fs::path path = fs::absolute(input.path).lexically_normal();
  std::error_code error;
  if (!fs::exists(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--input ", written, ": there is no ", path.string(),
        "; values that are no files are the program's own arguments: write them after --"));
  }
  if (fs::is_regular_file(path, error)) input.type = "uri_file";
  input.path = path.string();
  return input;
}

// Returns the folder that --code names; `script` lies in it, if there is one.
absl::StatusOr<fs::path> CodeGiven(const std::string& given, const fs::path& script) {
  fs::path folder = fs::absolute(given).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat("--code ", given, ": there is no such folder"));
  }
  if (script.empty() || *script.lexically_relative(folder).begin() != "..") return folder;
  return absl::InvalidArgumentError(
      absl::StrCat("--code ", given, ": ", script.string(), " does not lie in that folder"));
}

// Returns the folder that is sent with a script, and that it runs in.
absl::StatusOr<fs::path> ChooseCode(const fs::path& script, const ScriptOptions& options,
                                    std::vector<std::string>& remarks) {
  const fs::path beside = script.parent_path();
  if (!options.code.empty()) return CodeGiven(options.code, script);
  if (options.sends_other_code) return beside;
  const Project project = ProjectOf(beside);
  if (project.root != beside) {
    remarks.push_back(absl::StrCat("code: ", project.root.string(), ", since ", project.mark,
                                   " is there; ", script.lexically_relative(project.root).string(),
                                   " runs in that folder (--code says otherwise)"));
  }
  return project.root;
}

// Completes the job of a script or a command as the options say. `job` has its command, code and
// name; `script` is the file that could be sent alone, if there is one.
absl::StatusOr<ScriptJob> Complete(ScriptChoice job, const DistributionGuess& guess,
                                   const fs::path& script, const ScriptOptions& options,
                                   std::vector<std::string> remarks) {
  ScriptJob result{.text = "", .directory = {}, .remarks = std::move(remarks)};
  if (!options.sends_other_code) {
    TUTTI_RETURN_IF_ERROR(CheckCodeFolder(job.code, script.filename().string(), result.remarks));
  }
  TUTTI_RETURN_IF_ERROR(CheckDistribution(options));
  job.base =
      options.save.empty() ? job.code : fs::absolute(options.save).lexically_normal().parent_path();
  job.distribution = ChooseDistribution(options, guess, job.display_name, result.remarks);
  job.nodes = std::max(1, options.nodes);
  job.gpus = options.gpus;
  const bool has_many = !spec::FindDistribution(job.distribution)->count_key.empty();
  if (options.processes_per_node > 0) {
    job.processes = options.processes_per_node;
  } else if (has_many) {
    job.processes = std::max(1, options.gpus);  // one for each
  }
  job.compute = options.compute;
  for (const std::string& input : options.inputs) {
    TUTTI_ASSIGN_OR_RETURN(job.inputs.emplace_back(), InputOf(input));
  }
  if (options.environment.empty()) {
    const bool is_beside = script.empty() || script.parent_path() == job.code;
    job.environment = EnvironmentIn(
        job.code, is_beside ? "beside it" : absl::StrCat("in ", job.code.string()), result.remarks);
  } else {
    TUTTI_ASSIGN_OR_RETURN(job.environment, EnvironmentOf(options.environment));
  }
  result.text = JobFileText(job);
  result.directory = job.base;
  return result;
}

}  // namespace

std::string ScriptOptions::Given() const {
  if (nodes > 0) return "--nodes";
  if (processes_per_node > 0) return "--processes-per-node";
  if (gpus > 0) return "--gpus";
  if (!distribution.empty()) return "--distribution";
  if (!environment.empty()) return "--environment";
  if (!code.empty()) return "--code";
  if (!inputs.empty()) return "--input";
  if (!arguments.empty()) return absl::StrCat("\"", arguments.front(), "\"");
  return save.empty() ? "" : "--save";
}

absl::StatusOr<ScriptJob> JobOfScript(const fs::path& script, const ScriptOptions& options) {
  const fs::path path = fs::absolute(script).lexically_normal();
  const ScriptKind kind = KindOfScript(path);
  ScriptChoice job{.display_name = path.filename().string()};
  std::vector<std::string> remarks;
  TUTTI_ASSIGN_OR_RETURN(job.code, ChooseCode(path, options, remarks));
  TUTTI_ASSIGN_OR_RETURN(const std::string program, CommandOf(path, job.code, kind));
  job.command = program;
  for (const std::string& argument : options.arguments) {
    absl::StrAppend(&job.command, " ", ShellWord(argument));
  }
  DistributionGuess guess;
  if (kind == ScriptKind::kPython) {
    guess = GuessDistribution(base::ReadFile(path, 16 << 20).value_or(""));
  }
  TUTTI_ASSIGN_OR_RETURN(ScriptJob result, Complete(job, guess, path, options, std::move(remarks)));
  result.program = program;
  return result;
}

absl::StatusOr<ScriptJob> JobOfCommand(const std::string& command, const fs::path& code,
                                       const ScriptOptions& options) {
  if (absl::StripAsciiWhitespace(command).empty()) {
    return absl::InvalidArgumentError("the command is empty: say what each process runs");
  }
  ScriptChoice job{.command = command};
  TUTTI_ASSIGN_OR_RETURN(
      job.code, CodeGiven(options.code.empty() ? code.string() : options.code, /*script=*/""));
  job.display_name = job.code.filename().string();
  return Complete(job, {}, "", options, {});
}

absl::Status CheckIsFree(const fs::path& file) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error))) {
    return absl::AlreadyExistsError(
        absl::StrCat(file.string(),
                     " is there already and is not overwritten: choose another "
                     "name, or remove it"));
  }
  const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  if (fs::is_directory(folder, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file.string(), " cannot be written: there is no ",
                                                 "folder ", folder.string(), "; make it first"));
}

absl::Status CheckCanSave(const std::string& text, const fs::path& file) {
  const auto before = base::ReadFile(file, 1 << 20);
  if (before.ok() && *before == text) return absl::OkStatus();
  return CheckIsFree(file);
}

absl::Status SaveJob(const std::string& text, const fs::path& file) {
  TUTTI_RETURN_IF_ERROR(CheckCanSave(text, file));
  return base::WriteFileAtomic(file, text);
}

}  // namespace tutti::client
