// Turns what `tutti-train --describe-machine` measures of this machine into checks of `tutti
// doctor`: training lives in the other wing, and this one knows its line of JSON alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/client/doctor/checks.h"

namespace tutti::client {

// ./run trains on examples/cifar10, of whose 5,000 images an epoch of its recipe takes 78 steps of
// 64. Evaluations and the start take little time beside that.
constexpr int64_t kImagesOfTheExample = int64_t{8} * 78 * 64;

// Returns one check a fact. `load`: processes that wanted to run before it was measured. Where
// other programs took the processors meanwhile, the speed is that of the machine without them.
// InvalidArgument: not such a line.
absl::StatusOr<std::vector<Check>> ChecksOfReport(absl::string_view line, double load);

// Runs tutti-train of subject.program_folder, which takes some seconds. A single warning, with the
// remedy, where it is not there or fails.
std::vector<Check> CheckMachine(const DoctorSubject& subject);

}  // namespace tutti::client
