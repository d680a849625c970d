// Recipe says how to train, in full: it holds what a recipe file and the command line say. Plain
// data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/parallel/layout.h"
#include "runtime/train/optimizer/optimizer_options.h"

namespace tutti::train {

struct Recipe : OptimizerOptions {
  std::string data;
  std::string augment = "standard";
  bool alternate_flip = false;
  double erase = 0;
  double mixup = 0, cutmix = 0;
  int64_t plain_epochs = 0;
  std::vector<double> mean, stddev;  // empty: by the model's input size
  int64_t workers = 1;
  int64_t max_unreadable = 10;  // images per rank
  std::string data_cache;       // of data in a store: data::StreamOptions
  int64_t data_disk = 0;        // MiB; 0: nine tenths of what is free
  int64_t mixed_shards = 16;

  std::string model = "resnet20";
  std::string weights;  // to begin from; empty: random
  std::string task = "auto";
  int64_t input_size = 0;  // 0: the model's own
  int64_t epochs = 90;
  int64_t max_steps = 0;           // 0: epochs alone decide
  int64_t batch = 128;             // over all ranks
  int64_t batch_per_rank = 0;      // 0: `batch` is meant
  std::string precision = "auto";  // what TakePrecision takes
  std::optional<bool> winograd;    // none: what TakeWinograd takes
  parallel::Parallelism parallel;  // of the ranks
  std::string pipeline_schedule = "1f1b";
  std::string cut;  // names of the layers that later stages begin with; empty: where it balances
  bool sync_bn = false;
  int64_t accumulation = 1;
  double label_smoothing = 0;
  std::string compression = "none";
  int64_t seed = 1;

  double lr = 0.1;
  bool scale_lr = false;
  bool lr_per_rank = false;
  std::string schedule = "cosine";
  double warmup_epochs = 0;
  std::vector<double> milestones;
  double gamma = 0.1;
  double final_lr = 0;
  double clip_norm = 0;
  double ema = 0;

  std::string output = "outputs";
  int64_t evaluate_every = 1;
  bool evaluate_mirrored = false;
  int64_t checkpoint_every = 1;
  int64_t checkpoint_every_steps = 0;
  int64_t keep_checkpoints = 2;
  bool keep_best = false;
  std::string resume = "no";
  std::string trace, tensorboard, mlflow;
  std::optional<bool> torchscript;  // none: WantsTorchScript decides

  std::string device = "auto";
  int64_t threads = 0;
  double step_timeout = 300;
  bool check_memory = true;
};

// One entry of a recipe: a flag "--NAME" and a key "NAME" of the file. Everything that knows the
// entries (flags, help, files, checkpoints) goes by this list alone.
struct Field {
  absl::string_view name, group, help;
  std::variant<int64_t*, double*, bool*, std::optional<bool>*, std::string*, std::vector<double>*,
               parallel::Parallelism*>
      value;                               // an optional one is also "auto"
  std::vector<absl::string_view> choices;  // of a string; empty: any
  double least = 0;                        // of numbers
};

// The fields point into `recipe`.
std::vector<Field> FieldsOf(Recipe& recipe);

// Sets it from text ("0.1", "true", "[30, 60, 80]"). InvalidArgument says what was expected,
// without the field's name.
absl::Status SetField(const Field& field, absl::string_view text);
// Writes it as SetField would take it.
std::string FieldText(const Field& field);
// Returns the texts of all fields, by name.
std::map<std::string, std::string> FieldTexts(Recipe recipe);

// Reads `parallel`: "{pipeline: 2, data: 3}", "sync=diloco,every=50"; what is not said is as usual.
// InvalidArgument names the entry, and what it may be or goes with.
absl::Status ReadParallelism(absl::string_view text, parallel::Parallelism& value);
// Writes it as ReadParallelism would take it, all that applies.
std::string ParallelismText(const parallel::Parallelism& value);
// Writes every entry and what it takes, for help.
const std::string& AboutParallelism();

// Returns whether it is true or false, as a flag "--NAME" or "--no-NAME" without a value.
bool IsSwitch(const Field& field);

// Checks what no single field can tell: data is given, milestones go with "step", ...
absl::Status Validate(const Recipe& recipe);

// Returns what it means for so many ranks, or replicas of a pipeline: nothing is per rank any more.
Recipe ForRanks(Recipe recipe, int replicas);

// Counts the steps after which training ends, by its epochs or by max_steps.
int64_t TotalSteps(const Recipe& recipe, int64_t steps_per_epoch);

// Overwrites what the YAML file at `path` sets. Errors begin with "FILE:LINE: ".
absl::Status ReadRecipe(const std::filesystem::path& path, Recipe& recipe);

}  // namespace tutti::train
