// Defines the options of `tutti model` (command_definitions.h).
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "platform/client/command_definitions.h"

namespace tutti::client {
namespace {

constexpr char kNameValue[] = "NAME";
constexpr char kVersionValue[] = "VERSION";

CLI::Option* AddName(CLI::App* command, ModelOptions& options) {
  return command->add_option("-n,--name,name", options.name, "The name")->type_name(kNameValue);
}

void AddVersion(CLI::App* command, ModelOptions& options, const std::string& description) {
  // An empty one, as of a variable that is not set, would mean all of them to `delete`.
  command->add_option("-v,--version", options.version, description)
      ->check([](const std::string& text) { return text.empty() ? "is empty" : ""; })
      ->type_name(kVersionValue);
}

void AddLabel(CLI::App* command, ModelOptions& options) {
  command->add_option("-l,--label", options.label, "In the version of this alias, or latest")
      ->excludes("--version")
      ->type_name("LABEL");
}

void AddSaid(CLI::App* command, ModelOptions& options) {
  command->add_option("--description", options.description, "What it is")->type_name("TEXT");
  command->add_option("--stage", options.stage, "Its stage, as Staging or Production")
      ->type_name("STAGE");
  command->add_option("--tag", options.tags, "A tag; repeatable")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

void CommandDefinitions::AddModelRegistration(CLI::App* model, const std::string& name) {
  CLI::App* command =
      Add(model, name, "Give a model a name and a version; the service keeps its files",
          [this](Context& context) { return ModelRegister(context, model_); });
  command->add_option("-f,--file", model_.file, "The file (Azure ML v2 model YAML)")
      ->type_name(kFileValue);
  AddName(command, model_);
  AddVersion(command, model_, "Its version (default: the next whole number)");
  command->add_option("--path", model_.path, "The model's folder or file, here or in the job")
      ->type_name("PATH");
  command->add_option("--from-job", model_.job, "Take what this job has left at --path")
      ->needs("--path")
      ->type_name(kJobValue);
  command->add_option("--type", model_.type, "What it is (default: custom_model)")
      ->type_name("custom_model|mlflow_model|triton_model");
  AddSaid(command, model_);
  AddFormat(command, &model_.format);
}

void CommandDefinitions::AddModel(CLI::App* app) {
  CLI::App* model = app->add_subcommand(
      "model",
      "Models by name and version: register, list, show, download, update, archive, restore, "
      "delete");
  model->require_subcommand(1)->fallthrough();
  AddModelRegistration(model, "register");
  AddModelRegistration(model, "create");
  using Do = absl::StatusOr<ExitCode> (*)(Context&, const ModelOptions&);
  const auto add = [&](const std::string& name, const std::string& description, Do what) {
    return Add(model, name, description,
               [this, what](Context& context) { return what(context, model_); });
  };
  CLI::App* list = add("list", "Show all models, or with a name its versions", ModelList);
  AddName(list, model_);
  list->add_flag("--archived", model_.archived, "Also those that are archived");
  AddFormat(list, &model_.format);
  CLI::App* show = add("show", "Show one, in its newest version", ModelShow);
  AddFormat(show, &model_.format);
  CLI::App* download = add("download", "Bring a model's files to a folder NAME", ModelDownload);
  download->add_option("-p,--download-path", model_.directory, "In which NAME is made (default: .)")
      ->type_name(kFolderValue);
  CLI::App* update =
      add("update", "Change what is said of a version, and its aliases", ModelUpdate);
  AddSaid(update, model_);
  update->add_option("--alias", model_.aliases, "Give it this alias; repeatable")
      ->type_name("ALIAS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  update->add_option("--remove-alias", model_.removed_aliases, "Take an alias away; repeatable")
      ->type_name("ALIAS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI::App* archive = add("archive", "Have lists and @latest leave it out", ModelArchive);
  CLI::App* restore = add("restore", "Take that back", ModelRestore);
  CLI::App* remove = add("delete", "Delete a model, or a version, and its files", ModelDelete);
  remove->add_flag("-y,--yes", model_.yes, "Do not ask");
  for (CLI::App* command : {show, download, update, archive, restore, remove}) {
    AddName(command, model_)->required();
    AddVersion(command, model_, "This version");
    if (command != remove) AddLabel(command, model_);
  }
}

}  // namespace tutti::client
