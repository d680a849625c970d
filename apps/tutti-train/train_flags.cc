#include "train_flags.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <map>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "runtime/models/model.h"

namespace tutti {
namespace {

using train::Field;
using train::Recipe;

constexpr char kAbout[] =
    "Trains a network for images: a classifier, a segmenter or a detector, alone or as one rank\n"
    "of many.\n\n"
    "Under `tutti run` or any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, "
    "the\n"
    "ranks share every batch; the result is that of one process with the whole batch.\n";

constexpr char kMore[] =
    "Every flag but --config, --describe-machine, --explain, --list-models and --resume is also a "
    "key of the file that "
    "--config names; flags "
    "win. In a job of tutti's that resumes (TUTTI_RESUME_FROM is set) --resume is the default.\n"
    "\nExit codes: 0 trained; 1 failed; 2 wrong flags, recipe or data; 3 another rank was lost;\n"
    "4 the loss or a gradient is not finite; 143 stopped by SIGTERM or SIGINT after writing a "
    "checkpoint.\n\n"
    "Example: tutti-train --config recipe.yml --data data --output outputs --epochs 30\n";

std::string TypeName(const Field& field) {
  if (!field.choices.empty()) return absl::StrJoin(field.choices, "|");
  if (field.name == "data") return "FOLDER|ADDRESS";
  for (const char* folder : {"data-cache", "output", "tensorboard", "mlflow"}) {
    if (field.name == folder) return "FOLDER";
  }
  if (field.name == "trace" || field.name == "weights") return "FILE";
  if (field.name == "model") return "NAME";
  if (field.name == "resume") return "[FOLDER]";
  return std::visit(
      [](auto* value) -> std::string {
        using T = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<T, int64_t>) return "N";
        if constexpr (std::is_same_v<T, double>) return "X";
        if constexpr (std::is_same_v<T, parallel::Parallelism>) return "MESH";
        return "X,X,X";
      },
      field.value);
}

// Ends the reading of the command line.
struct ListModels {};

std::string ModelTable() {
  static constexpr std::array<absl::string_view, 3> kPurposes = {"classification", "segmentation",
                                                                 "detection"};
  std::string table = absl::StrFormat("%-24s %-10s %s\n", "MODEL", "INPUT", "FOR");
  for (const std::string& name : models::ModelNames()) {
    const int64_t size = models::InputSize(name);
    absl::StrAppendFormat(&table, "%-24s %-10s %s\n", name, absl::StrCat(size, "x", size),
                          kPurposes[static_cast<size_t>(models::PurposeOf(name))]);
  }
  return table + "Also script:FILE, a TorchScript module for classification.\n";
}

// Collects texts by field name; they are set after the file's.
using Given = std::map<std::string, std::string>;

void AddFlag(CLI::App& app, const Field& field, Given& given) {
  const std::string name(field.name), flag = "--" + name;
  std::string help(field.help);
  CLI::Option* option = nullptr;
  if (train::IsSwitch(field)) {
    if (train::FieldText(field) != "false") absl::StrAppend(&help, " (unless --no-", name, ")");
    option = app.add_flag_callback(
        flag, [&given, name] { given[name] = "true"; }, help);
    app.add_flag_callback("--no-" + name, [&given, name] { given[name] = "false"; })->group("");
  } else if (name == "resume") {
    option = app.add_option_function<std::vector<std::string>>(
                    flag,
                    [&given](const std::vector<std::string>& values) {
                      const bool none = values.empty() || values[0].empty();
                      given["resume"] = none ? "latest" : values[0];
                    },
                    help)
                 ->expected(0, 1)
                 ->type_name(TypeName(field));
  } else {
    option = app.add_option_function<std::string>(
                    flag, [&given, name](const std::string& value) { given[name] = value; }, help)
                 ->type_name(TypeName(field))
                 ->take_last();
    const std::string usual = train::FieldText(field);
    if (!usual.empty() && usual != "[]") option->default_str(usual);
  }
  option->group(std::string(field.group));
}

absl::Status WrongFlag(const CLI::ParseError& error, const std::vector<std::string>& unknown,
                       const std::vector<Field>& fields) {
  if (unknown.empty()) return absl::InvalidArgumentError(error.what());
  std::vector<absl::string_view> names = {"config", "describe-machine", "explain", "list-models",
                                          "help",   "version"};
  for (const Field& field : fields) names.push_back(field.name);
  const std::string word = unknown[0].substr(0, unknown[0].find('='));
  absl::string_view bare = word;
  while (absl::ConsumePrefix(&bare, "-")) {
  }
  const std::string closest = base::Closest(bare, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag \"", word, "\"",
      closest.empty() ? "; --help lists them" : absl::StrCat(" (did you mean --", closest, "?)")));
}

absl::StatusOr<Recipe> Assemble(const std::string& config, const Given& given) {
  Recipe recipe;
  if (!config.empty()) TUTTI_RETURN_IF_ERROR(train::ReadRecipe(config, recipe));
  for (const Field& field : train::FieldsOf(recipe)) {
    const auto found = given.find(std::string(field.name));
    if (found == given.end()) continue;
    TUTTI_RETURN_IF_ERROR(
        base::Annotate(train::SetField(field, found->second), absl::StrCat("--", field.name)));
  }
  // A job of tutti's that resumes from another, or was begun again, has the outputs in place.
  const char* earlier = std::getenv("TUTTI_RESUME_FROM");
  const bool resumes = earlier != nullptr && *earlier != '\0';
  if (resumes && !given.contains("resume")) recipe.resume = "latest";
  TUTTI_RETURN_IF_ERROR(train::Validate(recipe));
  return recipe;
}

}  // namespace

absl::StatusOr<Asked> ReadCommandLine(int argc, char** argv) {
  CLI::App app(kAbout, "tutti-train");
  app.footer(kMore);
  app.get_formatter()->column_width(34);
  app.set_version_flag("--version", TUTTI_VERSION);
  std::string config;
  app.add_option("--config", config, "YAML file with a recipe")->type_name("FILE")->group("Recipe");
  bool explains = false;
  app.add_flag(
         "--explain", explains,
         "say how the recipe would lie on its ranks, and exit: mesh, stages and their layers, "
         "memory of a rank, bytes between ranks in a step, how long stages wait; time and "
         "memory are measured here")
      ->group("Recipe");
  bool describes = false;
  app.add_flag(
         "--describe-machine", describes,
         "say in a line of JSON what this machine is good for, and exit: `tutti doctor` shows it")
      ->group("Machine");
  app.add_flag_callback(
         "--list-models", [] { throw ListModels(); },
         "list the networks that --model names, their input's size and what they are for, and exit")
      ->group("Recipe");
  Recipe defaults;
  const std::vector<Field> fields = train::FieldsOf(defaults);
  Given given;
  for (const Field& field : fields) AddFlag(app, field, given);
  app.allow_extras();
  try {
    app.parse(argc, argv);
    const auto unknown = app.remaining();
    if (!unknown.empty()) return WrongFlag(CLI::ExtrasError(unknown), unknown, fields);
  } catch (const CLI::CallForHelp&) {
    return ShowAndExit{app.help()};
  } catch (const ListModels&) {
    return ShowAndExit{ModelTable()};
  } catch (const CLI::CallForVersion&) {
    return ShowAndExit{"tutti-train " TUTTI_VERSION "\n"};
  } catch (const CLI::ParseError& error) {
    return WrongFlag(error, {}, fields);
  }
  if (describes) return DescribeMachine{};
  TUTTI_ASSIGN_OR_RETURN(Recipe recipe, Assemble(config, given));
  if (explains) return ExplainAndExit{std::move(recipe)};
  return recipe;
}

}  // namespace tutti
