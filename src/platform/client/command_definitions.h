// Defines the names of the commands and their options, their values, and the text of --help. Behind
// CommandParser; only it includes this.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/client/command_line.h"
#include "platform/client/commands/cluster/cluster.h"
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

// Reads "90", "90s", "1h30m"; throws CLI::ValidationError, which names the option.
absl::Duration ReadDuration(const std::string& option, const std::string& text);
// Reads days and weeks too: "30d", "8w".
absl::Duration ReadAge(const std::string& option, const std::string& text);

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
  void AddSettings(CLI::App* command, std::vector<std::string>* settings,
                   std::vector<KeyOption>* keys);
  void AddFollowing(CLI::App* command, RunOptions* options);
  void AddCreate(CLI::App* job);
  void AddRerun(CLI::App* job);
  void AddResume(CLI::App* command);
  void AddValidate(CLI::App* job);
  void AddUpgrade(CLI::App* job);
  void AddViews(CLI::App* job);
  void AddTop(CLI::App* app);
  void AddPortal(CLI::App* app);
  void AddTensorBoard(CLI::App* app);
  void AddStream(CLI::App* job);
  void AddEnds(CLI::App* job);
  void AddWaitTimeout(CLI::App* wait);
  void AddFiles(CLI::App* job);
  void AddData(CLI::App* app);
  // Adds create, show and delete, and list but for data.
  void AddAssets(CLI::App* group, spec::AssetKind kind);
  void AddComponent(CLI::App* app);
  void AddModel(CLI::App* app);
  void AddModelRegistration(CLI::App* model, const std::string& name);
  void AddCompute(CLI::App* app);
  void AddEnvironment(CLI::App* app);
  void AddNode(CLI::App* app);
  void AddNodeExec(CLI::App* node);
  void AddCluster(CLI::App* app);
  CLI::App* AddClusterCommand(CLI::App* cluster, const std::string& name,
                              const std::string& description, ClusterCommand command);
  // Adds a command that changes the cluster; one runs at a time.
  CLI::App* AddClusterChange(CLI::App* cluster, const std::string& name,
                             const std::string& description, ClusterCommand command);
  void AddClusterName(CLI::App* command);
  void AddClusterHosts(CLI::App* command);
  void AddClusterWait(CLI::App* command);
  void AddClusterForce(CLI::App* command, const std::string& description);
  void AddClusterCreate(CLI::App* cluster);
  void AddClusterNodes(CLI::App* cluster);
  void AddClusterViews(CLI::App* cluster);
  void AddClusterAutoscale(CLI::App* cluster);
  void AddSecret(CLI::App* app);
  void AddDatastore(CLI::App* app);
  void AddFileServer(CLI::App* app);
  void AddCache(CLI::App* app);
  void AddStorage(CLI::App* app);
  void AddWarm(CLI::App* cache);
  void AddBatchAi(CLI::App* app);
  // The options that Batch AI's own commands had, of all or of those about a job's file.
  void AddBatchAiScope(CLI::App* command);
  void AddBatchAiConversion(CLI::App* command);
  void AddBatchAiSource(CLI::App* command);
  // Adds the job that the command is about.
  void AddBatchAiJob(CLI::App* command, std::string* job);
  void AddBatchAiYes(CLI::App* command);
  void AddBatchAiJobs(CLI::App* group);
  void AddBatchAiJobViews(CLI::App* job);
  void AddBatchAiJobEnds(CLI::App* job);
  void AddBatchAiJobNodes(CLI::App* job);
  void AddBatchAiFiles(CLI::App* job);
  void AddBatchAiCluster(CLI::App* group);
  void AddBatchAiComputes(CLI::App* cluster);
  void AddBatchAiResize(CLI::App* cluster);
  void AddBatchAiNodes(CLI::App* cluster);
  void AddBatchAiFileServer(CLI::App* group);
  void AddBatchAiFileServerViews(CLI::App* server);
  void AddBackup(CLI::App* app);
  void AddPrune(CLI::App* app);
  void AddDoctor(CLI::App* app);
  // Adds a command that hands its words on to a program; `run` does.
  void AddProgram(
      CLI::App* app, const std::string& name, const std::string& description,
      const std::function<absl::StatusOr<ExitCode>(Context&, const std::vector<std::string>&)>&
          run);
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
  JobDiffOptions diff_;
  JobMetricsOptions metrics_;
  TopOptions top_;
  PortalOptions portal_;
  TensorBoardOptions tensorboard_;
  JobStacksOptions stacks_;
  JobStreamOptions stream_;
  JobWaitOptions wait_;
  JobCancelOptions cancel_;
  JobDownloadOptions download_;
  DataOptions data_;
  AssetOptions asset_;
  ModelOptions model_;
  ComputeOptions compute_;
  EnvironmentOptions image_;
  EnvironmentPruneOptions unused_;
  ClusterOptions cluster_;
  std::string exec_node_;
  std::vector<std::string> delete_;
  NodeListOptions nodes_;
  NodeCordonOptions cordon_;
  SecretOptions secret_;
  DatastoreOptions datastore_;
  FileServerOptions file_server_;
  CacheOptions cache_;
  StorageOptions storage_;
  BatchAiCommandOptions batch_ai_;
  BackupOptions backup_;
  PruneOptions prune_;
  Format format_ = Format::kTable;
  Action chosen_;
};

}  // namespace tutti::client
