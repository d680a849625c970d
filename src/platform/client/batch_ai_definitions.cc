// Defines the options of `tutti batchai` (command_definitions.h), as `az batchai` had them. What is
// not about Batch AI's files is another name of a command of `tutti job`, `compute` or `node`.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "platform/client/command_definitions.h"

namespace tutti::client {

void CommandDefinitions::AddBatchAiScope(CLI::App* command) {
  command->add_option("-g,--resource-group", batch_ai_.resource_group, "Of Azure; no effect")
      ->type_name("NAME");
  command->add_option("-w,--workspace", batch_ai_.workspace, "Of Azure; no effect")
      ->type_name("NAME");
}

void CommandDefinitions::AddBatchAiConversion(CLI::App* command) {
  command->add_option("-f,--config-file,file", batch_ai_.file, "The job's file (job.json)")
      ->required()
      ->type_name(kFileValue);
  command->add_option("-n,--name", batch_ai_.name, "The job's name")->type_name("NAME");
  command
      ->add_option("-c,--cluster", batch_ai_.cluster,
                   "The compute; one of `tutti batchai cluster create` has its volumes, too")
      ->type_name("NAME");
  command
      ->add_option("--cluster-file", batch_ai_.cluster_file,
                   "The cluster's file (cluster.json), whose volumes the job has")
      ->type_name(kFileValue);
  command->add_option("-e,--experiment", batch_ai_.experiment, "The job's experiment")
      ->type_name("NAME");
  command
      ->add_option("--storage-account-name", batch_ai_.storage_account,
                   "What <AZURE_BATCHAI_STORAGE_ACCOUNT> stands for (default: the variable "
                   "AZURE_BATCHAI_STORAGE_ACCOUNT)")
      ->envname("AZURE_BATCHAI_STORAGE_ACCOUNT")
      ->type_name("NAME");
  command->add_option("--save", batch_ai_.save, "Write the job file that it becomes")
      ->type_name(kFileValue);
  AddBatchAiScope(command);
}

void CommandDefinitions::AddBatchAi(CLI::App* app) {
  CLI::App* group = app->add_subcommand(
      "batchai", "Azure Batch AI's files and commands: convert, job, cluster, file-server");
  group->require_subcommand(1)->fallthrough();
  AddBatchAiConversion(
      Add(group, "convert", "Show the job file that a job.json becomes",
          [this](Context& context) { return BatchAiConvert(context, batch_ai_); }));

  AddBatchAiJobs(group);
  AddBatchAiCluster(group);
  AddBatchAiFileServer(group);
}

void CommandDefinitions::AddBatchAiJobs(CLI::App* group) {
  CLI::App* job =
      group->add_subcommand("job",
                            "Jobs: create, list, show, stream, wait, terminate, delete, file, "
                            "node");
  job->require_subcommand(1)->fallthrough();
  CLI::App* create = Add(job, "create", "Submit a job.json and print the job's name",
                         [this](Context& context) { return BatchAiJobCreate(context, batch_ai_); });
  AddBatchAiConversion(create);
  AddFormat(create, &batch_ai_.format);
  AddBatchAiJobViews(job);
  AddBatchAiJobEnds(job);
  AddBatchAiFiles(job);
  AddBatchAiJobNodes(job);
}

void CommandDefinitions::AddBatchAiJob(CLI::App* command, std::string* job) {
  command
      ->add_option("-j,--job,-n,--name,job", *job, "The job's name, the beginning of it, or last")
      ->required()
      ->type_name(kJobValue);
  command->add_option("-e,--experiment", batch_ai_.experiment, "Of the job; no effect")
      ->type_name("NAME");
  AddBatchAiScope(command);
}

void CommandDefinitions::AddBatchAiYes(CLI::App* command) {
  command->add_flag("-y,--yes", batch_ai_.yes, "Of az, which asked; no effect");
}

void CommandDefinitions::AddBatchAiJobViews(CLI::App* job) {
  CLI::App* list = Add(job, "list", "Show the newest jobs: tutti job list",
                       [this](Context& context) { return JobList(context, list_); });
  list->add_option("-e,--experiment", list_.experiment, "Only those of this experiment")
      ->type_name("NAME");
  list->add_option("--limit", list_.limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  AddFormat(list, &list_.format);
  AddBatchAiScope(list);
  CLI::App* show = Add(job, "show", "Show one job: tutti job show",
                       [this](Context& context) { return JobShow(context, show_); });
  AddFormat(show, &show_.format);
  AddBatchAiJob(show, &show_.job);
  CLI::App* stream =
      Add(job, "stream", "Show a job's states and output, live to its end: tutti job stream",
          [this](Context& context) { return JobStream(context, stream_); });
  AddFormat(stream, &stream_.format);
  AddBatchAiJob(stream, &stream_.job);
}

void CommandDefinitions::AddBatchAiJobEnds(CLI::App* job) {
  CLI::App* wait =
      Add(job, "wait", "Wait for a job's end; the exit code is the job's: tutti job wait",
          [this](Context& context) { return JobWait(context, wait_); });
  AddWaitTimeout(wait);
  AddFormat(wait, &wait_.format);
  AddBatchAiJob(wait, &wait_.job);
  CLI::App* terminate = Add(job, "terminate", "End a job, whatever its state: tutti job cancel",
                            [this](Context& context) { return JobCancel(context, cancel_); });
  terminate->add_flag("--wait", cancel_.wait, "Return when it has ended");
  AddFormat(terminate, &cancel_.format);
  AddBatchAiJob(terminate, &cancel_.job);
  AddBatchAiYes(terminate);
  CLI::App* remove = Add(job, "delete", "Remove an ended job, named in full: tutti job delete",
                         [this](Context& context) { return JobDelete(context, {batch_ai_.job}); });
  AddBatchAiJob(remove, &batch_ai_.job);
  AddBatchAiYes(remove);
}

void CommandDefinitions::AddBatchAiJobNodes(CLI::App* job) {
  CLI::App* node = job->add_subcommand("node", "A job's nodes: list");
  node->require_subcommand(1)->fallthrough();
  CLI::App* list = Add(node, "list", "Show the nodes that a job has, or had",
                       [this](Context& context) { return NodeList(context, nodes_); });
  AddFormat(list, &nodes_.format);
  AddBatchAiJob(list, &nodes_.job);
}

void CommandDefinitions::AddBatchAiFiles(CLI::App* job) {
  CLI::App* file = job->add_subcommand("file", "A job's files: list, stream");
  file->require_subcommand(1)->fallthrough();
  CLI::App* list = Add(file, "list", "Show the files of an output, or the logs",
                       [this](Context& context) { return BatchAiFileList(context, batch_ai_); });
  list->add_option("-d,--output-directory-id", batch_ai_.directory,
                   "The output's id; stdouterr: the logs")
      ->default_val("stdouterr")
      ->type_name("ID");
  AddFormat(list, &batch_ai_.format);
  CLI::App* stream =
      Add(file, "stream", "Show a log as it grows: stdout.txt, stderr-1.txt, stdout-wk-0.txt",
          [this](Context& context) { return BatchAiFileStream(context, batch_ai_); });
  stream->add_option("-f,--file-name", batch_ai_.path, "The log's name")
      ->required()
      ->type_name("NAME");
  for (CLI::App* command : {list, stream}) AddBatchAiJob(command, &batch_ai_.job);
}

// The file and the name of what is made.
void CommandDefinitions::AddBatchAiSource(CLI::App* command) {
  command->add_option("-f,--config-file,file", batch_ai_.file, "Its file")
      ->required()
      ->type_name(kFileValue);
  command->add_option("-n,--name", batch_ai_.name, "Its name")->required()->type_name("NAME");
  AddBatchAiScope(command);
}

void CommandDefinitions::AddBatchAiCluster(CLI::App* group) {
  CLI::App* cluster =
      group->add_subcommand("cluster", "Clusters: create, list, show, resize, delete, node");
  cluster->require_subcommand(1)->fallthrough();
  CLI::App* make_cluster =
      Add(cluster, "create", "Make a cluster.json a compute: a name for nodes that are there",
          [this](Context& context) { return BatchAiClusterCreate(context, batch_ai_); });
  make_cluster
      ->add_option("--storage-account-name", batch_ai_.storage_account,
                   "What <AZURE_BATCHAI_STORAGE_ACCOUNT> stands for")
      ->envname("AZURE_BATCHAI_STORAGE_ACCOUNT")
      ->type_name("NAME");
  make_cluster
      ->add_option("--as", batch_ai_.cluster,
                   "Whose nodes it has: a compute of site.yml (default: this machine's)")
      ->type_name("COMPUTE");
  AddBatchAiSource(make_cluster);
  AddBatchAiComputes(cluster);
  AddBatchAiResize(cluster);
  AddBatchAiNodes(cluster);
}

void CommandDefinitions::AddBatchAiComputes(CLI::App* cluster) {
  CLI::App* list = Add(cluster, "list", "Show all computes that jobs may name: tutti compute list",
                       [this](Context& context) { return ComputeList(context, compute_); });
  CLI::App* show = Add(cluster, "show", "Show one of them: tutti compute show",
                       [this](Context& context) { return ComputeShow(context, compute_); });
  CLI::App* remove =
      Add(cluster, "delete", "Forget a cluster that was made from a file: tutti compute delete",
          [this](Context& context) { return ComputeDelete(context, compute_); });
  for (CLI::App* command : {list, show}) AddFormat(command, &compute_.format);
  for (CLI::App* command : {show, remove}) {
    command->add_option("-n,--name,name", compute_.name, "The name")->required()->type_name("NAME");
  }
  AddBatchAiYes(remove);
  for (CLI::App* command : {list, show, remove}) AddBatchAiScope(command);
}

void CommandDefinitions::AddBatchAiResize(CLI::App* cluster) {
  CLI::App* resize =
      Add(cluster, "resize", "Set how many nodes a job may have of a cluster made from a file",
          [this](Context& context) { return BatchAiClusterResize(context, batch_ai_); });
  resize->add_option("-n,--name,name", batch_ai_.name, "The cluster")
      ->required()
      ->type_name("NAME");
  resize->add_option("-t,--target", batch_ai_.target, "So many nodes")
      ->required()
      ->type_name("COUNT");
  AddBatchAiScope(resize);
}

void CommandDefinitions::AddBatchAiNodes(CLI::App* cluster) {
  CLI::App* node = cluster->add_subcommand("node", "A cluster's nodes: list");
  node->require_subcommand(1)->fallthrough();
  CLI::App* list =
      Add(node, "list", "Show its nodes and what runs on each: tutti node list --compute",
          [this](Context& context) { return NodeList(context, nodes_); });
  list->add_option("-c,--cluster,cluster", nodes_.compute, "The cluster")
      ->required()
      ->type_name("NAME");
  AddFormat(list, &nodes_.format);
  AddBatchAiScope(list);
}

void CommandDefinitions::AddBatchAiFileServer(CLI::App* group) {
  CLI::App* server =
      group->add_subcommand("file-server", "File servers: create, list, show, delete");
  server->require_subcommand(1)->fallthrough();
  CLI::App* make_server =
      Add(server, "create", "Make a file-server.json a file server on a folder of this machine",
          [this](Context& context) { return BatchAiFileServerCreate(context, batch_ai_); });
  make_server->add_option("--folder", batch_ai_.place.folder, "The folder that it serves")
      ->required()
      ->type_name(kFolderValue);
  make_server
      ->add_option("--address", batch_ai_.place.address,
                   "Address of this machine to listen on (default: 127.0.0.1)")
      ->type_name("ADDRESS");
  make_server->add_option("--port", batch_ai_.place.port, "Port to listen on (default: 2049)")
      ->check(CLI::Range(1, 65535).description(""))
      ->type_name("PORT");
  make_server
      ->add_option("--client", batch_ai_.place.clients,
                   "Who may mount: an address or a network, as 10.0.0.0/24; repeatable")
      ->type_name("ADDRESS")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  AddBatchAiSource(make_server);
  AddBatchAiFileServerViews(server);
}

void CommandDefinitions::AddBatchAiFileServerViews(CLI::App* server) {
  CLI::App* list = Add(server, "list", "Show all file servers: tutti file-server list",
                       [this](Context& context) { return FileServerList(context, file_server_); });
  CLI::App* show = Add(server, "show", "Show one of them: tutti file-server show",
                       [this](Context& context) { return FileServerShow(context, file_server_); });
  CLI::App* remove =
      Add(server, "delete", "Serve a folder no more; its files stay: tutti file-server delete",
          [this](Context& context) { return FileServerDelete(context, file_server_); });
  remove->add_flag("-y,--yes", file_server_.yes, "Do not ask");
  for (CLI::App* command : {list, show}) AddFormat(command, &file_server_.format);
  for (CLI::App* command : {show, remove}) {
    command->add_option("-n,--name,name", file_server_.name, "The name")
        ->required()
        ->type_name("NAME");
  }
  for (CLI::App* command : {list, show, remove}) AddBatchAiScope(command);
}

}  // namespace tutti::client
