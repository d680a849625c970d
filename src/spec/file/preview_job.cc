#include "spec/file/preview_job.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "spec/text/diagnostics.h"
#include "spec/text/expressions.h"
#include "spec/text/other_kinds.h"
#include "spec/text/preview_mark.h"
#include "spec/text/yaml_text.h"

namespace tutti::spec {
namespace {

constexpr size_t kLongestInBraces = 200;

using Kind = YamlNode::Kind;
using Entries = std::vector<YamlNode::Entry>;
using Node = std::shared_ptr<const YamlNode>;

// The entry `key` is set; one that is there keeps its place.
void Set(Entries& entries, absl::string_view key, Node value, int line = 1) {
  for (YamlNode::Entry& entry : entries) {
    if (entry.key != key) continue;
    entry.value = std::move(value);
    return;
  }
  entries.push_back({std::string(key), line, std::move(value), ""});
}

// Takes the entry out; nullptr if there is none or nothing in it.
Node Take(Entries& entries, absl::string_view key) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const YamlNode::Entry& entry) { return entry.key == key; });
  if (found == entries.end()) return nullptr;
  const Node value = found->value;
  entries.erase(found);
  return value->kind == Kind::kNull ? nullptr : value;
}

// {inputs.x}, {{inputs.x}} and $${{inputs.x}} are ${{inputs.x}} today.
std::string WithDollars(absl::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('{', at), text.size());
    const size_t length = text.substr(open, kLongestInBraces).find('}');
    const size_t close = length == absl::string_view::npos ? length : open + length;
    absl::StrAppend(&result, text.substr(at, open - at));
    at = open;
    if (open == text.size()) break;
    if (close == absl::string_view::npos) {
      result += text[at++];
      continue;
    }
    const bool two = absl::StartsWith(text.substr(open), "{{");
    const absl::string_view body =
        absl::StripAsciiWhitespace(text.substr(open + (two ? 2 : 1), close - open - (two ? 2 : 1)));
    const bool is_meant = absl::StartsWith(body, "inputs.") || absl::StartsWith(body, "outputs.") ||
                          absl::StartsWith(body, "search_space.") ||
                          (absl::StartsWith(body, "jobs.") && absl::EndsWith(result, "$$"));
    const size_t end = close + (two ? 2 : 1);
    if (!is_meant || body.find('{') != absl::string_view::npos || end > text.size()) {
      result += text[at++];
      if (two) result += text[at++];
      continue;
    }
    while (absl::EndsWith(result, "$")) result.pop_back();
    absl::StrAppend(&result, "${{", body, "}}");
    at = end;
  }
  return result;
}

// Converts one file; what it cannot convert goes to the notes.
class Upgrader {
 public:
  explicit Upgrader(Diagnostics& notes) : notes_(notes) {}

  Node Job(const YamlNode& job, bool in_pipeline) {
    Entries keys = job.entries;
    const std::string type = Type(keys);
    if (type == "pipeline" && FindEntry(job, "jobs") != nullptr) {
      Pipeline(keys);
    } else if (type == "sweep") {
      Sweep(keys, in_pipeline);
    } else {
      Command(keys);
      Sections(keys, in_pipeline);
    }
    return MappingNode(std::move(keys));
  }

 private:
  // "sweep_job" is "sweep". Returns today's type; where the file has none that is known, the one
  // that its keys tell.
  static std::string Type(Entries& keys) {
    for (YamlNode::Entry& entry : keys) {
      if (entry.key != "type") continue;
      std::string type = absl::AsciiStrToLower(entry.value->scalar);
      type = std::string(absl::StripSuffix(type, "_job"));
      if (type == "component") type = "command";
      entry.value = TextNode(type);
      if (type == "command" || type == "sweep" || type == "pipeline") return type;
    }
    const YamlNode all = *MappingNode(keys);
    if (FindEntry(all, "jobs") != nullptr) return "pipeline";
    const bool is_sweep = FindEntry(all, "search_space") || FindEntry(all, "trial");
    return is_sweep ? "sweep" : "command";
  }

  // Converts the keys that say what runs and where.
  void Command(Entries& keys) {
    for (YamlNode::Entry& entry : keys) {
      if (entry.key == "command") {
        auto text = std::make_shared<YamlNode>(*entry.value);
        text->scalar = WithDollars(text->scalar);
        entry.value = text;
      } else if (entry.key == "environment_variables" && entry.value->kind == Kind::kMapping) {
        auto variables = std::make_shared<YamlNode>(*entry.value);
        for (YamlNode::Entry& variable : variables->entries) {
          variable.value = TextNode(WithDollars(variable.value->scalar));
        }
        entry.value = variables;
      } else if (entry.key == "code") {
        entry.value = Code(entry);
      } else if (entry.key == "environment") {
        entry.value = Environment(*entry.value);
      } else if (entry.key == "component") {
        entry.value = entry.value->kind == Kind::kScalar ? entry.value : Job(*entry.value, true);
      }
    }
    Compute(keys);
    Distribution(keys);
  }

  Node Code(const YamlNode::Entry& entry) {
    if (entry.value->kind != Kind::kMapping) return entry.value;
    if (const YamlNode::Entry* path = FindEntry(*entry.value, "local_path")) return path->value;
    notes_.Warning(entry.line,
                   "code: only {local_path: …} can be converted; a git repository is written "
                   "code: git+https://HOST/REPOSITORY.git@REVISION");
    return TextNode(".");
  }

  // {target: x, instance_count: n} is `compute: x` beside `resources: {instance_count: n}`.
  void Compute(Entries& keys) {
    const YamlNode before = *MappingNode(keys);
    const YamlNode::Entry* compute = FindEntry(before, "compute");
    if (compute == nullptr || compute->value->kind != Kind::kMapping) return;
    Entries rest = compute->value->entries;
    const Node target = Take(rest, "target");
    if (target != nullptr) {
      Set(keys, "compute", target);
    } else {
      Take(keys, "compute");
    }
    if (rest.empty()) return;
    const YamlNode::Entry* resources = FindEntry(before, "resources");
    Entries all = resources == nullptr ? Entries() : resources->value->entries;
    for (const YamlNode::Entry& entry : rest) Set(all, entry.key, entry.value, entry.line);
    Set(keys, "resources", MappingNode(std::move(all)), compute->line);
  }

  // The preview's process_count was that of all nodes.
  void Distribution(Entries& keys) {
    const YamlNode before = *MappingNode(keys);
    const YamlNode::Entry* distribution = FindEntry(before, "distribution");
    if (distribution == nullptr || distribution->value->kind != Kind::kMapping) return;
    Entries entries = distribution->value->entries;
    const Node count = Take(entries, "process_count");
    if (count == nullptr) return;
    const YamlNode::Entry* resources = FindEntry(before, "resources");
    const YamlNode::Entry* nodes =
        resources == nullptr ? nullptr : FindEntry(*resources->value, "instance_count");
    int processes = 1, instances = 1;
    if (!absl::SimpleAtoi(count->scalar, &processes) ||
        (nodes != nullptr && !absl::SimpleAtoi(nodes->value->scalar, &instances)) ||
        instances < 1 || processes % instances != 0) {
      notes_.Warning(distribution->line,
                     absl::StrCat("distribution: process_count ", count->scalar.substr(0, 20),
                                  " is not as many on each node: write "
                                  "process_count_per_instance"));
      instances = processes = 1;
    }
    Set(entries, "process_count_per_instance", TextNode(absl::StrCat(processes / instances)));
    Set(keys, "distribution", MappingNode(std::move(entries)));
  }

  // {docker: {image: x}, conda_file: file:c.yml} is {image: x, conda_file: c.yml}.
  static Node Environment(const YamlNode& environment) {
    if (environment.kind != Kind::kMapping) return std::make_shared<YamlNode>(environment);
    Entries keys = environment.entries;
    Take(keys, "path");
    if (const Node docker = Take(keys, "docker")) {
      if (const YamlNode::Entry* image = FindEntry(*docker, "image"))
        Set(keys, "image", image->value);
      if (const YamlNode::Entry* build = FindEntry(*docker, "build")) {
        const YamlNode::Entry* file = FindEntry(*build->value, "dockerfile");
        const absl::string_view path = absl::StripPrefix(
            file == nullptr ? absl::string_view("Dockerfile") : file->value->scalar, "file:");
        const size_t slash = path.rfind('/');
        const absl::string_view folder = slash == path.npos ? "." : path.substr(0, slash);
        Set(keys, "build",
            MappingNode({{"path", 1, TextNode(folder), ""},
                         {"dockerfile_path", 1, TextNode(path.substr(slash + 1)), ""}}));
      }
    }
    for (YamlNode::Entry& entry : keys) {
      if (entry.key == "conda_file" && entry.value->kind == Kind::kScalar) {
        entry.value = TextNode(absl::StripPrefix(entry.value->scalar, "file:"));
      }
    }
    return MappingNode(std::move(keys));
  }

  void Sections(Entries& keys, bool in_pipeline) {
    for (YamlNode::Entry& section : keys) {
      const bool is_inputs = section.key == "inputs";
      if ((!is_inputs && section.key != "outputs") || section.value->kind != Kind::kMapping)
        continue;
      Entries entries = section.value->entries;
      for (YamlNode::Entry& entry : entries) {
        if (entry.value->kind == Kind::kMapping) entry.value = Data(entry, is_inputs);
        if (in_pipeline) entry.value = Bound(entry.value);
      }
      section.value = MappingNode(std::move(entries));
    }
  }

  // {data: {path: p}, mode: mount} is {type: uri_file, path: p, mode: ro_mount}.
  static Node Data(const YamlNode::Entry& entry, bool is_input) {
    Entries keys = entry.value->entries;
    std::string type, path;
    for (const char* key : {"data", "dataset", "folder", "file"}) {
      const Node data = Take(keys, key);
      if (data == nullptr) continue;
      const YamlNode::Entry* inner = FindEntry(*data, "path");
      if (inner == nullptr) inner = FindEntry(*data, "local_path");
      path = inner == nullptr ? data->scalar : inner->value->scalar;
      if (key == std::string("file")) type = "uri_file";
    }
    if (path.empty() && FindEntry(*entry.value, "data") == nullptr) return entry.value;
    const absl::string_view last = absl::string_view(path).substr(path.rfind('/') + 1);
    const bool is_file = !absl::StartsWith(path, "azureml:") && last.find('.') != last.npos &&
                         last.find_first_not_of('.') != last.npos;
    if (type.empty()) type = is_input && is_file ? "uri_file" : "uri_folder";
    Entries written = {{"type", entry.line, TextNode(type), ""}};
    if (!path.empty()) written.push_back({"path", entry.line, TextNode(path), ""});
    for (const YamlNode::Entry& key : keys) {
      const bool is_mount = key.key == "mode" && key.value->scalar == "mount";
      Set(written, key.key, is_mount ? TextNode(is_input ? "ro_mount" : "rw_mount") : key.value);
    }
    return MappingNode(std::move(written));
  }

  // ${{inputs.x}}, ${{jobs.a.outputs.b}} and ${{outputs.x}} of a step are the pipeline's.
  static Node Bound(const Node& value) {
    const std::string dollars =
        value->kind == Kind::kScalar ? WithDollars(value->scalar) : std::string();
    const Node text =
        value->kind == Kind::kScalar && dollars != value->scalar ? TextNode(dollars) : value;
    return ReplaceExpressions(text, [](absl::string_view body) -> std::optional<std::string> {
      for (const absl::string_view root : {"inputs.", "outputs.", "jobs."}) {
        if (absl::StartsWith(body, root)) return absl::StrCat("${{parent.", body, "}}");
      }
      return std::nullopt;
    });
  }

  // `spec:` is `type:` today, `algorithm:` `sampling_algorithm:`, and the limits stand together.
  void Sweep(Entries& keys, bool in_pipeline) {
    for (YamlNode::Entry& entry : keys) {
      if (entry.key == "algorithm") entry.key = "sampling_algorithm";
      if (entry.key == "early_termination") entry.value = WithType(*entry.value);
      if (entry.key != "search_space" || entry.value->kind != Kind::kMapping) continue;
      auto space = std::make_shared<YamlNode>(*entry.value);
      for (YamlNode::Entry& parameter : space->entries) {
        parameter.value = WithType(*parameter.value);
      }
      entry.value = space;
    }
    Limits(keys);
    Trial(keys);
    Compute(keys);
    Sections(keys, in_pipeline);
  }

  static Node WithType(const YamlNode& node) {
    auto copy = std::make_shared<YamlNode>(node);
    for (YamlNode::Entry& entry : copy->entries) {
      if (entry.key == "spec") entry.key = "type";
    }
    return copy;
  }

  static void Limits(Entries& keys) {
    const YamlNode before = *MappingNode(keys);
    const YamlNode::Entry* written = FindEntry(before, "limits");
    Entries limits = written == nullptr ? Entries() : written->value->entries;
    for (const char* key : {"max_total_trials", "max_concurrent_trials", "timeout_minutes"}) {
      if (const Node value = Take(keys, key)) Set(limits, key, value);
    }
    int64_t minutes = 0;
    const Node timeout = Take(limits, "timeout_minutes");
    if (timeout != nullptr && absl::SimpleAtoi(timeout->scalar, &minutes) && minutes > 0 &&
        minutes < 1'000'000) {
      Set(limits, "timeout", TextNode(absl::StrCat(minutes * 60)));
    }
    if (!limits.empty()) Set(keys, "limits", MappingNode(std::move(limits)));
  }

  // A trial's inputs, outputs and compute are the sweep's today.
  void Trial(Entries& keys) {
    const YamlNode before = *MappingNode(keys);
    const YamlNode::Entry* trial = FindEntry(before, "trial");
    if (trial == nullptr || trial->value->kind != Kind::kMapping) return;
    Entries inner = trial->value->entries;
    Command(inner);
    for (const char* key : {"inputs", "outputs", "compute"}) {
      if (const Node value = Take(inner, key)) Set(keys, key, value, trial->line);
    }
    Take(inner, "type");
    Set(keys, "trial", MappingNode(std::move(inner)));
  }

  void Pipeline(Entries& keys) {
    Defaults(keys);
    Sections(keys, /*in_pipeline=*/false);
    const std::map<std::string, Entries> given = GivenToSteps(keys);
    for (YamlNode::Entry& entry : keys) {
      if (entry.key != "jobs" || entry.value->kind != Kind::kMapping) continue;
      auto jobs = std::make_shared<YamlNode>(*entry.value);
      for (YamlNode::Entry& step : jobs->entries) {
        if (step.value->kind != Kind::kMapping) continue;
        step.value = Job(*step.value, true);
        if (const auto more = given.find(step.key); more != given.end()) {
          step.value = WithOutputs(*step.value, more->second);
        }
      }
      entry.value = jobs;
    }
    Compute(keys);
  }

  // The pipeline's outputs that were $${{jobs.STEP.outputs.NAME}} become folders, which the steps
  // name today: by step what their outputs are.
  static std::map<std::string, Entries> GivenToSteps(Entries& keys) {
    std::map<std::string, Entries> given;
    for (YamlNode::Entry& section : keys) {
      if (section.key != "outputs" || section.value->kind != Kind::kMapping) continue;
      Entries outputs = section.value->entries;
      for (YamlNode::Entry& output : outputs) {
        const std::vector<std::string> parts =
            absl::StrSplit(WithDollars(output.value->scalar), absl::ByAnyChar(".{}"));
        if (parts.size() != 8 || parts[2] != "jobs" || parts[4] != "outputs") continue;
        const std::string parent = absl::StrCat("${{parent.outputs.", output.key, "}}");
        given[parts[3]].push_back({parts[5], output.line, TextNode(parent), ""});
        output.value = MappingNode({{"type", output.line, TextNode("uri_folder"), ""}});
      }
      section.value = MappingNode(std::move(outputs));
    }
    return given;
  }

  static Node WithOutputs(const YamlNode& step, const Entries& more) {
    Entries keys = step.entries;
    const YamlNode::Entry* const written = FindEntry(step, "outputs");
    Entries outputs = written == nullptr ? Entries() : written->value->entries;
    for (const YamlNode::Entry& output : more) Set(outputs, output.key, output.value, output.line);
    Set(keys, "outputs", MappingNode(std::move(outputs)));
    return MappingNode(std::move(keys));
  }

  // defaults: {component_job: {compute: {target: x}, datastore: y}} are settings.
  void Defaults(Entries& keys) {
    const YamlNode before = *MappingNode(keys);
    const Node defaults = Take(keys, "defaults");
    if (defaults == nullptr) return;
    const YamlNode::Entry* const at = FindEntry(before, "defaults");
    const YamlNode::Entry* const written = FindEntry(before, "settings");
    Entries settings = written == nullptr ? Entries() : written->value->entries;
    for (const YamlNode::Entry& type : defaults->entries) {
      Entries inner = type.value->entries;
      Compute(inner);
      for (const YamlNode::Entry& entry : inner) {
        if (entry.key == "compute" || entry.key == "datastore") {
          Set(settings, absl::StrCat("default_", entry.key), entry.value, entry.line);
        } else {
          notes_.Warning(at->line, absl::StrCat("defaults: ", entry.key.substr(0, 80),
                                                " has no place in today's schema: write it in the "
                                                "steps"));
        }
      }
    }
    Set(keys, "settings", MappingNode(std::move(settings)), at->line);
  }

  Diagnostics& notes_;
};

}  // namespace

absl::StatusOr<UpgradedJob> UpgradeJob(absl::string_view text, absl::string_view file_name) {
  TUTTI_ASSIGN_OR_RETURN(const Node root, ParseYaml(text, file_name));
  if (const auto other = OtherKindThan("job", *root, file_name)) {
    return absl::FailedPreconditionError(
        absl::StrCat(file_name, ":", other->line, ": this is ", other->message));
  }
  if (!FindPreviewMark(*root)) {
    return absl::FailedPreconditionError(absl::StrCat(
        file_name, " is not of the preview schema of 2021: there is nothing to convert"));
  }
  Diagnostics notes(file_name);
  const Node job = Upgrader(notes).Job(*root, /*in_pipeline=*/false);
  return UpgradedJob{YamlText(*job), notes.warnings()};
}

}  // namespace tutti::spec
