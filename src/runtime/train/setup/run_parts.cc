#include "runtime/train/setup/run_parts.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/status.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/cpu/kept_memory.h"
#include "runtime/models/script_model.h"
#include "runtime/models/state.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/parallel/decoupled/decoupled_stages.h"
#include "runtime/parallel/gpu_parallel.h"
#include "runtime/parallel/local_sgd.h"
#include "runtime/parallel/pipeline/pipeline_parallel.h"
#include "runtime/parallel/servers/parameter_servers.h"
#include "runtime/tasks/classification.h"
#include "runtime/train/optimizer/optimizers.h"
#include "runtime/train/optimizer/weight_average.h"
#include "runtime/train/setup/batch_tensors.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/resolve.h"

namespace tutti::train {
namespace {

// From where a GPU can copy while the CPU goes on.
std::shared_ptr<std::byte> PageLocked(size_t bytes) {
  const auto owner =
      torch::empty({static_cast<int64_t>(bytes)}, torch::dtype(torch::kUInt8).pinned_memory(true));
  return {reinterpret_cast<std::byte*>(owner.mutable_data_ptr<uint8_t>()), [owner](std::byte*) {}};
}

struct TaskOfModel {
  absl::string_view name;
  data::Annotations annotations;
};

TaskOfModel TaskOf(models::Purpose purpose) {
  switch (purpose) {
    case models::Purpose::kSegmentation:
      return {"segmentation", data::Annotations::kMasks};
    case models::Purpose::kDetection:
      return {"detection", data::Annotations::kBoxes};
    case models::Purpose::kClassification:
      break;
  }
  return {"classification", data::Annotations::kLabels};
}

// What is meant for images with one label each.
absl::Status CheckForLabels(const Recipe& recipe, absl::string_view task) {
  if (task == "classification") return absl::OkStatus();
  const std::pair<absl::string_view, bool> wanted[] = {
      {"--erase", recipe.erase > 0},
      {"--mixup", recipe.mixup > 0},
      {"--cutmix", recipe.cutmix > 0},
      {"--evaluate-mirrored", recipe.evaluate_mirrored}};
  for (const auto& [flag, is_wanted] : wanted) {
    if (!is_wanted) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, " is for classification alone, and ",
                                                   recipe.model, " is for ", task, ": leave it"));
  }
  return absl::OkStatus();
}

// What the model takes. NotFound says which models there are; InvalidArgument: it is for another
// task, or for images of one size alone.
absl::StatusOr<ModelInputSpec> ModelInputOf(const Recipe& recipe) {
  const int64_t own = models::InputSize(recipe.model);
  if (own == 0) return models::MakeModel({recipe.model}, std::nullopt).status();
  const TaskOfModel task = TaskOf(models::PurposeOf(recipe.model));
  if (recipe.task != "auto" && recipe.task != task.name) {
    return absl::InvalidArgumentError(
        absl::StrCat(recipe.model, " is a network for ", task.name, ", not for ", recipe.task));
  }
  TUTTI_RETURN_IF_ERROR(CheckForLabels(recipe, task.name));
  const int64_t size = recipe.input_size > 0 ? recipe.input_size : own;
  if (models::TakesOneSize(recipe.model) && size != own) {
    return absl::InvalidArgumentError(absl::StrCat(recipe.model, " takes images of ", own,
                                                   " pixels a side alone: leave --input-size"));
  }
  return ModelInputSpec{size, task.annotations};
}

// A script says only when it runs what it takes and how many classes it tells apart, and a network
// of ours how small an image may be.
absl::Status CheckRuns(const Recipe& recipe, const models::Model& model,
                       const data::Augmentation& augmentation, int64_t classes) {
  const std::string file = models::ScriptFile(recipe.model);
  const bool is_own_size =
      recipe.input_size == 0 || models::PurposeOf(recipe.model) != models::Purpose::kClassification;
  if (file.empty() && is_own_size) return absl::OkStatus();
  if (!file.empty() && recipe.sync_bn) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--sync-bn goes with tutti's own models; the batch-norms of ", file, " are its own"));
  }
  const absl::Status runs =
      models::CheckClasses(model, augmentation.height, augmentation.width, classes);
  if (!file.empty() || runs.ok()) return base::Annotate(runs, file);
  const absl::string_view why = *absl::StrSplit(runs.message(), '\n').begin();
  return absl::InvalidArgumentError(
      absl::StrCat(recipe.model, ": ", why, "; give a larger --input-size"));
}

// A folder that tutti-train wrote, or a file.
absl::StatusOr<checkpoint::TensorMap> ReadWeights(const std::filesystem::path& path) {
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    TUTTI_ASSIGN_OR_RETURN(checkpoint::ModelFolder folder, checkpoint::ReadModelFolder(path));
    return std::move(folder.tensors);
  }
  auto tensors = checkpoint::ReadSafetensors(path);
  if (!absl::IsDataLoss(tensors.status())) return tensors;
  return absl::DataLossError(absl::StrCat(
      tensors.status().message(),
      "; --weights takes safetensors, which safetensors.torch.save_file makes of a state dict"));
}

// Says what it took, and what stays random.
absl::StatusOr<std::string> LoadWeights(const Recipe& recipe, const models::Model& model) {
  constexpr size_t kNamed = 6;
  if (recipe.weights.empty()) return "";
  TUTTI_ASSIGN_OR_RETURN(const checkpoint::TensorMap tensors, ReadWeights(recipe.weights));
  auto random = models::LoadFitting(tensors, *model);
  if (!random.ok()) return base::Annotate(random.status(), recipe.weights);
  std::string text = absl::StrCat("weights from ", recipe.weights);
  if (random->empty()) return text;
  const size_t named = std::min(random->size(), kNamed);
  absl::StrAppend(&text, "; at random begin ",
                  absl::StrJoin(random->begin(), random->begin() + named, ", "));
  if (random->size() > named) absl::StrAppend(&text, " and ", random->size() - named, " more");
  return text;
}

// The model, under the same names, with its task's answer as output.
class PredictingModel final : public models::ModelImpl {
 public:
  PredictingModel(models::Model model, std::shared_ptr<const tasks::Task> task)
      : model_(std::move(model)), task_(std::move(task)) {
    for (const auto& own : model_->named_parameters(/*recurse=*/false)) {
      register_parameter(own.key(), own.value(), own.value().requires_grad());
    }
    for (const auto& child : model_->named_children()) register_module(child.key(), child.value());
  }
  torch::Tensor forward(torch::Tensor images) override {
    return task_->Answer(model_->forward(std::move(images)));
  }

 private:
  const models::Model model_;
  const std::shared_ptr<const tasks::Task> task_;
};

// A rank of a pipeline has a part of it alone, and makes another one.
absl::StatusOr<models::Model> WholeModel(const Recipe& recipe, const Parts& parts,
                                         const checkpoint::TensorMap& tensors) {
  if (parts.strategy->layout().stages() == 1) return parts.strategy->model();
  const auto classes = static_cast<int64_t>(parts.input.train_images->classes().size());
  TUTTI_ASSIGN_OR_RETURN(const models::Model model,
                         models::MakeModel({recipe.model, classes}, std::nullopt));
  TUTTI_RETURN_IF_ERROR(models::LoadState(tensors, *model));
  return model;
}

absl::StatusOr<std::string> MakeTorchScript(const Recipe& recipe, const Parts& parts,
                                            const checkpoint::TensorMap& tensors, bool is_script) {
  TUTTI_ASSIGN_OR_RETURN(models::Model model, WholeModel(recipe, parts, tensors));
  if (!is_script) model = std::make_shared<PredictingModel>(std::move(model), parts.task);
  const data::Augmentation& augmentation = parts.input.evaluation;
  return models::ToTorchScript(model, augmentation.height, augmentation.width);
}

// Which convolutions compute, from now on.
void ChooseKernels(const Recipe& recipe) {
  device::cpu::UseWinograd(UsesWinograd(recipe));
  device::cpu::fp32::UsePatches(UsesWinograd(recipe));
}

// Of all the parameters in the buckets.
parallel::OptimizerFactory OptimizerOf(const Recipe& recipe) {
  return [recipe](const parallel::Buckets& buckets, const models::Model& model) {
    auto optimizer = MakeOptimizer(recipe, buckets);
    if (recipe.ema == 0) return optimizer;
    return std::unique_ptr<parallel::Optimizer>(
        std::make_unique<WeightAverage>(std::move(optimizer), buckets, model, recipe.ema));
  };
}

constexpr int kStepTimeoutsToPlan = 10;

parallel::DecoupledOptions DecoupledOf(const Recipe& recipe, const parallel::Layout& layout,
                                       const parallel::Cut& cut,
                                       const models::PredictorSpec& predictor, const Parts& parts) {
  const parallel::Decoupling& wanted = recipe.parallel.decoupling;
  return {.layout = layout,
          .cut = cut,
          .gradients = wanted.gradients == "delayed"
                           ? parallel::DecoupledOptions::Gradients::kDelayed
                           : parallel::DecoupledOptions::Gradients::kSynthetic,
          .predictor = predictor,
          .predictor_rate = wanted.predictor_rate,
          .seed = static_cast<uint64_t>(recipe.seed),
          .waiting = wanted.waiting,
          .drops = wanted.full == "drop",
          .task = parts.task,
          .bf16 = recipe.precision == "bf16",
          .clip_norm = recipe.clip_norm,
          .optimizer = OptimizerOf(recipe),
          .predictor_optimizer = PredictorOptimizer(recipe)};
}

// Takes `whole`, of which this rank keeps its stage.
absl::Status LayOverStages(const Recipe& recipe, models::Model whole,
                           std::unique_ptr<comm::Communicator> communicator,
                           const parallel::Layout& layout, torch::Device device,
                           const PipelineContext& context, Parts& parts) {
  ChooseKernels(recipe);
  whole->to(device);
  PlanContext how = context.plan;
  if (device.is_cuda()) how.free_memory = [] { return absl::UnimplementedError("of a GPU"); };
  // Others wait for rank 0's measurement, which may take longer than a step.
  const absl::Duration timeout = absl::Seconds(recipe.step_timeout);
  TUTTI_ASSIGN_OR_RETURN(const PipelinePlan plan,
                         PlanTogether(recipe, whole, *parts.train, layout, *communicator, how,
                                      base::Deadline::After(kStepTimeoutsToPlan * timeout)));
  parts.cut = parallel::CutText(plan.cut, plan.layers);
  if (recipe.parallel.decoupling.is_on()) {
    const auto classes = static_cast<int64_t>(parts.input.train_images->classes().size());
    TUTTI_ASSIGN_OR_RETURN(const models::PredictorSpec predictor,
                           PredictorOf(recipe, parts.task->name(), classes));
    if (layout.reports()) {
      TUTTI_ASSIGN_OR_RETURN(parts.plan,
                             DescribeDecoupling(recipe, plan, whole, *parts.train, predictor));
    }
    TUTTI_ASSIGN_OR_RETURN(
        parts.strategy,
        parallel::DecoupledStages::Create(std::move(whole), parts.train->Like(1).inputs.at(0),
                                          std::move(communicator),
                                          DecoupledOf(recipe, layout, plan.cut, predictor, parts),
                                          base::Deadline::After(kStepTimeoutsToPlan * timeout)));
    device::ReturnKeptBlocks();  // of the other stages' layers
    return absl::OkStatus();
  }
  parts.plan = DescribePlan(plan);
  const parallel::PipelineOptions options{
      .layout = layout,
      .cut = plan.cut,
      .timetable = parallel::ScheduleNamed(recipe.pipeline_schedule).make,
      .micro_batches = recipe.accumulation,
      .task = parts.task,
      .bf16 = recipe.precision == "bf16",
      .clip_norm = recipe.clip_norm,
      .device = device,
      .on_pass = context.on_pass,
      .optimizer = OptimizerOf(recipe)};
  TUTTI_ASSIGN_OR_RETURN(
      parts.strategy, parallel::PipelineParallel::Create(std::move(whole), std::move(communicator),
                                                         options, base::Deadline::After(timeout)));
  device::ReturnKeptBlocks();  // of the other stages' layers
  return absl::OkStatus();
}

void MakeSources(const Recipe& recipe, const parallel::Layout& layout, Parts& parts) {
  const Input& input = parts.input;
  const data::Augmentation& size = input.evaluation;
  const bool bf16 = recipe.precision == "bf16";
  const auto classes = static_cast<int64_t>(input.train_images->classes().size());
  const auto annotations = [size](const data::Batch& batch) { return AnnotationsOf(batch, size); };
  const auto targets = [task = parts.task, annotations](const data::Batch& batch) {
    return task->Targets(annotations(batch));
  };
  const auto mixed = [classes](const data::Batch& batch) { return MixedLabelsOf(batch, classes); };
  const bool mixes = recipe.mixup > 0 || recipe.cutmix > 0;
  const char* const remark =
      layout.stages() > 1 ? "images that cannot be read are not replaced where a pipeline trains"
                          : "";
  parts.train = MakeImageSource(
      *input.train, {size, bf16, mixes ? TargetsOf(mixed) : TargetsOf(targets), remark});
  parts.test = MakeImageSource(*input.test, {size, bf16, annotations, remark});
}

// Makes all that every rank has, whatever its part of the model is; returns the whole model.
absl::StatusOr<models::Model> MakeWholeModel(const Recipe& recipe, const parallel::Layout& layout,
                                             torch::Device device, Parts& parts) {
  TUTTI_ASSIGN_OR_RETURN(const ModelInputSpec input_spec, ModelInputOf(recipe));
  if (layout.reports() && recipe.warmup_epochs > static_cast<double>(recipe.epochs)) {
    base::Warn("--warmup-epochs is longer than --epochs: --lr is never reached");
  }
  TUTTI_ASSIGN_OR_RETURN(
      parts.input,
      OpenInput(recipe, input_spec, layout, device.is_cuda() ? PageLocked : data::BatchMemory()));
  const auto classes = static_cast<int64_t>(parts.input.train_images->classes().size());
  const models::ModelSpec spec{recipe.model, classes};
  TUTTI_ASSIGN_OR_RETURN(models::Model model,
                         models::MakeModel(spec, static_cast<uint64_t>(recipe.seed)));
  TUTTI_RETURN_IF_ERROR(CheckRuns(recipe, model, parts.input.evaluation, classes));
  TUTTI_ASSIGN_OR_RETURN(parts.beginning, LoadWeights(recipe, model));
  TUTTI_ASSIGN_OR_RETURN(parts.task, tasks::MakeTask(spec, *model, {recipe.label_smoothing}));
  for (const torch::Tensor& parameter : model->parameters()) parts.parameters += parameter.numel();
  MakeSources(recipe, layout, parts);
  return model;
}

}  // namespace

absl::StatusOr<Parts> MakeParts(const Recipe& recipe,
                                std::unique_ptr<comm::Communicator> communicator,
                                torch::Device device, const PipelineContext& context) {
  TUTTI_RETURN_IF_ERROR(CheckForPipeline(recipe));
  TUTTI_ASSIGN_OR_RETURN(
      parallel::Layout layout,
      parallel::LayOut(recipe.parallel.mesh, communicator->rank(), communicator->size()));
  layout.targets_travel = recipe.parallel.decoupling.is_on();
  if (layout.targets_travel && device.is_cuda()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parallel: gradients=", recipe.parallel.decoupling.gradients,
                     " trains on processors alone: give --device cpu"));
  }
  Parts parts;
  TUTTI_ASSIGN_OR_RETURN(models::Model model, MakeWholeModel(recipe, layout, device, parts));
  if (layout.stages() > 1) {
    TUTTI_RETURN_IF_ERROR(LayOverStages(recipe, std::move(model), std::move(communicator), layout,
                                        device, context, parts));
  } else {
    TUTTI_ASSIGN_OR_RETURN(parts.strategy,
                           MakeStrategy(recipe, model, std::move(communicator), device, parts.task,
                                        TotalSteps(recipe, parts.input.train->steps_per_epoch())));
    parts.plan = DescribeExchange(recipe, parts.parameters, layout);
  }
  parts.schedule = MakeSchedule(recipe, parts.input.train->steps_per_epoch());
  return parts;
}

absl::StatusOr<std::string> Explain(Recipe recipe, int world_size) {
  if (world_size == 0) {
    const parallel::Mesh& mesh = recipe.parallel.mesh;
    world_size = static_cast<int>(mesh.pipeline * std::max<int64_t>(mesh.data, 1) + mesh.servers);
  }
  TUTTI_RETURN_IF_ERROR(CheckForPipeline(recipe));
  TUTTI_ASSIGN_OR_RETURN(const parallel::Layout layout,
                         parallel::LayOut(recipe.parallel.mesh, 0, world_size));
  TUTTI_ASSIGN_OR_RETURN(const auto alone, comm::JoinGroup({}));
  TUTTI_ASSIGN_OR_RETURN(const Resolved resolved, Resolve(recipe, layout, torch::kCPU, *alone));
  recipe = resolved.recipe;
  ChooseKernels(recipe);
  Parts parts;
  TUTTI_ASSIGN_OR_RETURN(const models::Model model,
                         MakeWholeModel(recipe, layout, torch::kCPU, parts));
  std::string text =
      absl::StrCat(recipe.model, ": ", parts.parameters, " parameters on ", world_size,
                   world_size == 1 ? " rank, " : " ranks, ", layout.stages(),
                   layout.stages() == 1 ? " stage x " : " stages x ", layout.replicas(),
                   layout.replicas() == 1 ? " replica; batch " : " replicas; batch ", recipe.batch,
                   ", ", recipe.precision, "\n");
  if (layout.stages() == 1 && model->Layers().empty()) {
    return absl::StrCat(text, "  what a step costs is not known before it runs: ", recipe.model,
                        " is not a list of layers\n");
  }
  TUTTI_ASSIGN_OR_RETURN(
      const PipelinePlan plan,
      PlanPipeline(recipe, model, *parts.train, layout.shares(), resolved.former_cut));
  if (recipe.parallel.decoupling.is_on()) {
    const auto classes = static_cast<int64_t>(parts.input.train_images->classes().size());
    TUTTI_ASSIGN_OR_RETURN(const models::PredictorSpec predictor,
                           PredictorOf(recipe, parts.task->name(), classes));
    TUTTI_ASSIGN_OR_RETURN(const std::string said,
                           DescribeDecoupling(recipe, plan, model, *parts.train, predictor));
    return absl::StrCat(text, said, "\n", DescribeTraffic(plan, layout.replicas()));
  }
  const std::string exchange =
      DescribeExchange(recipe, parts.parameters, layout, ComputedSeconds(plan));
  return absl::StrCat(
      text, DescribePlan(plan), "\n",
      exchange.empty() ? DescribeTraffic(plan, layout.replicas()) : absl::StrCat(exchange, "\n"));
}

RunFacts FactsOf(const Parts& parts) {
  const Input& input = parts.input;
  RunFacts facts;
  facts.parameters = parts.parameters;
  facts.classes = static_cast<int64_t>(input.train_images->classes().size());
  facts.train_images = input.train_images->size();
  facts.test_images = input.test_images->size();
  facts.steps = parts.schedule.total_steps;
  facts.steps_per_epoch = input.train->steps_per_epoch();
  facts.world_size = parts.strategy->world_size();
  facts.threads = at::get_num_threads();
  facts.task = std::string(parts.task->name());
  const torch::Device device = parts.strategy->model()->parameters()[0].device();
  if (device.is_cuda()) {
    facts.device = "cuda";
    facts.gpu = device.index();
  }
  return facts;
}

absl::StatusOr<std::unique_ptr<parallel::Strategy>> MakeStrategy(
    const Recipe& recipe, const models::Model& model,
    std::unique_ptr<comm::Communicator> communicator, torch::Device device,
    std::shared_ptr<const tasks::Task> task, int64_t last_step) {
  if (recipe.precision == "auto") {
    return absl::InvalidArgumentError("the precision is not decided yet (train/setup/precision.h)");
  }
  ChooseKernels(recipe);
  if (task == nullptr) task = std::make_shared<tasks::Classification>(recipe.label_smoothing);
  const parallel::DataParallelOptions options{.task = std::move(task),
                                              .bf16 = recipe.precision == "bf16",
                                              .synchronized_batch_norm = recipe.sync_bn,
                                              .accumulation = recipe.accumulation,
                                              .compression = EncodingOf(recipe.compression),
                                              .clip_norm = recipe.clip_norm,
                                              .optimizer = OptimizerOf(recipe)};
  const auto& [mesh, exchange, decoupling] = recipe.parallel;
  if (decoupling.is_on()) return absl::InternalError("stages are made of a cut model");
  if (device.is_cuda() && (mesh.servers > 0 || exchange.is_local())) {
    return absl::InvalidArgumentError(
        "--parallel: servers and sync train on processors alone: give --device cpu");
  }
  if (device.is_cuda()) {
    return parallel::GpuParallel::Create(model, std::move(communicator), options, device);
  }
  if (exchange.is_local()) {
    return parallel::LocalSgd::Create(model, std::move(communicator),
                                      {.inner = options,
                                       .exchange = exchange,
                                       .encoding = EncodingOf(exchange.send),
                                       .last_step = last_step});
  }
  if (mesh.servers == 0) {
    return parallel::DataParallel::Create(model, std::move(communicator), options);
  }
  TUTTI_ASSIGN_OR_RETURN(const parallel::Layout layout,
                         parallel::LayOut(mesh, communicator->rank(), communicator->size()));
  return parallel::MakeParameterServers(
      model, std::move(communicator),
      {.layout = layout, .inner = options, .staleness = exchange.staleness},
      base::Deadline::After(absl::Seconds(recipe.step_timeout)));
}

Schedule MakeSchedule(const Recipe& recipe, int64_t steps_per_epoch) {
  const auto in_steps = [&](double epochs) {
    return static_cast<int64_t>(epochs * static_cast<double>(steps_per_epoch) + 0.5);
  };
  Schedule schedule;
  schedule.kind = Schedule::KindOf(recipe.schedule);
  schedule.peak = recipe.scale_lr ? ScaledToBatch(recipe.lr, recipe.batch) : recipe.lr;
  schedule.last = recipe.final_lr;
  schedule.gamma = recipe.gamma;
  schedule.warmup_steps = in_steps(recipe.warmup_epochs);
  schedule.total_steps = TotalSteps(recipe, steps_per_epoch);
  for (double epoch : recipe.milestones) schedule.milestones.push_back(in_steps(epoch));
  return schedule;
}

checkpoint::ModelFolder MakeModelFolder(const Recipe& recipe, const Parts& parts) {
  const data::Augmentation& augmentation = parts.input.evaluation;
  const bool script = !models::ScriptFile(recipe.model).empty();
  checkpoint::ModelFolder folder{.architecture = script ? "script:model.pt" : recipe.model,
                                 .task = std::string(parts.task->name()),
                                 .classes = parts.input.train_images->classes(),
                                 .input = {.height = augmentation.height,
                                           .width = augmentation.width,
                                           .resize = augmentation.resize,
                                           .stretch = augmentation.stretch},
                                 .precision = recipe.precision};
  std::copy_n(augmentation.mean, 3, folder.input.mean.begin());
  std::copy_n(augmentation.stddev, 3, folder.input.stddev.begin());
  return folder;
}

bool WantsTorchScript(const Recipe& recipe, const Parts& parts) {
  const bool is_script = !models::ScriptFile(recipe.model).empty();
  return is_script || recipe.torchscript.value_or(parts.strategy->layout().stages() == 1);
}

std::string TorchScriptOf(const Recipe& recipe, const Parts& parts,
                          const checkpoint::TensorMap& tensors) {
  const bool is_script = !models::ScriptFile(recipe.model).empty();
  auto script = MakeTorchScript(recipe, parts, tensors, is_script);
  if (script.ok()) return *std::move(script);
  base::Warn(std::string(script.status().message()));
  return "";
}

}  // namespace tutti::train
