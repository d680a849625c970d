#include "spec/batchai/toolkits.h"

#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "spec/batchai/batch_ai_text.h"

namespace tutti::spec {
namespace {

constexpr int kMostProcessesOfAToolkit = 100'000;

// One reading of one toolkit's settings.
class SettingsReader {
 public:
  SettingsReader(const YamlNode::Entry& entry, int node_count, Diagnostics& diagnostics)
      : entry_(entry),
        node_count_(node_count),
        diagnostics_(diagnostics),
        reader_(*entry.value, entry.key, diagnostics) {
    run_.line = entry.line;
  }

  ToolkitRun Finish() {
    if (entry_.value->kind == YamlNode::Kind::kMapping) reader_.Finish();
    return std::move(run_);
  }

  void CustomToolkit() {
    std::string command;
    if (!Needed("commandLine", command)) return;
    if (node_count_ == 1) {
      run_.command = command;
      return;
    }
    run_.command = absl::StrCat(kOnFirstNode, command, "\nfi");
    diagnostics_.Warning(
        run_.line,
        "customToolkitSettings: the command runs on the first node alone, as in Batch AI. The "
        "other nodes are held for it, but nothing of the job listens there: for an mpirun in it "
        "take customMpiSettings, whose command each process runs");
  }

  void CustomMpi() {
    Needed("commandLine", run_.command);
    Mpi(/*always=*/true);
  }

  void Horovod() {
    run_.command = PythonCommand("commandLineArgs");
    Mpi(/*always=*/true);
  }

  void PyTorch() {
    static constexpr std::array<absl::string_view, 4> kBackends = {"tcp", "gloo", "mpi", "nccl"};
    run_.command = PythonCommand("commandLineArgs");
    std::string backend;
    const YamlNode::Entry* const entry = reader_.Choice("communicationBackend", kBackends, backend);
    const int per_node = ProcessesPerNode();
    run_.backend = backend == "tcp" ? "gloo" : backend;
    if (backend == "mpi") return SetDistribution("mpi", per_node);
    if (backend == "tcp") {
      diagnostics_.Warning(entry->line,
                           "communicationBackend tcp: PyTorch has had none since 1.0; where the "
                           "script is told a backend, tell it gloo, as AZ_BATCHAI_PYTORCH_BACKEND "
                           "does");
    }
    if (per_node * node_count_ > 1 || entry != nullptr) SetDistribution("pytorch", per_node);
  }

  void TensorFlow() {
    std::string script, master, worker, server;
    const bool has_script = Needed("pythonScriptFilePath", script);
    const std::string python = Python();
    reader_.Text("masterCommandLineArgs", master);
    const bool has_worker = reader_.Text("workerCommandLineArgs", worker) != nullptr;
    const bool has_server = reader_.Text("parameterServerCommandLineArgs", server) != nullptr;
    const bool has_workers =
        reader_.Count("workerCount", kMostProcessesOfAToolkit, run_.workers) != nullptr;
    const bool has_servers = reader_.Count("parameterServerCount", kMostProcessesOfAToolkit,
                                           run_.parameter_servers) != nullptr;
    if (!has_script) return;
    const auto with = [&](const std::string& arguments) {
      return absl::StrCat(python, " ", script, arguments.empty() ? "" : " ", arguments);
    };
    if (node_count_ == 1 && !has_worker && !has_server && !has_workers && !has_servers) {
      run_.command = with(master);
      return;
    }
    run_.distribution = "tensorflow";
    if (!has_workers) run_.workers = node_count_;
    if (!has_servers) run_.parameter_servers = 1;
    run_.command = absl::StrCat("case \"$AZUREML_PROCESS_NAME\" in\n",  //
                                "worker_0) ", with(master), " ;;\n",    //
                                "worker_*) ", with(worker), " ;;\n",    //
                                "ps_*) ", with(server), " ;;\n", "esac");
  }

  void Cntk() {
    static constexpr std::array<absl::string_view, 2> kLanguages = {"brainscript", "python"};
    std::string language;
    reader_.Choice("languageType", kLanguages, language);
    ConfigOrScript("cntk configFile=", language);
    Unavailable(
        "CNTK's last release is 2.7 of 2019, for Python 2.7 and 3.4 to 3.6: it installs in "
        "no Python of today; name an image that has it");
    Mpi(/*always=*/false);
  }

  void Caffe() {
    ConfigOrScript("caffe train -solver ", "");
    Unavailable(
        "Caffe's last release is 1.0 of 2017, and no package index has it: name an image "
        "that has it");
    Mpi(/*always=*/false);
  }

  void Caffe2() {
    run_.command = PythonCommand("commandLineArgs");
    Unavailable(
        "Caffe2 became a part of PyTorch, which has left it out since 2.4: name an image "
        "that has it, or an environment with an older torch");
  }

  void Chainer() {
    run_.command = PythonCommand("commandLineArgs");
    Unavailable(
        "Chainer's last release is 7.8.1 of 2022, which asks for older Pythons and NumPy: "
        "name an image or an environment that has it");
    Mpi(/*always=*/false);
  }

 private:
  bool Needed(absl::string_view key, std::string& value) {
    const YamlNode::Entry* const found =
        TakeNeeded(reader_, *entry_.value, entry_.key, key, value, diagnostics_);
    value = std::string(absl::StripAsciiWhitespace(value));
    return found != nullptr;
  }

  std::string Python() {
    std::string python = "python";
    reader_.Text("pythonInterpreterPath", python);
    return python;
  }

  std::string PythonCommand(absl::string_view arguments_key) {
    std::string script, arguments;
    const bool has_script = Needed("pythonScriptFilePath", script);
    const std::string python = Python();
    reader_.Text(arguments_key, arguments);
    if (!has_script) return "";
    return absl::StrCat(python, " ", script, arguments.empty() ? "" : " ", arguments);
  }

  // A program that takes a configuration, or a Python script: one of them.
  void ConfigOrScript(absl::string_view program, absl::string_view language) {
    std::string config;
    const YamlNode::Entry* const entry = reader_.Text("configFilePath", config);
    const bool has_script = FindValue(*entry_.value, "pythonScriptFilePath") != nullptr;
    if (entry != nullptr && (has_script || language == "python")) {
      diagnostics_.Error(entry->line, absl::StrCat(entry_.key,
                                                   ": configFilePath does not go with a Python "
                                                   "script: leave one of them out"));
    }
    if (entry == nullptr && !has_script) {
      return diagnostics_.Error(
          entry_.line,
          absl::StrCat(entry_.key, ": configFilePath or pythonScriptFilePath must say what runs"));
    }
    if (entry == nullptr) {
      run_.command = PythonCommand("commandLineArgs");
      return;
    }
    reader_.Take("pythonScriptFilePath");
    reader_.Take("pythonInterpreterPath");
    std::string arguments;
    reader_.Text("commandLineArgs", arguments);
    run_.command = absl::StrCat(program, config, arguments.empty() ? "" : " ", arguments);
  }

  // processCount is that of all nodes.
  int ProcessesPerNode() {
    int count = node_count_;
    const YamlNode::Entry* const entry =
        reader_.Count("processCount", kMostProcessesOfAToolkit, count);
    if (entry == nullptr || count % node_count_ == 0) return count / node_count_;
    diagnostics_.Error(entry->line,
                       absl::StrCat("processCount ", count, " is not as many on each of ",
                                    node_count_, " nodes: write a multiple of nodeCount"));
    return 1;
  }

  // `always`: also of one process.
  void Mpi(bool always) {
    const int per_node = ProcessesPerNode();
    if (always || per_node * node_count_ > 1) SetDistribution("mpi", per_node);
  }

  void SetDistribution(absl::string_view kind, int per_node) {
    run_.distribution = std::string(kind);
    run_.processes_per_node = per_node;
  }

  void Unavailable(absl::string_view why) {
    diagnostics_.Warning(entry_.line, absl::StrCat(entry_.key, ": ", why));
  }

  const YamlNode::Entry& entry_;
  const int node_count_;
  Diagnostics& diagnostics_;
  MappingReader reader_;
  ToolkitRun run_;
};

struct Toolkit {
  absl::string_view key;
  void (SettingsReader::*read)();
};

constexpr Toolkit kToolkits[] = {
    {"customToolkitSettings", &SettingsReader::CustomToolkit},
    {"customMpiSettings", &SettingsReader::CustomMpi},
    {"horovodSettings", &SettingsReader::Horovod},
    {"pyTorchSettings", &SettingsReader::PyTorch},
    {"tensorFlowSettings", &SettingsReader::TensorFlow},
    {"cntkSettings", &SettingsReader::Cntk},
    {"caffeSettings", &SettingsReader::Caffe},
    {"caffe2Settings", &SettingsReader::Caffe2},
    {"chainerSettings", &SettingsReader::Chainer},
};

std::string AllKeys() {
  std::vector<absl::string_view> keys;
  for (const Toolkit& toolkit : kToolkits) keys.push_back(toolkit.key);
  return absl::StrJoin(keys, ", ");
}

}  // namespace

ToolkitRun ReadToolkit(MappingReader& properties, const YamlNode& node, int node_count,
                       Diagnostics& diagnostics) {
  const YamlNode::Entry* first = nullptr;
  ToolkitRun run;
  for (const Toolkit& toolkit : kToolkits) {
    const YamlNode::Entry* const entry = properties.Take(toolkit.key);
    if (entry == nullptr) continue;
    if (first != nullptr) {
      diagnostics.Error(entry->line, absl::StrCat(entry->key, " stands beside ", first->key,
                                                  ": a job has one toolkit; leave the others out"));
      continue;
    }
    first = entry;
    SettingsReader reader(*entry, node_count, diagnostics);
    (reader.*toolkit.read)();
    run = reader.Finish();
  }
  if (first == nullptr) {
    diagnostics.Error(node.line, absl::StrCat("nothing says what runs: one of ", AllKeys()));
  }
  return run;
}

}  // namespace tutti::spec
