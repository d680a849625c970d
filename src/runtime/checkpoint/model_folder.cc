#include "runtime/checkpoint/model_folder.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/checkpoint/manifest.h"

namespace tutti::checkpoint {
namespace {

using nlohmann::json;

constexpr char kModelFormat[] = "tutti-model";
constexpr char kTensors[] = "model.safetensors";
constexpr char kDescription[] = "model.json";
constexpr char kTorchScript[] = "model.pt";
constexpr char kScriptArchitecture[] = "script:model.pt";
constexpr int64_t kMaxPixels = 1 << 14;  // a side; bounds what an image is blown up to

json ToJson(const ModelFolder& model) {
  const ModelInput& input = model.input;
  json description = {{"architecture", model.architecture},
                      {"task", model.task},
                      {"classes", model.classes},
                      {"input",
                       {{"height", input.height},
                        {"width", input.width},
                        {"resize", input.resize},
                        {"stretch", input.stretch},
                        {"mean", input.mean},
                        {"stddev", input.stddev}}}};
  if (!model.precision.empty()) description["precision"] = model.precision;
  return description;
}

// Takes values out of a JSON object; the first that is not as it must be is the error.
class Fields {
 public:
  Fields(const json& object, absl::Status& status) : object_(object), status_(status) {}

  template <typename T>
  void Read(const char* key, const char* what, T& into) {
    const auto it = object_.find(key);
    try {
      if (it == object_.end()) throw std::invalid_argument(key);
      it->get_to(into);
    } catch (const std::exception&) {
      Fail(key, what);
    }
  }
  // Reads a key that older folders do not have.
  template <typename T>
  void ReadIfThere(const char* key, const char* what, T& into) {
    if (object_.contains(key)) Read(key, what, into);
  }
  void Require(bool holds, const char* key, const char* what) {
    if (!holds) Fail(key, what);
  }

 private:
  void Fail(const char* key, const char* what) {
    status_.Update(absl::InvalidArgumentError(absl::StrCat("\"", key, "\" must be ", what)));
  }
  const json& object_;
  absl::Status& status_;
};

absl::Status FromJson(const json& object, ModelFolder& model) {
  absl::Status status;
  json input;
  Fields fields(object, status);
  fields.Read("architecture", "a name", model.architecture);
  fields.ReadIfThere("task", "a name", model.task);
  fields.ReadIfThere("precision", "fp32 or bf16", model.precision);
  fields.Read("classes", "a list of names", model.classes);
  fields.Require(!model.classes.empty(), "classes", "a list of names");
  fields.Read("input", "an object", input);

  Fields of_input(input, status);
  const char kSide[] = "a number of pixels from 1 to 16384";
  of_input.Read("height", kSide, model.input.height);
  of_input.Read("width", kSide, model.input.width);
  of_input.Read("resize", "a number of pixels, or 0", model.input.resize);
  of_input.ReadIfThere("stretch", "true or false", model.input.stretch);
  of_input.Read("mean", "three numbers", model.input.mean);
  of_input.Read("stddev", "three positive numbers", model.input.stddev);
  const auto within = [](int64_t n, int64_t least) { return n >= least && n <= kMaxPixels; };
  of_input.Require(within(model.input.height, 1), "height", kSide);
  of_input.Require(within(model.input.width, 1), "width", kSide);
  of_input.Require(within(model.input.resize, 0), "resize", "a number of pixels, or 0");
  for (double s : model.input.stddev) {
    of_input.Require(s > 0, "stddev", "three positive numbers");
  }
  return status;
}

}  // namespace

absl::Status WriteModelFolder(const std::filesystem::path& path, const ModelFolder& model) {
  return WriteModelFolder(path, model, SourcesOf(model.tensors));
}

absl::Status WriteModelFolder(const std::filesystem::path& path, const ModelFolder& model,
                              const TensorSources& tensors) {
  if (model.architecture == kScriptArchitecture && model.torchscript.empty()) {
    return absl::InvalidArgumentError("the folder of a script is nothing without its TorchScript");
  }
  TUTTI_ASSIGN_OR_RETURN(FolderWriter folder, FolderWriter::Create(path));
  TUTTI_RETURN_IF_ERROR(AddTensors(folder, kTensors, tensors));
  if (!model.torchscript.empty()) {
    TUTTI_RETURN_IF_ERROR(folder.Add(kTorchScript, model.torchscript));
  }
  TUTTI_RETURN_IF_ERROR(folder.Add(kDescription, ToJson(model).dump(/*indent=*/2) + "\n"));
  return folder.Commit({{"format", kModelFormat}, {"version", 1}}).status();
}

absl::StatusOr<ModelFolder> ReadModelFolder(const std::filesystem::path& path) {
  const auto manifest = Manifest::Read(path, kModelFormat);
  if (absl::IsNotFound(manifest.status())) {
    const bool there = std::filesystem::exists(path);
    return absl::NotFoundError(absl::StrCat(
        path.string(), there ? " is no model folder, it has no manifest.json" : " does not exist",
        "; give the folder that tutti-train wrote"));
  }
  if (!manifest.ok()) return manifest.status();
  ModelFolder model;
  TUTTI_ASSIGN_OR_RETURN(const json description, manifest->ReadJson(kDescription));
  if (absl::Status status = FromJson(description, model); !status.ok()) {
    return base::Annotate(status, (path / kDescription).string());
  }
  TUTTI_ASSIGN_OR_RETURN(std::string bytes, manifest->ReadFile(kTensors));
  auto tensors = ParseSafetensors(std::move(bytes));
  if (!tensors.ok()) return base::Annotate(tensors.status(), (path / kTensors).string());
  model.tensors = *std::move(tensors);
  if (model.architecture == kScriptArchitecture) {  // verified; whoever wants it opens the file
    TUTTI_RETURN_IF_ERROR(manifest->ReadFile(kTorchScript).status());
  }
  return model;
}

}  // namespace tutti::checkpoint
