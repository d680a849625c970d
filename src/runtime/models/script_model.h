// Loads and saves a network as a TorchScript module in a file, as torch.jit.save and tutti-train
// write them.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/models/model.h"

namespace tutti::models {

// Takes a tensor and returns one, or a tuple or list whose first is the main output. Its parameters
// and buffers are the model's own, under the module's names; train() and eval() reach its modules.
// Run op by op, without the script compiler's own optimisations: the arithmetic is that of the same
// network in C++, and a batch of another size costs nothing.
//
// NotFound: no such file; InvalidArgument: not a TorchScript file, or one without forward(images)
// (names it), or, where it is to be `trained`, one whose parameters are frozen or shared.
absl::StatusOr<Model> LoadScript(const std::filesystem::path& file, bool trained = true);

// Returns the file of "script:FILE"; empty for the name of a network of tutti's own.
std::string ScriptFile(absl::string_view name);

// Checks whether the model gives an image of this size as many logits as there are classes.
// InvalidArgument says what it gives instead.
absl::Status CheckClasses(const Model& model, int64_t height, int64_t width, int64_t classes);

// Returns the model as a TorchScript file's bytes, in evaluation mode, for images [any number, 3,
// height, width]; parameters and buffers keep their names. A script model is written as it is. The
// model itself stays as it was. Internal when there is an operation that a trace cannot hold.
absl::StatusOr<std::string> ToTorchScript(const Model& model, int64_t height, int64_t width);

}  // namespace tutti::models
