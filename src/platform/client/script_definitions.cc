// Defines the options of scripts (command_definitions.h).
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "platform/client/command_definitions.h"

namespace tutti::client {

void CommandDefinitions::AddScript(CLI::App* command, ScriptOptions* options) {
  const auto count = [command](const char* name, int* value, const char* description) {
    command->add_option(name, *value, description)
        ->check(CLI::Range(1, 1 << 20).description(""))
        ->type_name("N");
  };
  count("--nodes", &options->nodes, "Of a script: on so many nodes");
  count("--processes-per-node", &options->processes_per_node,
        "Of a script: so many of it on each node");
  count("--gpus", &options->gpus, "Of a script: each node has so many GPUs; a process for each");
  command
      ->add_option(
          "--distribution", options->distribution,
          "Of a script: how its processes find each other (without it: by what it imports)")
      ->type_name("pytorch|mpi|tensorflow|ray|none");
  command
      ->add_option(
          "--environment", options->environment,
          "Of a script: host, an environment's name, or a file or Dockerfile that makes one "
          "(without it: a requirements.txt, conda.yaml or pyproject.toml beside it)")
      ->type_name("ENVIRONMENT");
  command
      ->add_option(
          "--code", options->code,
          "Of a script: the folder that is sent, in which it runs (without it: the nearest "
          "at or above its own with a requirements.txt, conda.yaml, pyproject.toml or .git)")
      ->type_name(kFolderValue);
  command
      ->add_option("--input", options->inputs,
                   "Of a script: a file, folder or address that it reads, as ${{inputs.NAME}}; "
                   "repeatable")
      ->type_name("NAME=PATH")
      ->expected(1)
      ->allow_extra_args(false)  // else it takes the -- behind it, and the script's words
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandDefinitions::AddInit(CLI::App* app) {
  CLI::App* init = Add(app, "init", "Make a job file by three questions",
                       [this](Context& context) { return Init(context, init_); });
  init->add_option("file", init_.file, "The job file to make")
      ->capture_default_str()
      ->type_name(kFileValue);
  init->add_option("--script", init_.script, "What is run: a script")->type_name(kFileValue);
  init->add_option("--command", init_.command, "What is run: a shell's command, in this folder")
      ->type_name("COMMAND");
  AddScript(init, &init_.job);
  init->add_option("--compute", init_.job.compute, "Where it runs: local, or a cluster's name")
      ->type_name("COMPUTE");
  init->footer(
      "On a terminal it asks for what these options do not say; elsewhere they say it.\n"
      "A file that is there is not overwritten.");
}

}  // namespace tutti::client
