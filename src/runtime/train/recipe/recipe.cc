#include "runtime/train/recipe/recipe.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "runtime/parallel/pipeline/timetable.h"
#include "runtime/train/optimizer/optimizers.h"
#include "runtime/train/optimizer/schedule.h"

namespace tutti::train {
namespace {

constexpr absl::string_view kData = "Data", kModel = "Model and training", kOptimizer = "Optimizer",
                            kOutput = "Evaluation, checkpoints and output", kMachine = "Machine";

absl::Status Parse(const Field& field, absl::string_view text, int64_t& value) {
  if (!absl::SimpleAtoi(text, &value)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a whole number"));
  }
  if (static_cast<double>(value) < field.least) {
    return absl::InvalidArgumentError(absl::StrCat(value, " is below ", field.least));
  }
  return absl::OkStatus();
}

absl::Status Parse(const Field& field, absl::string_view text, double& value) {
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a number"));
  }
  if (value < field.least) {
    return absl::InvalidArgumentError(absl::StrCat(value, " is below ", field.least));
  }
  return absl::OkStatus();
}

absl::Status Parse(const Field& field, absl::string_view text, bool& value) {
  if (absl::SimpleAtob(text, &value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is neither true nor false"));
}

absl::Status Parse(const Field& field, absl::string_view text, std::optional<bool>& value) {
  bool said = false;
  const bool is_auto = text == "auto";
  if (!is_auto && !Parse(field, text, said).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is none of auto, true and false"));
  }
  value = is_auto ? std::nullopt : std::optional(said);
  return absl::OkStatus();
}

absl::Status Parse(const Field& field, absl::string_view text, std::string& value) {
  const auto& choices = field.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not one of ",
                                                   absl::StrJoin(choices, ", "),
                                                   base::DidYouMean(text, choices)));
  }
  value = std::string(text);
  return absl::OkStatus();
}

absl::Status Parse(const Field& field, absl::string_view text, std::vector<double>& value) {
  text = absl::StripSuffix(absl::StripPrefix(text, "["), "]");
  value.clear();
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    double number = 0;
    TUTTI_RETURN_IF_ERROR(Parse(field, absl::StripAsciiWhitespace(part), number));
    value.push_back(number);
  }
  return absl::OkStatus();
}

absl::Status Parse(const Field& field, absl::string_view text, parallel::Parallelism& value) {
  return ReadParallelism(text, value);
}

std::string Text(int64_t value) { return absl::StrCat(value); }
std::string Text(double value) { return absl::StrCat(value); }
std::string Text(bool value) { return value ? "true" : "false"; }
std::string Text(std::optional<bool> value) { return value ? Text(*value) : "auto"; }
std::string Text(const std::string& value) { return value; }
std::string Text(const parallel::Parallelism& value) { return ParallelismText(value); }
std::string Text(const std::vector<double>& value) {
  return absl::StrCat("[", absl::StrJoin(value, ", "), "]");
}

// The help of the optimizers' coefficients, which names those that take each.
struct CoefficientHelp {
  static std::string TakenBy(absl::string_view coefficient) {
    return NamesWhere(
        [&](const OptimizerEntry& optimizer) { return Takes(optimizer, coefficient); });
  }
  static bool IsForWeightsAlone(const OptimizerEntry& optimizer) {
    return !Takes(optimizer, "decay");
  }

  const std::string momentum = absl::StrCat("of ", TakenBy("momentum"));
  const std::string betas = absl::StrCat(
      "of ", TakenBy("betas"), ": what the mean and the mean square of the gradients keep");
  const std::string epsilon =
      absl::StrCat("of ", TakenBy("epsilon"), ": added to the root of the mean square");
  const std::string trust =
      absl::StrCat("of ", TakenBy("trust"),
                   ": what one gradient adds to a layer's velocity is this part of its weights' "
                   "norm");
  const std::string weight_decay =
      absl::StrCat("L2; of ", NamesWhere([](const OptimizerEntry& o) { return o.decouples; }),
                   " decoupled from the gradient");
  const std::string decay = absl::StrCat(
      "what --weight-decay is for: all parameters, or weights alone and neither biases nor "
      "norms, class token and positions; ",
      NamesWhere(IsForWeightsAlone), ": always weights alone");
  const std::string nesterov = absl::StrCat("Nesterov's momentum, of ", TakenBy("nesterov"));
};

const std::string& AboutSchedules() {
  static const std::string about =
      absl::StrCat("of a pipeline's micro-batches; ",
                   absl::StrJoin(parallel::Schedules(), "; ",
                                 [](std::string* text, const parallel::ScheduleEntry& each) {
                                   absl::StrAppend(text, each.name, ": ", each.about);
                                 }));
  return about;
}

}  // namespace

std::vector<Field> FieldsOf(Recipe& r) {
  static const CoefficientHelp help;
  static const std::string schedules = AboutSchedules();
  return {
      {"data", kData,
       "folder with train and test: tar shards, TFRecord, folders of classes, images with masks "
       "or boxes, CIFAR-10 binary, MNIST; or tar shards in a store (s3://BUCKET/PATH, "
       "abfss://…, https://…, gs://…); or synthetic:COUNTxSIDExCLASSES",
       &r.data},
      {"augment",
       kData,
       "standard: random crop and flip, in the way usual for the input size; crop: ImageNet's "
       "random-resized crop and flip at any size; flip; none",
       &r.augment,
       {"standard", "crop", "flip", "none"}},
      {"alternate-flip", kData,
       "flip each image in every other epoch, and not by chance in any (Jordan 2024)",
       &r.alternate_flip},
      {"erase", kData,
       "probability of random erasing: a rectangle of 2 to 33 % of a training image becomes the "
       "mean "
       "(Zhong et al. 2017)",
       &r.erase},
      {"mixup", kData,
       "ALPHA: training images and their labels become blends of two, with shares from "
       "Beta(ALPHA, ALPHA) (Zhang et al. 2018); 0: none",
       &r.mixup},
      {"cutmix", kData,
       "ALPHA: likewise, but rectangles change places (Yun et al. 2019); with --mixup each step "
       "takes one of the two",
       &r.cutmix},
      {"plain-epochs", kData,
       "the last epochs, so many, neither erase nor mix (He et al. 2019, \"Data Augmentation "
       "Revisited\")",
       &r.plain_epochs},
      {"mean", kData, "of the pixels in 0..1, R,G,B (default: CIFAR's or ImageNet's)", &r.mean},
      {"stddev", kData, "of the pixels, likewise", &r.stddev, {}, 1e-6},
      {"workers", kData, "decoding threads per rank", &r.workers, {}, 1},
      {"max-unreadable", kData,
       "images per rank that may be damaged: each is named and replaced by the next",
       &r.max_unreadable},
      {"data-cache", kData,
       "FOLDER on this node that keeps shards of a store, for all its ranks (default: "
       "TUTTI_DATA_CACHE, else ~/.cache/tutti/data)",
       &r.data_cache},
      {"data-disk", kData,
       "MiB that these may take; a set may be larger; 0: nine tenths of what is free",
       &r.data_disk},
      {"mixed-shards",
       kData,
       "shards of a store that images of a batch come from, at about any time: more mix better, "
       "and "
       "take as much more of the disk",
       &r.mixed_shards,
       {},
       1},

      {"model", kModel,
       "resnet20, resnet50, resnet50v2, vgg16, inception_v3, mobilenet_v2, vit_b_16, "
       "fcn_resnet18, ssd300_vgg16, ... (--list-models lists all); script:FILE is a TorchScript "
       "module",
       &r.model},
      {"weights", kModel,
       "safetensors file, or folder of a trained model, to begin from: a state dict under the "
       "model's own names, which are torchvision's. What it has not, or in another shape (the last "
       "layer, for other classes), begins at random and is named",
       &r.weights},
      {"task",
       kModel,
       "what the model is for; auto: what it was made for. Segmentation wants masks, detection "
       "boxes",
       &r.task,
       {"auto", "classification", "segmentation", "detection"}},
      {"input-size", kModel, "height and width of its images; 0: what the model is meant for",
       &r.input_size},
      {"epochs", kModel, "times through the training images", &r.epochs, {}, 1},
      {"max-steps", kModel, "end after this many steps, schedule and all; 0: after --epochs",
       &r.max_steps},
      {"batch", kModel, "images per step over all ranks", &r.batch, {}, 1},
      {"batch-per-rank", kModel, "images per step and rank, instead of --batch; 0: none",
       &r.batch_per_rank},
      {"precision",
       kModel,
       "auto: the one that is fastest on every rank's processor or GPU, of a resumed run the one "
       "that it had; bf16: convolutions in bfloat16, the rest in fp32",
       &r.precision,
       {"auto", "fp32", "bf16"}},
      {"winograd", kModel,
       "on a CPU: 3x3 convolutions with fewer products (Lavin & Gray 2016): in bf16 16 for 36, "
       "each of sums rounded to bfloat16, in fp32 36 for 144; auto: in fp32 yes, in bf16 for "
       "tutti's own networks and not for TorchScript modules, of a resumed run what it had",
       &r.winograd},
      {"parallel", kModel, AboutParallelism(), &r.parallel},
      {"pipeline-schedule", kModel, schedules, &r.pipeline_schedule, parallel::ScheduleNames()},
      {"cut", kModel,
       "the layers that the second stage of a pipeline and those behind it begin with, as "
       "layer2.0,layer4.0 (default: where measured time and memory balance; --explain names them)",
       &r.cut},
      {"sync-bn", kModel, "batch-norm over the images of all ranks; on the CPU alone", &r.sync_bn},
      {"accumulation",
       kModel,
       "micro-batches that a rank computes its images of a step in, one after the other, for less "
       "memory; of a pipeline, those that its stages work on at once: four a stage keep them busy; "
       "batch-norm sees one at a time; on the CPU alone",
       &r.accumulation,
       {},
       1},
      {"label-smoothing", kModel, "share of the target spread over all classes",
       &r.label_smoothing},
      {"compression",
       kModel,
       "of the gradients between ranks, with error feedback, for slow links: int8 is a quarter of "
       "the bytes; on the CPU alone",
       &r.compression,
       {"none", "fp16", "bf16", "int8"}},
      {"seed", kModel, "of weights, order and augmentation", &r.seed},

      {"optimizer", kOptimizer, AboutOptimizers(), &r.optimizer, OptimizerNames()},
      {"lr", kOptimizer, "peak learning rate", &r.lr},
      {"scale-lr", kOptimizer, "--lr is per 256 images of a batch (linear scaling rule)",
       &r.scale_lr},
      {"lr-per-rank", kOptimizer, "--lr is multiplied by the number of ranks", &r.lr_per_rank},
      {"momentum", kOptimizer, help.momentum, &r.momentum},
      {"betas", kOptimizer, help.betas, &r.betas},
      {"epsilon", kOptimizer, help.epsilon, &r.epsilon},
      {"trust", kOptimizer, help.trust, &r.trust},
      {"weight-decay", kOptimizer, help.weight_decay, &r.weight_decay},
      {"decay", kOptimizer, help.decay, &r.decay, {"all", "weights"}},
      {"nesterov", kOptimizer, help.nesterov, &r.nesterov},
      {"schedule", kOptimizer, "of the learning rate after warm-up", &r.schedule,
       Schedule::Names()},
      {"warmup-epochs", kOptimizer, "linear warm-up; may be a fraction", &r.warmup_epochs},
      {"milestones", kOptimizer, "epochs at which \"step\" multiplies by --gamma, as 30,60,80",
       &r.milestones},
      {"gamma", kOptimizer, "factor of \"step\"", &r.gamma},
      {"final-lr", kOptimizer, "where \"cosine\" ends", &r.final_lr},
      {"clip-norm", kOptimizer,
       "scale the gradients of a step down to this norm, over all parameters, where theirs is "
       "larger; 0: never",
       &r.clip_norm},
      {"ema", kOptimizer,
       "evaluate and save an exponential moving average of the weights: what it keeps of itself "
       "per "
       "step, as 0.999; 0: none",
       &r.ema},

      {"output", kOutput, "folder for checkpoints/, model/ and metrics.jsonl", &r.output},
      {"evaluate-every", kOutput, "epochs; the last one always is; 0: only that",
       &r.evaluate_every},
      {"evaluate-mirrored", kOutput,
       "evaluate also the mean output for each image and its mirror image, as top1_mirrored; "
       "evaluation takes twice as long",
       &r.evaluate_mirrored},
      {"checkpoint-every", kOutput, "epochs; 0: none", &r.checkpoint_every},
      {"checkpoint-every-steps", kOutput, "steps, in addition; 0: none", &r.checkpoint_every_steps},
      {"keep-checkpoints", kOutput, "newest ones that stay", &r.keep_checkpoints, {}, 1},
      {"keep-best", kOutput,
       "keep the model of the best evaluation (highest top-1, mean IoU or mAP@0.5) in best/",
       &r.keep_best},
      {"resume", kOutput,
       "go on from the newest checkpoint of --output (\"latest\", or no value; from the start if "
       "there is none) or from a checkpoint's FOLDER",
       &r.resume},
      {"trace", kOutput,
       "FILE that gets a Chrome trace of the last steps of all ranks (ui.perfetto.dev shows it)",
       &r.trace},
      {"tensorboard", kOutput, "FOLDER that gets events for TensorBoard", &r.tensorboard},
      {"mlflow", kOutput,
       "FOLDER of MLflow's file store that gets the run (default: MLFLOW_TRACKING_URI, where that "
       "names a folder)",
       &r.mlflow},
      {"torchscript", kOutput,
       "write the finished model as TorchScript too, model/model.pt; auto: yes, save where the "
       "model "
       "lies on several ranks, of which one needs room for all of it then",
       &r.torchscript},

      {"device",
       kMachine,
       "what computes: cuda is this rank's GPU; auto that, if there is one, else the CPU",
       &r.device,
       {"auto", "cpu", "cuda"}},
      {"threads", kMachine,
       "of computation per rank; 0: this node's cores shared by its ranks, or OMP_NUM_THREADS",
       &r.threads},
      {"step-timeout",
       kMachine,
       "seconds after which a step that waits for a rank is an error",
       &r.step_timeout,
       {},
       1},
      {"check-memory", kMachine,
       "refuse a pipeline with a stage that does not fit the memory which is free on its node",
       &r.check_memory},
  };
}

absl::Status SetField(const Field& field, absl::string_view text) {
  return std::visit([&](auto* value) { return Parse(field, text, *value); }, field.value);
}

bool IsSwitch(const Field& field) {
  return std::holds_alternative<bool*>(field.value) ||
         std::holds_alternative<std::optional<bool>*>(field.value);
}

std::string FieldText(const Field& field) {
  return std::visit([](const auto* value) { return Text(*value); }, field.value);
}

std::map<std::string, std::string> FieldTexts(Recipe recipe) {
  std::map<std::string, std::string> texts;
  for (const Field& field : FieldsOf(recipe)) texts[std::string(field.name)] = FieldText(field);
  return texts;
}

namespace {

// What ranks that do not meet in each step do not do.
absl::Status CheckExchange(const Recipe& recipe) {
  const auto& [mesh, exchange, decoupling] = recipe.parallel;
  if (!exchange.is_local() && mesh.servers == 0 && !decoupling.is_on()) return absl::OkStatus();
  const std::pair<absl::string_view, bool> wanted[] = {
      {"--sync-bn", recipe.sync_bn},
      {"--compression", recipe.compression != "none"},
      {"--ema", recipe.ema > 0 && !decoupling.is_on()},
      {"--accumulation", recipe.accumulation > 1 && decoupling.is_on()},
      {"--device cuda", recipe.device == "cuda"}};
  for (const auto& [flag, is_wanted] : wanted) {
    if (!is_wanted) continue;
    const std::string way = mesh.servers > 0     ? absl::StrCat("servers=", mesh.servers)
                            : decoupling.is_on() ? absl::StrCat("gradients=", decoupling.gradients)
                                                 : absl::StrCat("sync=", exchange.sync);
    const bool has_another = exchange.is_local() && flag == "--compression";
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " does not go with --parallel ", way, ": leave one of them",
                     has_another ? ", or say send=int8 there" : "",
                     flag == "--accumulation" ? "; what goes from stage to stage is --batch" : ""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const Recipe& recipe) {
  const auto wrong = [](absl::string_view what) { return absl::InvalidArgumentError(what); };
  if (recipe.data.empty()) return wrong("--data is missing: the folder that holds the images");
  if (recipe.alternate_flip && recipe.augment == "none") {
    return wrong("--alternate-flip is for --augment standard and flip");
  }
  if (recipe.erase > 1) return wrong("--erase is a probability: at most 1");
  if (recipe.plain_epochs > 0 && recipe.erase + recipe.mixup + recipe.cutmix == 0) {
    return wrong("--plain-epochs is for --erase, --mixup and --cutmix");
  }
  if (recipe.plain_epochs > recipe.epochs) {
    return wrong(absl::StrCat("--plain-epochs ", recipe.plain_epochs, " is more than --epochs ",
                              recipe.epochs));
  }
  if (recipe.ema >= 1) return wrong("--ema must be below 1");
  if (recipe.scale_lr && recipe.lr_per_rank) {
    return wrong("--scale-lr and --lr-per-rank are two ways to scale --lr: choose one");
  }
  if (recipe.label_smoothing >= 1) return wrong("--label-smoothing must be below 1");
  if (recipe.momentum >= 1) return wrong("--momentum must be below 1");
  if (recipe.betas.size() != 2 || recipe.betas[0] >= 1 || recipe.betas[1] >= 1) {
    return wrong("--betas takes two numbers below 1");
  }
  if (recipe.trust == 0) return wrong("--trust must be above 0");
  if (recipe.optimizer != "sgd" && recipe.nesterov) {
    return wrong("--nesterov is for --optimizer sgd");
  }
  for (const auto* channels : {&recipe.mean, &recipe.stddev}) {
    if (!channels->empty() && channels->size() != 3) {
      return wrong("--mean and --stddev take three numbers: red, green, blue");
    }
  }
  if ((recipe.schedule == "step") == recipe.milestones.empty()) {
    return wrong("--milestones goes with --schedule step, and the other way round");
  }
  TUTTI_RETURN_IF_ERROR(CheckExchange(recipe));
  if (!std::is_sorted(recipe.milestones.begin(), recipe.milestones.end())) {
    return wrong("--milestones must ascend");
  }
  return absl::OkStatus();
}

Recipe ForRanks(Recipe recipe, int replicas) {
  if (recipe.batch_per_rank > 0) {
    recipe.batch = recipe.batch_per_rank * replicas;
    recipe.batch_per_rank = 0;
  }
  if (recipe.lr_per_rank) {
    recipe.lr *= replicas;
    recipe.lr_per_rank = false;
  }
  return recipe;
}

int64_t TotalSteps(const Recipe& recipe, int64_t steps_per_epoch) {
  const int64_t steps = recipe.epochs * steps_per_epoch;
  return recipe.max_steps > 0 ? std::min(steps, recipe.max_steps) : steps;
}

}  // namespace tutti::train
