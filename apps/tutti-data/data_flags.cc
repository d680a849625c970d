#include "data_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"

namespace tutti {
namespace {

constexpr char kAbout[] =
    "Packs, checks and describes sets of images for training.\n\n"
    "SOURCE is a folder of tar shards (train-000000.tar, ...), TFRecord files\n"
    "(train-00000-of-00001, ...), folders of classes (train/CLASS/IMAGE.jpg), images with "
    "masks\n"
    "or boxes (train/images/IMAGE.jpg and train/masks/IMAGE.png or train/boxes/IMAGE.txt),\n"
    "CIFAR-10's binary files or MNIST's (IDX); or synthetic[:COUNTxSIDE[xCLASSES]].\n";

constexpr char kMore[] =
    "Exit codes: 0 done, every image is readable; 1 failed; 2 wrong flags or data, or images "
    "that\n"
    "are unreadable.\n\n"
    "Example: tutti-data pack imagenet shards --resize 480 --shuffle 1 && tutti-data stats "
    "shards\n";

void AddCommon(CLI::App& app, DataCommand& command) {
  app.add_option("SOURCE", command.source, "the set of images")->required();
  app.add_option("--split", command.split, "train, test, ... (default: those that there are)");
  app.add_option("--first-label", command.open.first_label,
                 "what labels of TFRecords count from (default: told from the labels)")
      ->check(CLI::Range(0, 1));
  app.add_option("--threads", command.threads, "that decode")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

void AddPack(CLI::App& app, DataCommand& command, uint64_t& megabytes) {
  CLI::App* pack = app.add_subcommand("pack", "Writes tar shards of a set in any format");
  AddCommon(*pack, command);
  data::PackOptions& options = command.pack;
  pack->add_option("OUTPUT", command.output, "the folder for the shards")->required();
  pack->add_option("--shard-size", megabytes, "MiB, about")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  pack->add_option("--resize", options.resize,
                   "shorter side of what is larger, pixels; 0: as it is")
      ->check(CLI::Range(0, 16384));
  pack->add_option("--quality", options.quality, "JPEG quality of what is resized")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  pack->add_option("--shuffle", options.shuffle, "seed of a random order (default: as it is)");
  pack->add_flag("--fast-crops", options.fast_crops,
                 "rewrite JPEGs, without loss, so that random crops decode faster");
  pack->add_flag("--compress", options.compress, "with zstd: for images of a few kilobytes");
  pack->add_option("--max-unreadable", options.max_unreadable,
                   "images that may be left out, and are named")
      ->check(CLI::NonNegativeNumber);
  pack->callback([&command] { command.what = DataCommand::What::kPack; });
}

void AddLooking(CLI::App& app, DataCommand& command) {
  CLI::App* verify = app.add_subcommand("verify", "Decodes every image and names what is damaged");
  CLI::App* stats = app.add_subcommand("stats", "Shows classes, sizes and formats as a table");
  for (CLI::App* one : {verify, stats}) {
    AddCommon(*one, command);
    one->add_flag("--json", command.json, "a JSON document instead of text");
  }
  stats->add_flag("--pixels", command.pixels, "mean and deviation of all pixels too: decodes them");
  verify->callback([&command] { command.what = DataCommand::What::kVerify; });
  stats->callback([&command] { command.what = DataCommand::What::kStats; });
}

void AddIndex(CLI::App& app, DataCommand& command) {
  CLI::App* index = app.add_subcommand(
      "index", "Writes what tar shards hold beside them, as a store's readers need it");
  index->add_option("FOLDER", command.source, "of train-000000.tar, …")->required();
  index->add_option("--split", command.split, "train, test, ... (default: those that there are)");
  index->callback([&command] { command.what = DataCommand::What::kIndex; });
}

}  // namespace

absl::StatusOr<std::variant<DataCommand, ShowAndExit>> ReadCommandLine(int argc, char** argv) {
  CLI::App app(kAbout, "tutti-data");
  app.footer(kMore);
  app.set_version_flag("--version", TUTTI_VERSION);
  app.require_subcommand(1);
  DataCommand command;
  command.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  uint64_t megabytes = command.pack.shard_bytes >> 20;
  AddPack(app, command, megabytes);
  AddLooking(app, command);
  AddIndex(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return ShowAndExit{app.help()};
  } catch (const CLI::CallForAllHelp&) {
    return ShowAndExit{app.help("", CLI::AppFormatMode::All)};
  } catch (const CLI::CallForVersion& version) {
    return ShowAndExit{absl::StrCat(version.what(), "\n")};
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(error.what(), "; --help lists the flags"));
  }
  command.pack.shard_bytes = megabytes << 20;
  command.pack.threads = command.threads;
  return command;
}

}  // namespace tutti
