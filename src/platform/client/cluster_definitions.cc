// Defines the options of `tutti cluster` and `tutti node exec` (command_definitions.h).
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "platform/client/command_definitions.h"

namespace tutti::client {

using cluster::Autoscale;

CLI::App* CommandDefinitions::AddClusterCommand(CLI::App* cluster, const std::string& name,
                                                const std::string& description,
                                                ClusterCommand command) {
  CLI::App* added = Add(cluster, name, description,
                        [this, command](Context& context) { return command(context, cluster_); });
  AddClusterName(added);
  return added;
}

CLI::App* CommandDefinitions::AddClusterChange(CLI::App* cluster, const std::string& name,
                                               const std::string& description,
                                               ClusterCommand command) {
  CLI::App* added = Add(cluster, name, description, [this, command](Context& context) {
    return ChangeCluster(context, cluster_, command);
  });
  AddClusterName(added);
  return added;
}

void CommandDefinitions::AddClusterName(CLI::App* added) {
  added->add_option("-n,--name", cluster_.name, "The cluster's name")
      ->capture_default_str()
      ->type_name("NAME");
}

void CommandDefinitions::AddClusterHosts(CLI::App* command) {
  command->add_option("host", cluster_.hosts, "Machines, as ssh knows them")
      ->required()
      ->delimiter(',')
      ->type_name("HOST");
}

void CommandDefinitions::AddClusterForce(CLI::App* command, const std::string& description) {
  command->add_flag("--force", cluster_.force, description);
}

void CommandDefinitions::AddClusterWait(CLI::App* command) {
  command->add_option("--wait", cluster_.wait_seconds, "Give up if jobs take longer")
      ->capture_default_str()
      ->type_name("SECONDS");
}

void CommandDefinitions::AddClusterCreate(CLI::App* cluster) {
  CLI::App* create = AddClusterChange(
      cluster, "create", "Make machines a Slurm cluster, or repair one that was made so",
      &ClusterCreate);
  create->add_option("--hosts", cluster_.hosts, "The machines, with commas between")
      ->required()
      ->delimiter(',')
      ->type_name("HOST,…");
  create
      ->add_option("--controller", cluster_.controller,
                   "Where slurmctld runs (default: the first); need not be among the hosts")
      ->type_name("HOST");
  create->add_option("--user", cluster_.user, "Who logs in (default: as ssh is configured)")
      ->type_name("USER");
  create->add_option("--ssh-config", cluster_.ssh_config, "Configuration for ssh")
      ->type_name("FILE");
  create
      ->add_option("--accounting-db", cluster_.accounting,
                   "Keep accounts in this MariaDB by slurmdbd; @FILE: the address is in FILE")
      ->type_name("mysql://USER:PASSWORD@HOST/DATABASE");
  create
      ->add_option("--mount", cluster_.mounts,
                   "Every node mounts this by NFS: an export, or a file server of this service; "
                   "may be repeated. Takes the place of those before; \"none\": no mount")
      ->type_name("HOST:/EXPORT=/PATH|NAME=/PATH")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  create->add_flag("--dry-run", cluster_.dry_run, "Only say what would be done");
  create->footer(
      "Needs ssh without questions, as root or with sudo. On Debian and Ubuntu it installs Slurm\n"
      "and munge. A second run changes nothing but what is not as it should be.");
}

void CommandDefinitions::AddClusterNodes(CLI::App* cluster) {
  CLI::App* more =
      AddClusterChange(cluster, "add-node", "Take machines into the cluster", &ClusterAddNode);
  AddClusterHosts(more);
  more->add_flag("--dry-run", cluster_.dry_run, "Only say what would be done");
  CLI::App* fewer = AddClusterChange(
      cluster, "remove-node", "Wait for machines' jobs, then take them out", &ClusterRemoveNode);
  AddClusterHosts(fewer);
  AddClusterWait(fewer);
  AddClusterForce(fewer, "Also a machine that cannot be reached");
}

void CommandDefinitions::AddClusterViews(CLI::App* cluster) {
  CLI::App* status =
      AddClusterCommand(cluster, "status", "Show its nodes and their states", &ClusterStatus);
  CLI::App* check = AddClusterCommand(
      cluster, "check", "Check each node: clock, names, ports, disk, devices, mounts, bandwidth",
      &ClusterCheck);
  for (CLI::App* command : {status, check}) AddFormat(command, &cluster_.format);
}

void CommandDefinitions::AddClusterAutoscale(CLI::App* cluster) {
  CLI::App* scale = AddClusterChange(
      cluster, "autoscale",
      "Have nodes switched on when jobs wait and off when idle, or change that", &ClusterAutoscale);
  scale->add_flag("--off", cluster_.scale_off, "End it");
  // Only options that are given change the known settings.
  const auto add_change = [&](const char* name, auto Autoscale::*field, const char* description,
                              const char* type) {
    using Value = std::remove_reference_t<decltype(Autoscale().*field)>;
    return scale
        ->add_option_function<Value>(
            name,
            [this, field](const Value& value) {
              cluster_.scale.push_back([field, value](Autoscale& of) { of.*field = value; });
            },
            description)
        ->type_name(type);
  };
  const auto add_number = [&](const char* name, int Autoscale::*field, const char* description,
                              const char* type) {
    return add_change(name, field, description, type)
        ->default_str(absl::StrCat(Autoscale().*field));
  };
  add_change("--nodes", &Autoscale::nodes, "All that there may be", "HOST,…")->delimiter(',');
  add_change("--resume", &Autoscale::resume, "Command that switches $NODE on", "COMMAND");
  add_change("--suspend", &Autoscale::suspend, "Command that switches $NODE off", "COMMAND");
  add_number("--min", &Autoscale::min, "So many stay on", "N")
      ->check(CLI::NonNegativeNumber.description(""));
  add_number("--idle", &Autoscale::idle_seconds, "Off after so long without work", "SECONDS")
      ->check(CLI::PositiveNumber.description(""));
  add_number("--boot", &Autoscale::boot_seconds, "Unusable if not there after so long", "SECONDS")
      ->check(CLI::PositiveNumber.description(""));
  add_number("--halt", &Autoscale::halt_seconds, "Gone so long after it was switched off",
             "SECONDS")
      ->check(CLI::PositiveNumber.description(""));
  scale
      ->add_option("--like", cluster_.like,
                   "They have this host's hardware (at first: the first node's)")
      ->type_name("HOST");
  AddClusterWait(scale);
  scale->footer("What is not given stays as it was; at first it is as shown.");
  AddClusterForce(scale,
                  "Also while jobs are on nodes that leave, which are requeued if they may be");
  scale->add_flag("--dry-run", cluster_.dry_run, "Only say what would be done");
}

void CommandDefinitions::AddNodeExec(CLI::App* node) {
  CLI::App* exec = Add(node, "exec", "Run a command on a node of `tutti cluster`, by ssh",
                       [this, node](Context& context) {
                         return NodeExec(context, cluster_.name, exec_node_,
                                         node->get_subcommand("exec")->remaining());
                       });
  exec->fallthrough(false)->prefix_command();  // what follows the node is the command's
  AddClusterName(exec);
  exec->add_option("node", exec_node_, "The node; a command and its arguments may follow")
      ->required()
      ->type_name("NODE");
  exec->footer("Without a command it is a shell. It ends with the command's own exit code.");
}

void CommandDefinitions::AddCluster(CLI::App* app) {
  CLI::App* cluster = app->add_subcommand(
      "cluster", "Slurm on machines of your own: create, status, add-node, remove-node, …");
  cluster->require_subcommand(1)->fallthrough();
  AddClusterCreate(cluster);
  AddClusterViews(cluster);
  AddClusterNodes(cluster);
  AddClusterAutoscale(cluster);
  CLI::App* upgrade =
      AddClusterChange(cluster, "upgrade", "Newer packages of Slurm, in the order that Slurm needs",
                       &ClusterUpgrade);
  AddClusterForce(upgrade, "Also where a new major release may lose the jobs in its queue");
  upgrade->add_flag("--dry-run", cluster_.dry_run, "Only say what would be done");
  AddClusterForce(AddClusterChange(cluster, "delete",
                                   "End its daemons and remove its configuration", &ClusterDelete),
                  "Also while jobs are in its queue");
}

}  // namespace tutti::client
