// Measures images per second of the CIFAR-10 example and the shares of its step: by one rank, by
// two ranks, each on a core of its own, and by one rank with two threads on both cores. Each core
// has 32 images of a mini-batch. The bound of two cores is twice what one rank does: no
// communication at all. Repetitions are interleaved; medians and quartiles are printed.
//
//   train_step_benchmark [--epochs 1] [--repetitions 5] [--precisions fp32,bf16] [--data FOLDER]
//
// Prints a table on standard output, and the same as JSON lines on standard error.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/child_process.h"
#include "base/status.h"

namespace tutti {
namespace {

constexpr const char* kParts[] = {"data", "forward", "backward", "communication", "optimizer"};
constexpr int kImagesPerCore = 32;

struct Settings {
  int ranks;
  int threads;  // of each rank, each on a core of its own
  std::string precision;
  int cores() const { return ranks * threads; }
};

struct Measured {
  double images_per_second = 0;
  std::map<std::string, double> share;  // of the step
};

int FreePort() {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

absl::StatusOr<base::ChildProcess> StartRank(const Settings& settings, int rank, int port,
                                             const std::string& token, const std::string& epochs,
                                             const std::string& data, const std::string& output) {
  base::ChildOptions options;
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tutti-train";
  options.arguments = {program,
                       "--config",
                       TUTTI_CIFAR10 "/code/recipe.yml",
                       "--data",
                       data,
                       "--output",
                       output,
                       "--epochs",
                       epochs,
                       "--precision",
                       settings.precision,
                       "--batch",
                       std::to_string(kImagesPerCore * settings.cores()),
                       "--threads",
                       std::to_string(settings.threads),
                       "--warmup-epochs",
                       "0",
                       "--evaluate-every",
                       "0",
                       "--checkpoint-every",
                       "0"};
  options.environment = base::CurrentEnvironment();
  options.environment["RANK"] = std::to_string(rank);
  options.environment["WORLD_SIZE"] = std::to_string(settings.ranks);
  options.environment["NODE_RANK"] = std::to_string(rank);  // as in the example: one rank a node
  options.environment["MASTER_ADDR"] = "127.0.0.1";
  options.environment["MASTER_PORT"] = std::to_string(port);
  options.environment["TUTTI_JOB_TOKEN"] = token;
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd null, base::Open("/dev/null", O_WRONLY));
  options.stdout_fd = null.get();
  options.die_with_parent = true;
  options.before_exec = [rank, threads = settings.threads] {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int i = 0; i < threads; ++i) CPU_SET(static_cast<size_t>(rank * threads + i), &cores);
    return sched_setaffinity(0, sizeof(cores), &cores) == 0 ? 0 : errno;
  };
  return base::ChildProcess::Start(options);
}

// Reads the step lines after the first, which has the start-up in it.
absl::StatusOr<Measured> ReadMetrics(const std::filesystem::path& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  std::istringstream lines(text);
  double images = 0, seconds = 0, last_step = 0;
  std::map<std::string, double> parts;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    if (event["event"] != "step") continue;
    const double steps = event["step"].get<double>() - last_step;
    const bool first = last_step == 0;
    last_step = event["step"];
    if (first) continue;
    double step_seconds = 0;
    for (const char* part : kParts) {
      parts[part] += steps * event[part].get<double>();
      step_seconds += event[part].get<double>();
    }
    seconds += steps * step_seconds;
    images += steps * step_seconds * event["images_per_second"].get<double>();
  }
  if (seconds == 0) return absl::FailedPreconditionError("too few steps: raise EPOCHS");
  Measured measured{images / seconds, {}};
  for (const auto& [part, sum] : parts) measured.share[part] = sum / seconds;
  return measured;
}

absl::StatusOr<Measured> Measure(const Settings& settings, const std::string& epochs,
                                 const std::string& data) {
  const base::TemporaryDirectory folder;
  const int port = FreePort();
  const std::string token = base::RandomHex(16);
  std::vector<base::ChildProcess> ranks;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    const auto output = folder.path() / std::to_string(rank);
    TUTTI_ASSIGN_OR_RETURN(auto child,
                           StartRank(settings, rank, port, token, epochs, data, output));
    ranks.push_back(std::move(child));
  }
  for (base::ChildProcess& rank : ranks) {
    TUTTI_ASSIGN_OR_RETURN(const base::ExitStatus exit,
                           rank.Wait(base::Deadline::After(absl::Minutes(30))));
    if (!exit.ok()) return absl::InternalError("tutti-train ended with " + exit.ToString());
  }
  return ReadMetrics(folder.path() / "0" / "metrics.jsonl");
}

void SortBySpeed(std::vector<Measured>& all) {
  std::sort(all.begin(), all.end(), [](const Measured& a, const Measured& b) {
    return a.images_per_second < b.images_per_second;
  });
}

// `one` has what one rank of one thread does. Both are sorted by speed.
void Print(const Settings& settings, const std::vector<Measured>& all,
           const std::vector<Measured>& one) {
  const auto quantile = [&](double q) {
    return all[static_cast<size_t>(q * static_cast<double>(all.size() - 1) + 0.5)];
  };
  const Measured median = quantile(0.5);
  const double low = quantile(0.25).images_per_second, high = quantile(0.75).images_per_second;
  const double bound = settings.cores() * one[one.size() / 2].images_per_second;
  std::string row =
      absl::StrFormat("| %d of %d | %s | %.0f (%.0f to %.0f) | %.0f | %.2f |", settings.ranks,
                      settings.threads, settings.precision, median.images_per_second, low, high,
                      bound, median.images_per_second / bound);
  for (const char* part : kParts) row += absl::StrFormat(" %.1f %% |", 100 * median.share.at(part));
  std::printf("%s\n", row.c_str());
  const nlohmann::json json = {{"ranks", settings.ranks},
                               {"threads", settings.threads},
                               {"precision", settings.precision},
                               {"images_per_second", median.images_per_second},
                               {"quartiles", {low, high}},
                               {"bound", bound},
                               {"share", median.share}};
  std::fprintf(stderr, "%s\n", json.dump().c_str());
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Images per second of the CIFAR-10 example by one rank, two ranks, and one of two threads.");
  int epochs = 1, repetitions = 5;
  std::vector<std::string> precisions = {"fp32", "bf16"};
  std::string data = TUTTI_CIFAR10 "/data";
  app.add_option("--epochs", epochs, "of each repetition")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--repetitions", repetitions)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--precisions", precisions)
      ->delimiter(',')
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_option("--data", data, "shards of CIFAR-10")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::vector<Settings> all;
  for (const std::string& precision : precisions) {
    for (const auto& [ranks, threads] : {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2)}) {
      all.push_back({ranks, threads, precision});
    }
  }
  std::vector<std::vector<Measured>> measured(all.size());
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (size_t i = 0; i < all.size(); ++i) {
      const auto one = Measure(all[i], std::to_string(epochs), data);
      if (!one.ok()) {
        std::fprintf(stderr, "train_step_benchmark: %s\n", one.status().ToString().c_str());
        return 1;
      }
      measured[i].push_back(*one);
    }
  }
  std::printf("| ranks of threads | precision | images/s (quartiles) | bound | of bound |");
  for (const char* part : kParts) std::printf(" %s |", part);
  std::printf("\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (auto& repetitions_of_one : measured) SortBySpeed(repetitions_of_one);
  for (size_t i = 0; i < all.size(); ++i) Print(all[i], measured[i], measured[i - i % 3]);
  return 0;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
