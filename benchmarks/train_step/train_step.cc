// Images per second of the CIFAR-10 example and the shares of its step, for 1 and 2 ranks (each on
// a core of its own) in fp32 and bf16. The bound beside 2 ranks is twice what 1 rank does with the
// same images per rank: no communication at all. Repetitions are interleaved; medians are printed.
//
//   train_step_benchmark [EPOCHS=1] [REPETITIONS=3] [DATA]
//
// A table on standard output, the same as JSON lines on standard error.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
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
constexpr int kImagesPerRank = 32;

struct Settings {
  int ranks;
  std::string precision;
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
                       std::to_string(kImagesPerRank * settings.ranks),
                       "--threads",
                       "1",
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
  options.before_exec = [rank] {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<size_t>(rank), &cores);
    return sched_setaffinity(0, sizeof(cores), &cores) == 0 ? 0 : errno;
  };
  return base::ChildProcess::Start(options);
}

// From the step lines after the first, which has the start-up in it.
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

// Of the middle repetition by speed.
Measured Median(std::vector<Measured> all) {
  std::sort(all.begin(), all.end(), [](const Measured& a, const Measured& b) {
    return a.images_per_second < b.images_per_second;
  });
  return all[all.size() / 2];
}

void Print(const Settings& settings, const Measured& m, double bound, double spread) {
  std::string row = absl::StrFormat("| %d | %s | %.0f | %.0f %% | %.0f | %.2f |", settings.ranks,
                                    settings.precision, m.images_per_second, 100 * spread, bound,
                                    m.images_per_second / bound);
  for (const char* part : kParts) row += absl::StrFormat(" %.1f %% |", 100 * m.share.at(part));
  std::printf("%s\n", row.c_str());
  const nlohmann::json json = {{"ranks", settings.ranks},
                               {"precision", settings.precision},
                               {"images_per_second", m.images_per_second},
                               {"spread", spread},
                               {"bound", bound},
                               {"share", m.share}};
  std::fprintf(stderr, "%s\n", json.dump().c_str());
}

int Main(int argc, char** argv) {
  const std::string epochs = argc > 1 ? argv[1] : "1";
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 3;
  const std::string data = argc > 3 ? argv[3] : TUTTI_CIFAR10 "/data";
  const std::vector<Settings> all = {{1, "fp32"}, {2, "fp32"}, {1, "bf16"}, {2, "bf16"}};
  std::vector<std::vector<Measured>> measured(all.size());
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (size_t i = 0; i < all.size(); ++i) {
      const auto one = Measure(all[i], epochs, data);
      if (!one.ok()) {
        std::fprintf(stderr, "train_step_benchmark: %s\n", one.status().ToString().c_str());
        return 1;
      }
      measured[i].push_back(*one);
    }
  }
  std::printf("| ranks | precision | images/s | spread | bound | of bound |");
  for (const char* part : kParts) std::printf(" %s |", part);
  std::printf("\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [least, most] = std::minmax_element(
        measured[i].begin(), measured[i].end(), [](const Measured& a, const Measured& b) {
          return a.images_per_second < b.images_per_second;
        });
    const Measured median = Median(measured[i]);
    const double bound =
        all[i].ranks * Median(measured[i - i % 2]).images_per_second;  // of 1 rank, same precision
    Print(all[i], median, bound,
          (most->images_per_second - least->images_per_second) / median.images_per_second);
  }
  return 0;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
