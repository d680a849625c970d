#include "spec/batchai/batch_ai_job.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "spec/batchai/batch_ai_shell.h"
#include "spec/batchai/batch_ai_text.h"
#include "spec/batchai/toolkits.h"
#include "spec/batchai/volumes.h"
#include "spec/text/yaml_text.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

using Entries = std::vector<YamlNode::Entry>;

constexpr int kMostNodesOfAJob = 100'000;
constexpr size_t kMostShownOfAnId = 80;
constexpr char kBackendVariable[] = "AZ_BATCHAI_PYTORCH_BACKEND";
constexpr char kSchema[] = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json";

// A folder that the file names, for the job's processes by `id`.
struct Directory {
  std::string id;
  std::string path;    // of an output the prefix
  std::string suffix;  // of an output
  int line = 0;
};

struct Variable {
  std::string name, value;
  int line = 0;
};

// Reads the properties of one job and writes its file.
class JobConverter {
 public:
  JobConverter(const YamlNode& properties, const BatchAiOptions& options, Volumes& volumes,
               Diagnostics& diagnostics)
      : node_(properties),
        options_(options),
        volumes_(volumes),
        diagnostics_(diagnostics),
        reader_(properties, "properties", diagnostics) {}

  // Returns the job's file as a tree.
  YamlPointer Convert() {
    reader_.Count("nodeCount", kMostNodesOfAJob, node_count_);
    if (FindValue(node_, "nodeCount") == nullptr) {
      diagnostics_.Error(node_.line, "the key \"nodeCount\" is missing");
    }
    ReadVolumes();
    const ToolkitRun run = ReadToolkit(reader_, node_, node_count_, diagnostics_);
    Head();
    Command(run);
    Environment();
    Inputs();
    Outputs();
    Distribution(run);
    Secrets();
    Resources();
    Limits();
    Priority();
    reader_.Finish();
    Assemble();
    return MappingNode(std::move(job_));
  }

  std::vector<BatchAiSecret> secrets() const { return secrets_; }

 private:
  // Before all that may name paths on them.
  void ReadVolumes() {
    if (const YamlNode::Entry* const mounts = reader_.Take("mountVolumes")) {
      volumes_.Read(*mounts->value, /*of_cluster=*/false, options_.storage_account, diagnostics_);
    }
    inputs_ = ReadDirectories("inputDirectories", "path");
    outputs_ = ReadDirectories("outputDirectories", "pathPrefix");
    std::set<std::string> taken;
    for (const Directory& input : inputs_) taken.insert(input.id);
    volumes_.NameInputs(taken);
  }

  std::vector<Directory> ReadDirectories(absl::string_view key, absl::string_view path_key) {
    std::vector<Directory> directories;
    std::set<std::string> seen;
    const std::string what = absl::StrCat("an entry of ", key);
    for (const YamlPointer& node : TakeList(reader_, key, diagnostics_)) {
      MappingReader reader(*node, what, diagnostics_);
      Directory directory;
      const YamlNode::Entry* const id =
          TakeNeeded(reader, *node, what, "id", directory.id, diagnostics_);
      const YamlNode::Entry* const path =
          TakeNeeded(reader, *node, what, path_key, directory.path, diagnostics_);
      if (path_key == "pathPrefix") {
        directory.suffix = Suffix(reader, directory.id);
        TakeWithoutEffect(reader, "type", "outputs are what they hold", diagnostics_);
        TakeWithoutEffect(reader, "createNew", "an output begins empty", diagnostics_);
      }
      reader.Finish();
      if (id == nullptr || path == nullptr) continue;
      directory.line = path->line;
      if (!IsIdentifier(directory.id) || !seen.insert(directory.id).second) {
        diagnostics_.Error(id->line,
                           absl::StrCat("id \"", directory.id.substr(0, kMostShownOfAnId),
                                        "\" must be of letters, digits and \"_\", and of its own"));
        continue;
      }
      directories.push_back(std::move(directory));
    }
    return directories;
  }

  // The folder of an output below its prefix, clean.
  std::string Suffix(MappingReader& reader, const std::string& id) {
    std::string written;
    const YamlNode::Entry* const entry = reader.Text("pathSuffix", written);
    const auto suffix = CleanPath(written);
    if (!suffix) {
      diagnostics_.Error(entry->line,
                         "pathSuffix must name a folder below the output's, without "
                         "\"..\"");
    }
    return suffix && !suffix->empty() ? *suffix : id;
  }

  void Head() {
    AddEntry(job_, "$schema", TextNode(kSchema));
    AddEntry(job_, "type", TextNode("command"));
    if (!options_.name.empty()) AddEntry(job_, "name", QuotedNode(options_.name));
    std::string experiment;
    reader_.Text("experimentName", experiment);
    if (!options_.experiment.empty()) experiment = options_.experiment;
    if (!experiment.empty()) AddEntry(job_, "experiment_name", QuotedNode(experiment));
    TakeWithoutEffect(reader_, "location", "jobs run where tutti does", diagnostics_);
    std::string cluster = TakeResource(reader_, "cluster", diagnostics_);
    if (!options_.cluster.empty()) cluster = NameOfResource(options_.cluster);
    if (!cluster.empty()) {
      AddEntry(job_, "compute",
               TextNode(cluster == "local" ? cluster : absl::StrCat("azureml:", cluster)));
    }
  }

  // Paths on volumes and directories by id, as the job's expressions.
  std::string Rewritten(absl::string_view text, int line) {
    std::string result = volumes_.Rewrite(text, line, diagnostics_);
    RewriteIds(inputs_, "AZ_BATCHAI_INPUT_", "inputs", line, result);
    RewriteIds(outputs_, "AZ_BATCHAI_OUTPUT_", "outputs", line, result);
    if (node_count_ > 1 && absl::StrContains(result, "AZ_BATCHAI_SHARED_JOB_TEMP")) {
      diagnostics_.Warning(
          line,
          "AZ_BATCHAI_SHARED_JOB_TEMP is set where the nodes have one disk: this "
          "machine's, and those of a Slurm compute whose folder they share. Elsewhere "
          "set it in environmentVariables to a folder that all of them have");
    }
    return result;
  }

  void RewriteIds(const std::vector<Directory>& directories, absl::string_view prefix,
                  absl::string_view section, int line, std::string& text) {
    for (size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at + 1)) {
      absl::string_view rest = absl::string_view(text).substr(at + 1);
      const bool braced = absl::ConsumePrefix(&rest, "{");
      if (!absl::ConsumePrefix(&rest, prefix)) continue;
      const size_t length =
          std::min(rest.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789_"),
                   rest.size());
      const std::string id(rest.substr(0, length));
      rest.remove_prefix(length);
      if (braced && !absl::ConsumePrefix(&rest, "}")) continue;
      const bool is_there = std::any_of(directories.begin(), directories.end(),
                                        [&](const Directory& one) { return one.id == id; });
      if (!is_there) {
        diagnostics_.Warning(line, absl::StrCat("$", prefix, id.substr(0, kMostShownOfAnId),
                                                ": no directory has that id, so it is empty"));
        continue;
      }
      const std::string expression = absl::StrCat("${{", section, ".", id, "}}");
      text = absl::StrCat(text.substr(0, at), expression, rest);
      at += expression.size() - 1;
    }
  }

  // The variables of the file, then what prepares the nodes, then what runs.
  void Command(const ToolkitRun& run) {
    std::string command = Rewritten(run.command, run.line);
    WarnOfModes(command, run.line);
    if (const YamlNode::Entry* const preparation = reader_.Take("jobPreparation")) {
      MappingReader reader(*preparation->value, "jobPreparation", diagnostics_);
      std::string line;
      TakeNeeded(reader, *preparation->value, "jobPreparation", "commandLine", line, diagnostics_);
      reader.Finish();
      line = std::string(absl::StripAsciiWhitespace(line));
      const bool in_image = FindValue(node_, "containerSettings") != nullptr;
      line = Rewritten(line, preparation->line);
      WarnOfModes(line, preparation->line);
      if (!line.empty()) command = Prepared(line, command, in_image);
    }
    std::string exports;
    for (const Variable& variable : ReadVariables()) {
      const std::string value = Rewritten(variable.value, variable.line);
      if (NeedsAShell(value)) {
        absl::StrAppend(&exports, Exported(variable.name, value));
      } else {
        AddEntry(variables_, variable.name, QuotedNode(value));
      }
    }
    if (!run.backend.empty() && names_.insert(kBackendVariable).second) {
      AddEntry(variables_, kBackendVariable, TextNode(run.backend));
    }
    AddEntry(job_, "command", TextNode(absl::StrReplaceAll(exports + command, {{"\r\n", "\n"}})));
  }

  // Batch AI mounted shares with mode 0777, so that every script on them could be executed.
  void WarnOfModes(absl::string_view command, int line) {
    absl::ConsumePrefix(&command, kOnFirstNode);
    command = absl::StripLeadingAsciiWhitespace(command);
    const std::vector<Volume>& volumes = volumes_.all();
    const bool is_on_share = std::any_of(volumes.begin(), volumes.end(), [&](const Volume& volume) {
      return !volume.type.empty() &&  // a store of Azure
             absl::StartsWith(command, absl::StrCat("${{inputs.", volume.input, "}}"));
    });
    if (!is_on_share) return;
    diagnostics_.Warning(line,
                         "the command is a file of a share, which Batch AI mounted with mode "
                         "0777: here the file keeps its own mode, so chmod +x it, or write its "
                         "interpreter before it (bash FILE)");
  }

  std::vector<Variable> ReadVariables() {
    std::vector<Variable> variables;
    constexpr absl::string_view kWhat = "an entry of environmentVariables";
    for (const YamlPointer& node : TakeList(reader_, "environmentVariables", diagnostics_)) {
      MappingReader reader(*node, kWhat, diagnostics_);
      Variable variable;
      const YamlNode::Entry* const name =
          TakeNeeded(reader, *node, kWhat, "name", variable.name, diagnostics_);
      reader.Text("value", variable.value);
      reader.Finish();
      if (name == nullptr || !IsNewVariable(variable.name, name->line)) continue;
      variable.line = name->line;
      variables.push_back(std::move(variable));
    }
    return variables;
  }

  bool IsNewVariable(const std::string& name, int line) {
    if (IsIdentifier(name) && names_.insert(name).second) return true;
    diagnostics_.Error(line, absl::StrCat("variable \"", name.substr(0, kMostShownOfAnId),
                                          "\" must be of letters, digits and \"_\", and stand "
                                          "once in environmentVariables and secrets"));
    return false;
  }

  void Environment() {
    const YamlNode::Entry* const container = reader_.Take("containerSettings");
    const YamlNode::Entry* const horovod = FindEntry(node_, "horovodSettings");
    if (container == nullptr && horovod != nullptr) {
      diagnostics_.Warning(horovod->line,
                           "horovodSettings without containerSettings: the machine's Python runs "
                           "it, with tutti's horovod, and must have the framework, cloudpickle and "
                           "packaging (docs/horovod.md)");
      return AddEntry(job_, "environment", TextNode("host-horovod"));
    }
    if (container == nullptr) return AddEntry(job_, "environment", TextNode("host"));
    MappingReader reader(*container->value, "containerSettings", diagnostics_);
    reader.Text("shmSize", shm_size_);
    const YamlNode::Entry* const source = reader.Take("imageSourceRegistry");
    reader.Finish();
    if (source == nullptr) {
      return diagnostics_.Error(container->line,
                                "containerSettings: imageSourceRegistry must name the image");
    }
    const std::string image = Image(*source->value);
    Entries environment;
    AddEntry(environment, "image", QuotedNode(image));
    AddEntry(job_, "environment", MappingNode(std::move(environment)));
  }

  std::string Image(const YamlNode& source) {
    constexpr absl::string_view kWhat = "imageSourceRegistry";
    MappingReader reader(source, kWhat, diagnostics_);
    std::string image, server;
    TakeNeeded(reader, source, kWhat, "image", image, diagnostics_);
    reader.Text("serverUrl", server);
    const YamlNode::Entry* const credentials = reader.Take("credentials");
    reader.Finish();
    for (const absl::string_view scheme : {"https://", "http://"}) {
      server = std::string(absl::StripPrefix(server, scheme));
    }
    server = std::string(absl::StripSuffix(server, "/"));
    if (!server.empty() && !absl::StartsWith(image, server + "/")) {
      image = absl::StrCat(server, "/", image);
    }
    if (credentials != nullptr) {
      diagnostics_.Warning(
          credentials->line,
          absl::StrCat("credentials of the registry are not written into the job's file: give "
                       "them to the service as the secret registry.",
                       server.empty() ? "docker.io" : server, " (docs/containers.md)"));
    }
    return image;
  }

  void Inputs() {
    Entries section;
    for (const Directory& input : inputs_) {
      std::string why;
      const auto place = volumes_.Find(input.path, why);
      Entries entry;
      AddEntry(entry, "type", TextNode("uri_folder"));
      if (place) {
        place->volume->is_read = true;
        AddEntry(entry, "path", QuotedNode(place->volume->AddressOf(place->path)));
      } else if (absl::StartsWith(input.path, "/")) {
        AddEntry(entry, "path", QuotedNode(input.path));
      } else {
        diagnostics_.Error(input.line, !why.empty()
                                           ? why
                                           : absl::StrCat("the path of input ", input.id,
                                                          " must begin with "
                                                          "$AZ_BATCHAI_JOB_MOUNT_ROOT or be "
                                                          "absolute"));
      }
      AddEntry(section, input.id, MappingNode(std::move(entry)));
    }
    input_section_ = std::move(section);
  }

  // Adds what a job's processes may look for below the mount root without the file's naming it.
  void VolumesAsInputs() {
    for (const Volume& volume : volumes_.all()) {
      const bool is_meant = volume.is_read || (!volume.of_cluster && !volume.is_output);
      if (!is_meant || !IsNamed(volume)) continue;
      WarnOfInput(volume);
      Entries entry;
      AddEntry(entry, "type", TextNode("uri_folder"));
      AddEntry(entry, "path", QuotedNode(volume.AddressOf("")));
      AddEntry(input_section_, volume.input, MappingNode(std::move(entry)));
    }
  }

  // Warns of what a script may count on, and does not find.
  void WarnOfInput(const Volume& volume) {
    const int line = volume.of_cluster ? node_.line : volume.line;
    if (volume.input != volume.mounted_at) {
      diagnostics_.Warning(
          line, absl::StrCat("the volume mounted at ", volume.mounted_at, " lies at ", volume.input,
                             " below the mount root: a script that makes up its path must look "
                             "there"));
    }
    if (volume.is_read && volume.is_output) {
      diagnostics_.Warning(
          line, absl::StrCat("the volume mounted at ", volume.mounted_at,
                             " has outputs or logs, and a command names it: it is fetched whole "
                             "for that, and for reading: what a script writes belongs in "
                             "$AZ_BATCHAI_OUTPUT_ID"));
    }
  }

  // Whether the job's texts name the volume itself; else, of one that input directories lie on,
  // those are fetched alone.
  bool IsNamed(const Volume& volume) const {
    const std::string expression = absl::StrCat("${{inputs.", volume.input, "}}");
    const auto has = [&](const YamlNode::Entry& entry) {
      return absl::StrContains(entry.value->scalar, expression);
    };
    return !volume.is_read || std::any_of(job_.begin(), job_.end(), has) ||
           std::any_of(variables_.begin(), variables_.end(), has);
  }

  // Where outputs and logs go on a volume; "" if they stay with the job, which a warning says.
  std::string AddressToWrite(const std::string& path, absl::string_view below,
                             absl::string_view what, int line) {
    std::string why;
    const auto place = volumes_.Find(path, why);
    const auto kept = [&](absl::string_view reason) {
      diagnostics_.Warning(line,
                           absl::StrCat(what, " stay with the job (tutti job download): ", reason));
      return std::string();
    };
    if (!place) {
      if (absl::StartsWith(path, "/")) {
        const auto clean = CleanPath(path);
        if (!clean) diagnostics_.Error(line, absl::StrCat("the path of ", what, " has \"..\""));
        return absl::StrCat("file:///", clean.value_or(""), below.empty() ? "" : "/", below);
      }
      return kept(why.empty() ? "their path is not on a volume" : why);
    }
    place->volume->is_output = true;
    if (!place->volume->can_write) return kept("their volume is a file server, which jobs read");
    std::string address = place->volume->AddressOf(place->path, /*write=*/true);
    if (below.empty()) return address;
    return absl::StrCat(absl::StripSuffix(address, "/"), "/",
                        place->volume->is_url ? EncodedPath(below) : std::string(below));
  }

  void Outputs() {
    for (const Directory& output : outputs_) {
      const std::string below = absl::StrCat("${{name}}/outputs/", output.suffix);
      const std::string address = AddressToWrite(
          output.path, below, absl::StrCat("files of output ", output.id), output.line);
      Entries entry;
      AddEntry(entry, "type", TextNode("uri_folder"));
      if (!address.empty()) {
        AddEntry(entry, "mode", TextNode("upload"));
        AddEntry(entry, "path", QuotedNode(address));
      }
      AddEntry(output_section_, output.id, MappingNode(std::move(entry)));
    }
    std::string prefix;
    const YamlNode::Entry* const entry = reader_.Text("stdOutErrPathPrefix", prefix);
    if (entry == nullptr || prefix.empty()) return;
    const std::string logs = AddressToWrite(prefix, "", "logs", entry->line);
    if (!logs.empty()) AddEntry(tutti_, "logs", QuotedNode(logs));
  }

  void Distribution(const ToolkitRun& run) {
    if (run.distribution.empty()) return;
    AddEntry(distribution_, "type", TextNode(run.distribution));
    if (run.distribution == "tensorflow") {
      AddEntry(distribution_, "worker_count", TextNode(absl::StrCat(run.workers)));
      AddEntry(distribution_, "parameter_server_count",
               TextNode(absl::StrCat(run.parameter_servers)));
    } else {
      AddEntry(distribution_, "process_count_per_instance",
               TextNode(absl::StrCat(run.processes_per_node)));
    }
  }

  void Secrets() {
    constexpr absl::string_view kWhat = "an entry of secrets";
    Entries given;
    for (const YamlPointer& node : TakeList(reader_, "secrets", diagnostics_)) {
      MappingReader reader(*node, kWhat, diagnostics_);
      BatchAiSecret secret;
      const YamlNode::Entry* const name =
          TakeNeeded(reader, *node, kWhat, "name", secret.variable, diagnostics_);
      reader.Text("value", secret.value);
      const YamlNode::Entry* const reference = reader.Take("valueSecretReference");
      reader.Finish();
      if ((reference == nullptr) == secret.value.empty()) {
        diagnostics_.Error(node->line, absl::StrCat(kWhat,
                                                    ": it must have a value or a "
                                                    "valueSecretReference, and not both"));
        continue;
      }
      if (name == nullptr || !IsNewVariable(secret.variable, name->line)) continue;
      secret.secret = reference == nullptr ? SecretFor(secret.variable) : NameInVault(*reference);
      if (secret.secret.empty()) continue;
      if (options_.without_values && !secret.value.empty()) continue;
      AddEntry(given, secret.variable, QuotedNode(secret.secret));
      secrets_.push_back(std::move(secret));
    }
    if (!given.empty()) AddEntry(tutti_, "secrets", MappingNode(std::move(given)));
  }

  // A value that the file has is the job's own, as far as the job has a name.
  std::string SecretFor(const std::string& variable) const {
    return absl::StrCat(options_.name.empty() ? "batchai" : options_.name, "-", variable);
  }

  // "token" of https://VAULT.vault.azure.net/secrets/token/VERSION.
  std::string NameInVault(const YamlNode::Entry& reference) {
    MappingReader reader(*reference.value, "valueSecretReference", diagnostics_);
    TakeResource(reader, "sourceVault", diagnostics_);
    std::string url;
    reader.Text("secretUrl", url);
    reader.Finish();
    constexpr absl::string_view kSecrets = "/secrets/";
    const absl::string_view text = url;
    const size_t at = std::min(text.find(kSecrets), text.size());
    const absl::string_view rest = text.substr(std::min(at + kSecrets.size(), text.size()));
    std::string name(rest.substr(0, rest.find('/')));
    if (IsSecretName(name)) return name;
    diagnostics_.Error(reference.line,
                       "valueSecretReference: secretUrl must be "
                       "https://VAULT.vault.azure.net/secrets/NAME");
    return "";
  }

  void Resources() {
    Entries resources;
    AddEntry(resources, "instance_count", TextNode(absl::StrCat(node_count_)));
    if (!shm_size_.empty()) AddEntry(resources, "shm_size", QuotedNode(shm_size_));
    if (!tutti_.empty()) {
      Entries properties;
      AddEntry(properties, "tutti", MappingNode(std::move(tutti_)));
      AddEntry(resources, "properties", MappingNode(std::move(properties)));
    }
    resources_ = std::move(resources);
  }

  void Limits() {
    const YamlNode::Entry* const constraints = reader_.Take("constraints");
    if (constraints == nullptr) return;
    MappingReader reader(*constraints->value, "constraints", diagnostics_);
    std::string text;
    const YamlNode::Entry* const entry = reader.Text("maxWallClockTime", text);
    reader.Finish();
    if (entry == nullptr) return;
    const auto time = ReadTimeSpan(text);
    if (time && *time >= absl::Seconds(1)) {
      timeout_ = absl::ToInt64Seconds(*time);
      return;
    }
    diagnostics_.Error(entry->line,
                       absl::StrCat("maxWallClockTime \"", text.substr(0, kMostShownOfAnId),
                                    "\" must be a time, as P7D, PT90M or 7.00:00:00"));
  }

  void Priority() {
    static constexpr std::array<absl::string_view, 3> kPriorities = {"low", "normal", "high"};
    reader_.Choice("schedulingPriority", kPriorities, priority_);
    std::string number;
    const YamlNode::Entry* const entry = reader_.Text("priority", number);
    int value = 0;
    if (entry == nullptr) return;
    if (!absl::SimpleAtoi(number, &value) || value < -1000 || value > 1000) {
      return diagnostics_.Error(entry->line, "priority must be a number from -1000 to 1000");
    }
    if (priority_.empty() && value != 0) priority_ = value < 0 ? "low" : "high";
  }

  // The sections in the order in which job files have them.
  void Assemble() {
    VolumesAsInputs();
    const auto add = [this](absl::string_view key, Entries& section) {
      if (!section.empty()) AddEntry(job_, key, MappingNode(std::move(section)));
    };
    add("environment_variables", variables_);
    add("inputs", input_section_);
    add("outputs", output_section_);
    add("distribution", distribution_);
    add("resources", resources_);
    Entries limits, queue;
    if (timeout_ > 0) AddEntry(limits, "timeout", TextNode(absl::StrCat(timeout_)));
    if (!priority_.empty()) {
      AddEntry(queue, "priority", TextNode(priority_ == "normal" ? "medium" : priority_));
    }
    add("limits", limits);
    add("queue_settings", queue);
  }

  const YamlNode& node_;
  const BatchAiOptions& options_;
  Volumes& volumes_;
  Diagnostics& diagnostics_;
  MappingReader reader_;
  int node_count_ = 1;
  std::vector<Directory> inputs_, outputs_;
  std::set<std::string> names_;
  std::string shm_size_, priority_;
  int64_t timeout_ = 0;
  Entries job_, variables_, input_section_, output_section_, distribution_, tutti_, resources_;
  std::vector<BatchAiSecret> secrets_;
};

// The volumes that the cluster's file mounts for all jobs. What it says beside them has no effect
// here, and what of them has none is told of when the cluster is made.
absl::Status ReadClusterVolumes(const BatchAiOptions& options, Volumes& volumes,
                                std::vector<std::string>& warnings) {
  if (options.cluster_text.empty()) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const YamlPointer root,
                         ParseJsonWithLines(options.cluster_text, options.cluster_file));
  Diagnostics diagnostics(options.cluster_file);
  const YamlNode* const properties = PropertiesOf(*root, "cluster", diagnostics);
  const YamlNode::Entry* const setup =
      properties == nullptr ? nullptr : FindValue(*properties, "nodeSetup");
  const YamlNode::Entry* const mounts =
      setup == nullptr ? nullptr : FindValue(*setup->value, "mountVolumes");
  volumes.Read(mounts == nullptr ? *MappingNode({}) : *mounts->value, /*of_cluster=*/true,
               options.storage_account, diagnostics);
  for (const std::string& warning : diagnostics.warnings()) {
    if (!absl::StrContains(warning, "has no effect")) warnings.push_back(warning);
  }
  return diagnostics.status();
}

}  // namespace

absl::StatusOr<BatchAiJob> ConvertBatchAiJob(absl::string_view text, absl::string_view file_name,
                                             const BatchAiOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const YamlPointer root, ParseJsonWithLines(text, file_name));
  Volumes volumes;
  std::vector<std::string> warnings;
  TUTTI_RETURN_IF_ERROR(ReadClusterVolumes(options, volumes, warnings));
  Diagnostics diagnostics(file_name);
  const YamlNode* const properties = PropertiesOf(*root, "job", diagnostics);
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  JobConverter converter(*properties, options, volumes, diagnostics);
  const YamlPointer written = converter.Convert();
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  for (const std::string& warning : diagnostics.warnings()) warnings.push_back(warning);
  return BatchAiJob{YamlText(*written), std::move(warnings), converter.secrets(), volumes.Stores()};
}

absl::StatusOr<std::string> ClusterOfBatchAiJob(absl::string_view text, absl::string_view file_name,
                                                const std::string& cluster) {
  if (!cluster.empty()) return NameOfResource(cluster);
  TUTTI_ASSIGN_OR_RETURN(const YamlPointer root, ParseJsonWithLines(text, file_name));
  const YamlNode::Entry* const properties = FindValue(*root, "properties");
  const YamlNode::Entry* const found =
      properties == nullptr ? nullptr : FindValue(*properties->value, "cluster");
  if (found == nullptr) return "";
  if (found->value->kind == YamlNode::Kind::kScalar) return NameOfResource(found->value->scalar);
  const YamlNode::Entry* const id = FindValue(*found->value, "id");
  return id == nullptr ? "" : NameOfResource(id->value->scalar);
}

}  // namespace tutti::spec
