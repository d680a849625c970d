// Defines the options of `tutti batchai` (command_definitions.h), as `az batchai` had them.
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
  CLI::App* group =
      app->add_subcommand("batchai", "Files of Azure Batch AI: convert, job, cluster, file-server");
  group->require_subcommand(1)->fallthrough();
  AddBatchAiConversion(
      Add(group, "convert", "Show the job file that a job.json becomes",
          [this](Context& context) { return BatchAiConvert(context, batch_ai_); }));

  AddBatchAiJobs(group);
  AddBatchAiFiles(group->get_subcommand("job"));
  AddBatchAiCluster(group);
  AddBatchAiFileServer(group);
}

void CommandDefinitions::AddBatchAiJobs(CLI::App* group) {
  CLI::App* job = group->add_subcommand("job", "Jobs: create, file");
  job->require_subcommand(1)->fallthrough();
  CLI::App* create = Add(job, "create", "Submit a job.json and print the job's name",
                         [this](Context& context) { return BatchAiJobCreate(context, batch_ai_); });
  AddBatchAiConversion(create);
  AddFormat(create, &batch_ai_.format);
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
  for (CLI::App* command : {list, stream}) {
    command->add_option("-j,--job,job", batch_ai_.job, "The job's name, or the beginning of it")
        ->required()
        ->type_name(kJobValue);
    command->add_option("-e,--experiment", batch_ai_.experiment, "Of the job; no effect")
        ->type_name("NAME");
    AddBatchAiScope(command);
  }
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
  CLI::App* cluster = group->add_subcommand("cluster", "Clusters: create");
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
}

void CommandDefinitions::AddBatchAiFileServer(CLI::App* group) {
  CLI::App* server = group->add_subcommand("file-server", "File servers: create");
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
}

}  // namespace tutti::client
