#include "plan_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "local_ranks.h"
#include "plan_recipe.h"
#include "runtime/bench/plan/facts.h"
#include "runtime/bench/plan/measure_node.h"
#include "runtime/bench/plan/plan_report.h"

namespace tutti {
namespace {

constexpr char kAboutPlan[] =
    "Predicts what n nodes will do, from what one node has shown, and what will be the limit.\n\n"
    "Of a recipe of tutti-train it measures the step on this machine for some seconds. Of a job\n"
    "that ran on one node it takes what the job's metrics tell. Of a plan that was printed with\n"
    "-o json it takes what was measured then.\n";
constexpr char kMorePlan[] =
    "docs/performance/plan.md says how to read it.\n\n"
    "Example: tutti plan recipe.yml --data data --nodes 1..8 --link 10gbit --price 3.06\n"
    "         tutti plan JOB --nodes 1,4,16 --link ib-edr\n";

struct PlanCommand {
  std::string what, nodes = "1..8", link = "10gbit", data_link, name;
  int ranks_per_node = 0;  // 0: what was measured, else 1
  double price = 0, cores = 0, gradient_mb = 0, seconds = 3;
  int64_t batch = 0, images = 0, threads = 0;
  std::string model, data, device, precision;
  std::string output = "table";
};

void AddPlanOptions(CLI::App& app, PlanCommand& command) {
  app.add_option("what", command.what,
                 "A recipe of tutti-train or a job file that runs it, a job, or a plan as JSON")
      ->required()
      ->type_name("RECIPE|JOB|PLAN");
  app.add_option("--nodes", command.nodes, "as 1..8, 4 or 1,2,4")->capture_default_str();
  app.add_option("--ranks-per-node", command.ranks_per_node,
                 "as many as there are GPUs in a node (default: 1, or the job's)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--link", command.link,
                 "between nodes: RATE[:LATENCY], as 1gbit or 25gbit:20us, or ib-edr, ib-hdr, …")
      ->capture_default_str();
  app.add_option("--data-link", command.data_link,
                 "of the one file server from which all nodes read (default: data are local)");
  app.add_option("--price", command.price, "of a node and hour")->check(CLI::PositiveNumber);
  app.add_option("--images", command.images, "of an epoch, for its cost")
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", command.batch,
                 "images per step and rank (default: as measured, or the recipe's)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--model", command.model,
                 "network, instead of the recipe's; of a job whose "
                 "metrics tell none, for the size of its gradients");
  app.add_option("--gradient-mb", command.gradient_mb, "megabytes of a job's gradients")
      ->check(CLI::PositiveNumber);
  app.add_option("--data", command.data, "folder of images, for the loader");
  app.add_option("--device", command.device, "cpu, cuda or auto, instead of the recipe's")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  app.add_option("--precision", command.precision, "fp32, bf16 or auto, instead of the recipe's")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}));
  app.add_option("--threads", command.threads, "of computation per rank")
      ->check(CLI::Range(1, 4096));
  app.add_option("--cores", command.cores,
                 "of a node (default: this machine's); 0.5 where two nodes share one")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", command.seconds, "about as long is each part measured")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--name", command.name, "what the plan calls its source")->group("");
  app.add_option("-o,--output", command.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

// Options that only a measurement can follow, or only a job needs.
absl::Status RefuseOptions(const PlanCommand& command, bool is_plan, bool is_job) {
  const std::pair<const char*, bool> measured[] = {{"--data", !command.data.empty()},
                                                   {"--device", !command.device.empty()},
                                                   {"--precision", !command.precision.empty()},
                                                   {"--threads", command.threads > 0}};
  for (const auto& [option, is_given] : measured) {
    if (!is_given || !(is_plan || is_job)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is for a recipe, which is measured: leave it out"));
  }
  if (is_plan && !command.model.empty()) {
    return absl::InvalidArgumentError("--model is for a recipe or a job: leave it out");
  }
  if (!is_job && command.gradient_mb > 0) {
    return absl::InvalidArgumentError("--gradient-mb is for a job: leave it out");
  }
  return absl::OkStatus();
}

absl::StatusOr<bench::NodeFacts> MeasuredFacts(const PlanCommand& command) {
  TUTTI_RETURN_IF_ERROR(RefuseOptions(command, /*is_plan=*/false, /*is_job=*/false));
  TUTTI_ASSIGN_OR_RETURN(PlanRecipe plan, ReadPlanRecipe(command.what));
  train::Recipe& recipe = plan.recipe;
  for (const std::string& left_out : plan.left_out) {
    std::fprintf(stderr, "left out: %s, which the service fills in\n", left_out.c_str());
  }
  if (command.model.empty() && !plan.has_model) {
    return absl::InvalidArgumentError(absl::StrCat(
        command.what, ": which network it trains the service alone knows: name it, --model NAME"));
  }
  if (!command.model.empty()) recipe.model = command.model;
  if (!command.data.empty()) recipe.data = command.data;
  if (!command.device.empty()) recipe.device = command.device;
  if (!command.precision.empty()) recipe.precision = command.precision;
  if (command.threads > 0) recipe.threads = command.threads;
  if (command.batch > 0) recipe.batch_per_rank = command.batch;
  bench::NodeMeasurement measurement;
  measurement.ranks_per_node =
      command.ranks_per_node > 0 ? command.ranks_per_node : plan.ranks_per_node;
  measurement.cores = CoresOfThisProcess();
  measurement.seconds = absl::Seconds(command.seconds);
  return bench::MeasureNode(recipe, measurement);
}

absl::StatusOr<bench::NodeFacts> FactsOfPlanOf(const PlanCommand& command,
                                               const nlohmann::json& document) {
  TUTTI_RETURN_IF_ERROR(RefuseOptions(command, /*is_plan=*/true, /*is_job=*/false));
  TUTTI_ASSIGN_OR_RETURN(bench::NodeFacts facts, bench::FactsOfPlan(document));
  if (command.batch == 0) return facts;
  facts.batch_is_shared = false;
  return bench::WithBatch(facts, static_cast<double>(command.batch));
}

absl::StatusOr<bench::NodeFacts> ToldFacts(const PlanCommand& command, const std::string& text) {
  const auto whole = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (whole.is_object() && (whole.contains("facts") || whole.contains("rows"))) {
    return FactsOfPlanOf(command, whole);
  }
  TUTTI_RETURN_IF_ERROR(RefuseOptions(command, /*is_plan=*/false, /*is_job=*/true));
  bench::SaidFacts said;
  said.batch = static_cast<double>(command.batch);
  said.gradient_bytes = 1e6 * command.gradient_mb;
  said.ranks = command.ranks_per_node;
  if (!command.model.empty()) {
    TUTTI_ASSIGN_OR_RETURN(said.gradient_bytes, bench::GradientBytes(command.model));
  }
  return bench::FactsOfMetrics(text, said);
}

// By what the file holds: JSON is a plan or metrics, anything else a recipe.
absl::StatusOr<bench::NodeFacts> FactsOf(const PlanCommand& command) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(command.what));
  const std::string name = command.name.empty() ? command.what : command.name;
  const bool is_json = absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{");
  auto facts = is_json ? ToldFacts(command, text) : MeasuredFacts(command);
  if (!facts.ok()) return is_json ? base::Annotate(facts.status(), name) : facts.status();
  if (facts->source.empty()) facts->source = name;
  return facts;
}

absl::Status CheckRanks(const bench::NodeFacts& facts, int ranks_per_node) {
  if (facts.ranks == 1 || facts.ranks == ranks_per_node) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the step was measured with ", facts.ranks,
                                                 " ranks on the node: leave --ranks-per-node ",
                                                 ranks_per_node, ", or measure so many"));
}

absl::Status Plan(const PlanCommand& command) {
  bench::PlanQuestion question;
  TUTTI_ASSIGN_OR_RETURN(question.nodes, bench::ReadNodes(command.nodes));
  TUTTI_ASSIGN_OR_RETURN(question.link, bench::ReadLink(command.link));
  if (!command.data_link.empty()) {
    TUTTI_ASSIGN_OR_RETURN(question.data_link, bench::ReadLink(command.data_link));
  }
  question.price = command.price;
  TUTTI_ASSIGN_OR_RETURN(bench::NodeFacts facts, FactsOf(command));
  question.ranks_per_node =
      command.ranks_per_node > 0 ? command.ranks_per_node : facts.ranks_per_node;
  TUTTI_RETURN_IF_ERROR(CheckRanks(facts, question.ranks_per_node));
  if (command.cores > 0) facts.cores = command.cores;
  if (command.images > 0) facts.train_images = command.images;
  if (question.data_link && facts.loader.bytes_per_image == 0) {
    return absl::InvalidArgumentError(
        "--data-link: how many bytes an image has was not measured; name the data, --data FOLDER");
  }
  TUTTI_ASSIGN_OR_RETURN(const auto rows, bench::PredictRows(facts, question));
  const std::string text = command.output == "json" ? bench::PlanDocument(facts, question, rows)
                                                    : bench::PlanTable(facts, question, rows);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

int ReportPlan(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "tutti plan: %s\n", std::string(status.message()).c_str());
  const bool wrong_input = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                           absl::IsFailedPrecondition(status) || absl::IsDataLoss(status);
  return wrong_input ? 2 : 1;
}

}  // namespace

int RunPlan(int argc, char** argv) {
  PlanCommand command;
  CLI::App app(kAboutPlan, "tutti plan");
  app.footer(kMorePlan);
  AddPlanOptions(app, command);
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    return ReportPlan(absl::InvalidArgumentError(error.what()));
  }
  return ReportPlan(Plan(command));
}

}  // namespace tutti
