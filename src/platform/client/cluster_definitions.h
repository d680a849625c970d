// Defines the options of `tutti cluster …` and the text of their --help. A part of
// CommandDefinitions.
#pragma once

#include <functional>
#include <string>

#include "platform/client/commands/cluster/cluster.h"

namespace CLI {
class App;
}

namespace tutti::client {

// Parsing fills the options of the command that was chosen. Stays where it is.
class ClusterDefinitions {
 public:
  using Action = std::function<absl::StatusOr<ExitCode>(Context&)>;
  using AddCommand = std::function<CLI::App*(CLI::App* parent, const std::string& name,
                                             const std::string& description, Action action)>;

  ClusterDefinitions() = default;
  ClusterDefinitions(const ClusterDefinitions&) = delete;
  ClusterDefinitions& operator=(const ClusterDefinitions&) = delete;

  void AddTo(CLI::App* app, const AddCommand& add);
  // Adds `node exec`, for a node of such a cluster.
  void AddExec(CLI::App* node, const AddCommand& add);

 private:
  using Command = ClusterCommand;
  CLI::App* Add(CLI::App* cluster, const AddCommand& add, const std::string& name,
                const std::string& description, Command command);
  // Adds a command that changes it; one runs at a time.
  CLI::App* AddChange(CLI::App* cluster, const AddCommand& add, const std::string& name,
                      const std::string& description, Command command);
  void AddName(CLI::App* added);
  void AddHosts(CLI::App* command);
  void AddWait(CLI::App* command);
  void AddForce(CLI::App* command, const std::string& description);
  void AddCreate(CLI::App* cluster, const AddCommand& add);
  void AddNodes(CLI::App* cluster, const AddCommand& add);
  void AddViews(CLI::App* cluster, const AddCommand& add);
  void AddAutoscale(CLI::App* cluster, const AddCommand& add);

  ClusterOptions options_;
  std::string node_;
};

}  // namespace tutti::client
