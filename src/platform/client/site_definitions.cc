// Defines the options of what a site has by name (command_definitions.h): data, components,
// environments, computes, secrets.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "absl/strings/str_cat.h"
#include "platform/client/command_definitions.h"

namespace tutti::client {

void CommandDefinitions::AddAssets(CLI::App* group, spec::AssetKind kind) {
  using Do = absl::StatusOr<ExitCode> (*)(Context&, const AssetOptions&);
  const auto action = [this, kind](Do what) -> Action {
    return [this, kind, what](Context& context) {
      asset_.kind = kind;
      return what(context, asset_);
    };
  };
  const auto name = [this](CLI::App* command) {
    command->add_option("-n,--name,name", asset_.name, "The name")->required()->type_name("NAME");
  };
  // An empty one, as of a variable that is not set, would mean all of them to `delete`.
  const auto version = [this](CLI::App* command, const std::string& description) {
    command->add_option("-v,--version", asset_.version, description)
        ->check([](const std::string& text) { return text.empty() ? "is empty" : ""; })
        ->type_name("VERSION");
  };
  const std::string what(spec::AssetKindName(kind));
  CLI::App* create = Add(group, "create",
                         absl::StrCat("Give ", kind == spec::AssetKind::kData ? "" : "this ", what,
                                      " a name and a version, by its YAML file"),
                         action(AssetCreate));
  create
      ->add_option("-f,--file", asset_.file, absl::StrCat("The file (Azure ML v2 ", what, " YAML)"))
      ->required()
      ->type_name(kFileValue);
  create->add_option("-n,--name", asset_.name, "In place of the file's name")->type_name("NAME");
  version(create, "In place of the file's version");
  if (kind != spec::AssetKind::kData) {
    CLI::App* list =
        Add(group, "list", "Show all names, and where each comes from", action(AssetList));
    AddFormat(list, &asset_.format);
  }
  CLI::App* show = Add(group, "show", "Show one, in its newest version", action(AssetShow));
  name(show);
  version(show, "In this version");
  AddFormat(show, &asset_.format);
  CLI::App* remove =
      Add(group, "delete",
          kind == spec::AssetKind::kData ? "Forget data's name; they stay where they are"
                                         : "Forget a name and what is kept of it",
          action(AssetDelete));
  name(remove);
  version(remove, "This version alone");
}

void CommandDefinitions::AddComponent(CLI::App* app) {
  CLI::App* component = app->add_subcommand(
      "component", "What steps run, by name and version: create, list, show, delete");
  component->require_subcommand(1)->fallthrough();
  AddAssets(component, spec::AssetKind::kComponent);
}

void CommandDefinitions::AddData(CLI::App* app) {
  CLI::App* data =
      app->add_subcommand("data",
                          "Data by name, and copies of data that lie elsewhere: create, list, "
                          "show, delete, map, unmap");
  data->require_subcommand(1)->fallthrough();
  AddAssets(data, spec::AssetKind::kData);
  CLI::App* map = Add(data, "map", "Serve what begins with an address from a local copy",
                      [this](Context& context) { return DataMapAdd(context, data_); });
  map->add_option("prefix", data_.prefix,
                  "The address, as https://HOST/PATH, wasbs://CONTAINER@HOST/PATH or azureml:NAME")
      ->required()
      ->type_name("PREFIX");
  map->add_option("folder", data_.folder,
                  "The copy: a folder, or a file if PREFIX is one's address")
      ->required()
      ->type_name(kFolderValue);
  CLI::App* unmap = Add(data, "unmap", "Forget a local copy; it stays where it is",
                        [this](Context& context) { return DataUnmap(context, data_); });
  unmap->add_option("prefix", data_.prefix, "The address")->required()->type_name("PREFIX");
  CLI::App* list = Add(data, "list", "Show what is served from where",
                       [this](Context& context) { return DataList(context, data_); });
  AddFormat(list, &data_.format);
}

void CommandDefinitions::AddDatastore(CLI::App* app) {
  CLI::App* datastore = app->add_subcommand(
      "datastore", "Stores that jobs take data from, by name: create, list, show, delete");
  datastore->require_subcommand(1)->fallthrough();
  CLI::App* create =
      Add(datastore, "create", "Give a container of a store, or a folder, a name, by a YAML file",
          [this](Context& context) { return DatastoreCreate(context, datastore_); });
  create
      ->add_option("-f,--file", datastore_.file,
                   "The file (Azure ML v2 datastore YAML; also of type s3, gcs, local, nfs)")
      ->required()
      ->type_name(kFileValue);
  create
      ->add_option("--set", datastore_.settings,
                   "Change a key of the file, as in --set container_name=images; repeatable. No "
                   "credentials: others could read them")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  create->footer(
      "The credentials go to the service, which keeps them encrypted as the secret "
      "datastore.NAME. Without credentials only public data can be read.");
  CLI::App* list = Add(datastore, "list", "Show all datastores",
                       [this](Context& context) { return DatastoreList(context, datastore_); });
  AddFormat(list, &datastore_.format);
  CLI::App* show = Add(datastore, "show", "Show one; never its credentials",
                       [this](Context& context) { return DatastoreShow(context, datastore_); });
  AddFormat(show, &datastore_.format);
  CLI::App* remove =
      Add(datastore, "delete", "Forget a datastore and its credentials; the data stay",
          [this](Context& context) { return DatastoreDelete(context, datastore_); });
  remove->add_flag("-y,--yes", datastore_.yes, "Do not ask");
  for (CLI::App* command : {show, remove}) {
    command->add_option("-n,--name,name", datastore_.name, "The name")
        ->required()
        ->type_name("NAME");
  }
}

void CommandDefinitions::AddFileServer(CLI::App* app) {
  CLI::App* server = app->add_subcommand(
      "file-server",
      "Folders of this machine that it serves by NFS: create, list, show, fill, delete");
  server->require_subcommand(1)->fallthrough();
  CLI::App* create =
      Add(server, "create", "Serve a folder, by a YAML file; jobs read it as a datastore",
          [this](Context& context) { return FileServerCreate(context, file_server_); });
  create->add_option("-f,--file", file_server_.file, "The file: name, folder, address, clients, …")
      ->required()
      ->type_name(kFileValue);
  CLI::App* list = Add(server, "list", "Show all file servers",
                       [this](Context& context) { return FileServerList(context, file_server_); });
  AddFormat(list, &file_server_.format);
  CLI::App* show = Add(server, "show", "Show one, and what becomes of it",
                       [this](Context& context) { return FileServerShow(context, file_server_); });
  AddFormat(show, &file_server_.format);
  CLI::App* fill =
      Add(server, "fill", "Bring what its folder lacks of a store's; what was cut off goes on",
          [this](Context& context) { return FileServerFill(context, file_server_); });
  fill->add_option("--from", file_server_.from, "The store's address, other than the file's fill:")
      ->type_name("ADDRESS");
  CLI::App* remove =
      Add(server, "delete", "Serve a folder no more; its files stay",
          [this](Context& context) { return FileServerDelete(context, file_server_); });
  remove->add_flag("-y,--yes", file_server_.yes, "Do not ask");
  for (CLI::App* command : {show, fill, remove}) {
    command->add_option("-n,--name,name", file_server_.name, "The name")
        ->required()
        ->type_name("NAME");
  }
}

void CommandDefinitions::AddWarm(CLI::App* cache) {
  CLI::App* warm = Add(cache, "warm", "Fetch data to nodes before a job needs them",
                       [this](Context& context) { return CacheWarm(context, cache_); });
  warm->add_option("data", cache_.data, "Their address, as an input of a job has it")
      ->required()
      ->type_name("DATA");
  warm->add_option("--type", cache_.type, "uri_folder (as without it) or uri_file")
      ->type_name("TYPE");
  warm->add_option("--compute", cache_.compute, "The compute (default: local)")->type_name("NAME");
  warm->add_option("--nodes", cache_.nodes, "How many nodes, or on a cluster which: n1,n2")
      ->type_name("NODES");
  warm->add_flag("--detach", cache_.detach, "Print the job's name, and do not wait for it");
  AddFormat(warm, &cache_.format);
}

void CommandDefinitions::AddCache(CLI::App* app) {
  CLI::App* cache = app->add_subcommand(
      "cache", "Data that this node has fetched for its jobs: list, show, prune, warm");
  cache->require_subcommand(1)->fallthrough();
  CLI::App* list = Add(cache, "list", "Show all of it, the longest unused first",
                       [this](Context& context) { return CacheList(context, cache_); });
  CLI::App* show = Add(cache, "show", "Show one version of data, with the hashes of its files",
                       [this](Context& context) { return CacheShow(context, cache_); });
  show->add_option("key", cache_.keys, "Its key, or the beginning")
      ->required()
      ->expected(1)
      ->type_name("KEY");
  show->add_flag("--verify", cache_.verify, "Read all of it, and compare it with these");
  CLI::App* prune = Add(cache, "prune", "Remove what no job reads, the longest unused first",
                        [this](Context& context) { return CachePrune(context, cache_); });
  CLI::Option* keys =
      prune->add_option("key", cache_.keys, "What is to go, by its key")->type_name("KEY");
  prune->add_option("--size", cache_.size, "Until the cache has no more than that: 200GB")
      ->excludes(keys)
      ->type_name("SIZE");
  prune->add_option("--free", cache_.free, "Until the disk has that free: 100GB")
      ->excludes(keys)
      ->type_name("SIZE");
  prune->add_flag("--dry-run", cache_.dry_run, "Show what would go; remove nothing");
  AddWarm(cache);
  for (CLI::App* command : {list, show, prune}) {
    command->add_option("--folder", cache_.folder, "The cache's folder (default: HOME/data)")
        ->type_name(kFolderValue);
    AddFormat(command, &cache_.format);
  }
}

void CommandDefinitions::AddStorage(CLI::App* app) {
  CLI::App* storage = app->add_subcommand(
      "storage", "Data in stores, and files of jobs: ls, cat, cp, mv, sync, du, rm, sign");
  storage->require_subcommand(1)->fallthrough();
  using Do = absl::StatusOr<ExitCode> (*)(Context&, const StorageOptions&);
  const auto add = [&](const std::string& name, const std::string& description, Do what) {
    return Add(storage, name, description,
               [this, what](Context& context) { return what(context, storage_); });
  };
  const auto addresses = [this](CLI::App* command, const std::string& description) {
    return command->add_option("address", storage_.addresses, description)
        ->required()
        ->type_name("ADDRESS");
  };
  CLI::App* list = add("ls", "Show what is in a folder", StorageList);
  addresses(list, "The folder, an object, or a pattern")->expected(1);
  CLI::App* cat = add("cat", "Write objects to standard output", StorageCat);
  addresses(cat, "The objects, or patterns");
  CLI::App* copy = add("cp", "Copy objects; a copy that was cut off goes on", StorageCopy);
  addresses(copy, "What is copied, and last the target")->type_name("SOURCE TARGET");
  CLI::App* move = add("mv", "Copy objects, then remove them at the source", StorageMove);
  addresses(move, "What is moved, and last the target")->type_name("SOURCE TARGET");
  CLI::App* sync = add("sync", "Copy what the target lacks or has older", StorageSync);
  addresses(sync, "Two folders")->type_name("SOURCE TARGET");
  sync->add_flag("--delete", storage_.remove_others,
                 "Also remove at the target what the source has not; it asks");
  CLI::App* usage = add("du", "Sum up what is in a folder", StorageUsage);
  addresses(usage, "The folder")->expected(1);
  CLI::App* sign =
      add("sign", "Print an address by which anybody can read an object for a time", StorageSign);
  addresses(sign, "The object, or a job's file")->expected(1);
  sign->add_option_function<std::string>(
          "--for",
          [this](const std::string& text) { storage_.lasts = ReadDuration("--for", text); },
          "How long, as 1h or 30m; at most 168h (default: 1h)")
      ->type_name("TIME");
  sign->add_flag("--write", storage_.write, "To write it, not to read it");
  CLI::App* grant =
      add("grant", "Print credentials for a program that reads a store", StorageGrant);
  addresses(grant, "The store's place")->expected(1);
  grant->group("");  // for programs: no help shows it
  CLI::App* remove = add("rm", "Remove objects; of a folder it asks", StorageRemove);
  addresses(remove, "The objects, or patterns, or with -r folders");
  for (CLI::App* command : {sync, remove}) {
    command->add_flag("-y,--yes", storage_.yes, "Do not ask");
  }
  for (CLI::App* command : {list, copy, move, remove}) {
    command->add_flag("-r,--recursive", storage_.recursive, "Also all that is below a folder");
  }
  for (CLI::App* command : {copy, move, sync, remove}) {
    command->add_flag("--dry-run", storage_.dry_run, "Show what would be done; do nothing");
  }
  for (CLI::App* command : {list, copy, move, sync, usage, sign, remove}) {
    AddFormat(command, &storage_.format);
  }
  storage->footer(
      "An ADDRESS is azureml://datastores/NAME/paths/PATH, wasbs://, abfss://, https:// of a blob, "
      "s3://, gs://, azureml:NAME:VERSION, file:PATH, job:NAME/PATH, or a path of this machine.");
}

void CommandDefinitions::AddCompute(CLI::App* app) {
  CLI::App* compute =
      app->add_subcommand("compute", "What computes' names mean here: create, list, show, delete");
  compute->require_subcommand(1)->fallthrough();
  CLI::App* create =
      Add(compute, "create", "Give nodes that are here a name, by a compute YAML file",
          [this](Context& context) { return ComputeCreate(context, compute_); });
  create->add_option("-f,--file", compute_.file, "The compute file (Azure ML v2 compute YAML)")
      ->required()
      ->type_name(kFileValue);
  create->add_option("-n,--name", compute_.name, "In place of the file's name")->type_name("NAME");
  create->add_option("--as", compute_.stands_for, "A cluster of site.yml; without it this machine")
      ->type_name("COMPUTE");
  CLI::App* list = Add(compute, "list", "Show all computes that jobs may name",
                       [this](Context& context) { return ComputeList(context, compute_); });
  AddFormat(list, &compute_.format);
  CLI::App* show = Add(compute, "show", "Show one compute",
                       [this](Context& context) { return ComputeShow(context, compute_); });
  show->add_option("-n,--name,name", compute_.name, "The name")->required()->type_name("NAME");
  AddFormat(show, &compute_.format);
  CLI::App* remove = Add(compute, "delete", "Forget a compute that was made from a file",
                         [this](Context& context) { return ComputeDelete(context, compute_); });
  remove->add_option("-n,--name,name", compute_.name, "The name")->required()->type_name("NAME");
}

void CommandDefinitions::AddSecret(CLI::App* app) {
  CLI::App* secret = app->add_subcommand(
      "secret", "Tokens and keys that jobs are given by name: set, list, delete, rotate");
  secret->require_subcommand(1)->fallthrough();
  CLI::App* set = Add(secret, "set", "Give a secret a value; it is never shown again",
                      [this](Context& context) { return SecretSet(context, secret_); });
  set->add_option("--file", secret_.file,
                  "The value is this file's bytes, a newline at its end too")
      ->type_name(kFileValue);
  set->footer(
      "Without --file the value is read from standard input, without a newline at its end; at a "
      "terminal it is asked for and not shown. It is no argument: others could read it.");
  CLI::App* list = Add(secret, "list", "Show the names, and when each got its value",
                       [this](Context& context) { return SecretList(context, secret_); });
  AddFormat(list, &secret_.format);
  CLI::App* remove = Add(secret, "delete", "Forget a secret; jobs that wait for it fail",
                         [this](Context& context) { return SecretDelete(context, secret_); });
  remove->add_flag("-y,--yes", secret_.yes, "Do not ask");
  Add(secret, "rotate", "Encrypt all secrets under a new key",
      [this](Context& context) { return SecretRotate(context, secret_); });
  for (CLI::App* command : {set, remove}) {
    command->add_option("name", secret_.name, "The secret's name")->required()->type_name("NAME");
  }
}

void CommandDefinitions::AddEnvironment(CLI::App* app) {
  CLI::App* environment =
      app->add_subcommand("environment",
                          "Environments by name and version: create, list, show, delete; what is "
                          "made of them: build, push, prune");
  environment->require_subcommand(1)->fallthrough();
  AddAssets(environment, spec::AssetKind::kEnvironment);
  CLI::App* build =
      Add(environment, "build", "Make a Python environment, or build or pull an image, here",
          [this](Context& context) { return EnvironmentBuild(context, image_); });
  build
      ->add_option("file", image_.file,
                   "A job's or an environment's YAML file, a list of packages (requirements.txt, "
                   "conda.yaml, pyproject.toml), or a folder with a Dockerfile")
      ->required()
      ->type_name(kFileValue);
  build->add_option("--compute", image_.compute, "For this compute's nodes (default: the job's)")
      ->type_name("COMPUTE");
  build->add_flag_callback(
      "--gpu", [this] { image_.gpus = true; }, "These nodes have GPUs");
  build->add_flag_callback(
      "--no-gpu", [this] { image_.gpus = false; }, "They have none");
  build->footer(
      "A Python environment is made where the nodes look for it: in HOME/environments, or in the "
      "folder that a cluster's nodes share, under the name that their launchers give it. So jobs "
      "find it on nodes that have no way to an index of packages.");
  build->add_option("-t,--tag", image_.image, "A name for it, as REGISTRY/NAME:TAG")
      ->type_name("IMAGE");
  environment->get_subcommand("list")->add_flag(
      "--built", asset_.built,
      "Only the Python environments that were made: packages, size, time since the last use");
  CLI::App* prune = Add(environment, "prune", "Remove Python environments that no job uses",
                        [this](Context& context) { return EnvironmentPrune(context, unused_); });
  prune
      ->add_option_function<std::string>(
          "--unused-for",
          [this](const std::string& text) { unused_.unused_for = ReadAge("--unused-for", text); },
          "Those that no job has taken for so long: 30d (the default), 12h")
      ->type_name("TIME");
  prune->add_flag("-y,--yes", unused_.yes, "Do not ask");
  CLI::App* push = Add(environment, "push", "Send an image to a registry",
                       [this](Context& context) { return EnvironmentPush(context, image_); });
  push->add_option("image", image_.image, "The image's name")->required()->type_name("IMAGE");
  push->add_option("destination", image_.destination,
                   "Where to, if its name does not say it: REGISTRY/NAME:TAG")
      ->type_name("DESTINATION");
}

}  // namespace tutti::client
