// Defines the names of the commands and their options, their values, and the text of --help. Behind
// CommandParser; only it includes this.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/client/cluster_definitions.h"
#include "platform/client/command_line.h"
#include "platform/client/commands/commands.h"
#include "platform/client/completion.h"

namespace CLI {
class App;
}

namespace tutti::client {

// The names of what a value is, as --help shows them; shells complete by them, and by a list of
// words with "|" between.
inline constexpr char kJobValue[] = "JOB";
inline constexpr char kFileValue[] = "FILE";
inline constexpr char kFolderValue[] = "FOLDER";

// Adds the option --output, as `format` says after parsing.
void AddFormat(CLI::App* command, Format* format);

// Parsing fills the options and sets the action of the command that was chosen. Stays where it is.
class CommandDefinitions {
 public:
  using Action = std::function<absl::StatusOr<ExitCode>(Context&)>;

  // `tree`: of the app that AddTo fills, for `tutti completion`.
  CommandDefinitions(const Wiring& wiring, std::function<CommandTree()> tree);
  CommandDefinitions(const CommandDefinitions&) = delete;
  CommandDefinitions& operator=(const CommandDefinitions&) = delete;

  void AddTo(CLI::App* app);

  const std::string& home() const { return home_; }
  const Action& chosen() const { return chosen_; }

 private:
  CLI::App* Add(CLI::App* parent, const std::string& name, const std::string& description,
                Action action);
  void AddServe(CLI::App* app);
  // Adds a job file and changes to it; of RunOptions or JobValidateOptions.
  template <typename Options>
  void AddSubmission(CLI::App* command, Options* options);
  void AddScript(CLI::App* command, ScriptOptions* options);
  void AddRun(CLI::App* app);
  void AddInit(CLI::App* app);
  void AddCreate(CLI::App* job);
  void AddValidate(CLI::App* job);
  void AddUpgrade(CLI::App* job);
  void AddViews(CLI::App* job);
  void AddStream(CLI::App* job);
  void AddEnds(CLI::App* job);
  void AddFiles(CLI::App* job);
  void AddData(CLI::App* app);
  // Adds create, show and delete, and list but for data.
  void AddAssets(CLI::App* group, spec::AssetKind kind);
  void AddComponent(CLI::App* app);
  void AddCompute(CLI::App* app);
  void AddEnvironment(CLI::App* app);
  void AddNode(CLI::App* app);
  void AddSecret(CLI::App* app);
  void AddDatastore(CLI::App* app);
  void AddCache(CLI::App* app);
  void AddWarm(CLI::App* cache);
  void AddBackup(CLI::App* app);
  void AddPrune(CLI::App* app);
  void AddDoctor(CLI::App* app);
  void AddProgram(CLI::App* app, const std::string& name, const std::string& description);
  void AddCompletion(CLI::App* app);
  void AddHidden(CLI::App* app);

  const Wiring& wiring_;
  const std::function<CommandTree()> tree_;
  std::string home_, plan_, shell_, complete_;
  ServeOptions serve_;
  RunOptions submit_;
  InitOptions init_;
  JobValidateOptions validate_;
  JobUpgradeOptions upgrade_;
  JobListOptions list_;
  JobOptions show_;
  JobStreamOptions stream_;
  JobWaitOptions wait_;
  JobCancelOptions cancel_;
  JobDownloadOptions download_;
  DataOptions data_;
  AssetOptions asset_;
  ComputeOptions compute_;
  EnvironmentOptions image_;
  ClusterDefinitions cluster_;
  std::vector<std::string> delete_;
  NodeCordonOptions cordon_;
  SecretOptions secret_;
  DatastoreOptions datastore_;
  CacheOptions cache_;
  BackupOptions backup_;
  PruneOptions prune_;
  Format format_ = Format::kTable;
  Action chosen_;
};

}  // namespace tutti::client
