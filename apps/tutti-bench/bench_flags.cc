#include "bench_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace tutti {
namespace {

constexpr char kAbout[] =
    "Images per second over models x ranks x transports, on synthetic images, and what explains "
    "them.\n\n"
    "Alone it starts its ranks on this machine. Under `tutti run` or any launcher that sets RANK,\n"
    "WORLD_SIZE, MASTER_ADDR and MASTER_PORT it is one of the ranks, and measures groups of the\n"
    "first 1, 2, 4, ... of them.\n";
constexpr char kMore[] =
    "docs/bench.md says how to read the table.\n\n"
    "Example: tutti bench --models resnet20,resnet50 --ranks 1,2,4 --transports shm,tcp --output "
    "bench\n";

}  // namespace

absl::StatusOr<std::variant<BenchCommand, ShowAndExit>> ReadCommandLine(int argc, char** argv) {
  BenchCommand command;
  bench::Sweep& sweep = command.sweep;
  double timeout = 300;
  CLI::App app(kAbout, "tutti bench");
  app.footer(kMore);
  app.set_version_flag("--version", TUTTI_VERSION);
  app.option_defaults()->always_capture_default();
  app.add_option("--models", sweep.models, "names of networks")->delimiter(',');
  app.add_option("--ranks", sweep.ranks, "numbers of ranks (default: 1, 2, 4, ... all)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--transports", sweep.transports, "auto, shm, tcp, ucx")->delimiter(',');
  app.add_option("--batch", sweep.setup.batch, "images per step and rank")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--steps", sweep.setup.steps, "that are measured, of which the median counts")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--warm-up", sweep.setup.warm_up, "steps before them")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--precision", command.precision,
                 "fp32, bf16 or auto: what is fastest on every rank")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}));
  app.add_option("--device", sweep.setup.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  app.add_option("--threads", sweep.threads, "of computation per rank")->check(CLI::Range(1, 4096));
  app.add_option("--timeout", timeout, "seconds that a rank is waited for")
      ->check(CLI::PositiveNumber);
  app.add_option("--output", command.output, "folder for bench.md, bench.json and bench.svg");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return ShowAndExit{app.help()};
  } catch (const CLI::CallForVersion&) {
    return ShowAndExit{"tutti-bench " TUTTI_VERSION "\n"};
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  std::sort(sweep.ranks.begin(), sweep.ranks.end());
  sweep.setup.timeout = absl::Seconds(timeout);
  return command;
}

}  // namespace tutti
