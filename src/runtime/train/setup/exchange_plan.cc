#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/binary_size.h"
#include "runtime/train/setup/pipeline_plan.h"

namespace tutti::train {
namespace {

constexpr double kParameterBytes = 4;  // of a parameter

std::string Size(double bytes) { return base::BinarySize(static_cast<int64_t>(bytes)); }

std::string Count(int64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

double SentBytes(const std::string& send, double parameters) {
  const auto encoding = EncodingOf(send);
  if (!encoding) return parameters * kParameterBytes;
  return static_cast<double>(comm::EncodedBytes(*encoding, static_cast<size_t>(parameters)));
}

std::string AnHour(absl::string_view who, double bytes, double seconds) {
  if (seconds <= 0) return "";
  return absl::StrCat("\n  ", who, " ", Size(bytes * 3600 / seconds),
                      " an hour, where steps take what was measured here");
}

// An all-reduce moves its data about twice.
std::string DescribeLocal(const Recipe& recipe, double parameters, const parallel::Layout& layout,
                          double step_seconds) {
  const parallel::Exchange& e = recipe.parallel.exchange;
  const double bytes = SentBytes(e.send, parameters);
  const bool is_mean = e.rate == 1 && e.momentum == 0;
  std::string text = absl::StrCat(
      Count(layout.replicas(), "rank"),
      layout.replicas() == 1 ? " trains by itself" : " train by themselves", " and take ",
      is_mean ? "the mean"
              : absl::StrFormat("an outer step (rate %g, momentum %g)", e.rate, e.momentum),
      " every ", Count(e.every, "step"), ": ", Size(bytes), " in ", Count(e.fragments, "part"),
      " as ", e.send);
  if (e.delay > 0) {
    absl::StrAppend(&text, ", each while ", Count(e.delay, "step"),
                    e.delay == 1 ? " goes on" : " go on");
  }
  absl::StrAppend(
      &text, "; running statistics are the mean of the ranks'\n  a rank holds ",
      Size(kParameterBytes * parameters * (StatesOf(recipe) + (e.send == "fp32" ? 3 : 5))),
      " of parameters, gradients and optimizers, its own and the outer ones");
  const double shares = 2.0 * (layout.replicas() - 1) / layout.replicas();
  return absl::StrCat(
      text, AnHour("a rank sends", bytes * shares, step_seconds * static_cast<double>(e.every)));
}

std::string DescribeServers(const Recipe& recipe, double parameters, const parallel::Layout& layout,
                            double step_seconds) {
  const int64_t workers = layout.replicas(), servers = recipe.parallel.mesh.servers;
  const int64_t bound = recipe.parallel.exchange.staleness;
  const double bytes = kParameterBytes * parameters;
  std::string text = absl::StrCat(Count(workers, "worker"), " of ", Count(recipe.batch, "image"),
                                  " a step and ", Count(servers, "server"), "; ");
  if (bound == 0) {
    absl::StrAppend(&text, "in rounds, whose gradients make one update");
  } else {
    absl::StrAppend(&text, "a gradient is at most ", Count(bound, "version"), " late");
    if (bound < workers - 1) {
      absl::StrAppend(&text, ", so that ", bound + 1, " of the workers compute at a time");
    }
  }
  absl::StrAppend(&text, "; a worker fetches and sends ", Size(bytes),
                  " a step; running statistics are the mean of the workers'\n  a worker holds ",
                  Size(2 * bytes), " of parameters and gradients, a server about ",
                  Size(bytes * StatesOf(recipe) / static_cast<double>(servers)),
                  " with its optimizer");
  return absl::StrCat(
      text, AnHour("all together send", 2 * bytes * static_cast<double>(workers), step_seconds));
}

}  // namespace

std::optional<comm::Encoding> EncodingOf(const std::string& name) {
  if (name == "fp16") return comm::Encoding::kFloat16;
  if (name == "bf16") return comm::Encoding::kBFloat16;
  if (name == "int8") return comm::Encoding::kInt8;
  return std::nullopt;
}

std::string DescribeExchange(const Recipe& recipe, int64_t parameters,
                             const parallel::Layout& layout, double step_seconds) {
  const auto count = static_cast<double>(parameters);
  if (recipe.parallel.exchange.is_local()) {
    return DescribeLocal(recipe, count, layout, step_seconds);
  }
  if (recipe.parallel.mesh.servers > 0) {
    return DescribeServers(recipe, count, layout, step_seconds);
  }
  return "";
}

}  // namespace tutti::train
